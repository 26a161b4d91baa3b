"""From packed samples to what a network learns from: planes and targets on the grid, each sample turned its own way."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from lifeline import kernels
from lifeline.compiled import kernel
from lifeline.observation import NUM_PLANES, encode_planes, grid_maps
from lifeline.rules import Rules
from training.targets import Samples


@dataclass(frozen=True)
class Batch:
    """A batch to learn from. P = H W + 2: the grid, then the global actions.

    Attributes:
        planes: float32 [B, C, H, W].
        legal: bool [B, P].
        policy: float32 [B, P], sums to 1.
        value: float32 [B] in [0, 1].
    """

    planes: npt.NDArray[np.float32]
    legal: npt.NDArray[np.bool_]
    policy: npt.NDArray[np.float32]
    value: npt.NDArray[np.float32]


@kernel
def lay_out(mask, targets, maps, choice, legal, policy):
    """Move legal masks and policy targets from actions to the grid; off the board both are written nowhere."""
    num_cells = maps.shape[1]
    grid = legal.shape[1] - 2
    for b in range(len(mask)):
        for cell in range(num_cells):
            to = maps[choice[b], cell]
            legal[b, to] = mask[b, cell]
            policy[b, to] = targets[b, cell]
        for extra in range(2):
            legal[b, grid + extra] = mask[b, num_cells + extra]
            policy[b, grid + extra] = targets[b, num_cells + extra]


def batch_of(samples: Samples, rules: Rules, symmetries: npt.NDArray[np.int64]) -> Batch:
    """Lay samples out on the grid.

    Args:
        samples: B of them.
        symmetries: int64 [B], which of the 12 symmetries each is seen through; 0 leaves it as it is.
    """
    spec, maps = kernels.spec_of(rules), grid_maps(rules.board)
    batch, (height, width) = len(samples), rules.board.grid_shape
    states = np.ascontiguousarray(samples.states)
    planes = np.zeros((batch, NUM_PLANES, height * width), np.float32)
    encode_planes(states, maps, symmetries, planes, spec)
    mask = np.zeros((batch, rules.num_actions), np.bool_)
    kernels.legal_batch(states, mask, np.zeros(kernels.work_size(len(spec.words)), np.uint64), spec)
    legal = np.zeros((batch, height * width + 2), np.bool_)
    policy = np.zeros((batch, height * width + 2), np.float32)
    lay_out(mask, samples.policy_targets.astype(np.float32), maps, symmetries, legal, policy)
    return Batch(planes.reshape(batch, NUM_PLANES, height, width), legal, policy, samples.value_targets)
