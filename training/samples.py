"""From packed samples to what a network learns from: planes and targets by place, each sample turned its own way."""

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
    """A batch to learn from. P places: the flattened grid, or the cells themselves.

    Attributes:
        planes: float32 [B, C, P].
        legal: bool [B, P + 2]: the places, then the global actions.
        policy: float32 [B, P + 2], sums to 1, or to 0 where there is no policy to learn.
        value: float32 [B] in [0, 1].
        reply: float32 [B, P + 2], policy target of the next ply, or zeros.
        stones: float32 [B, 2, P], stones some plies later of the colour to place now and of the other one.
            These two are empty where the samples do not say how their games went on.
    """

    planes: npt.NDArray[np.float32]
    legal: npt.NDArray[np.bool_]
    policy: npt.NDArray[np.float32]
    value: npt.NDArray[np.float32]
    reply: npt.NDArray[np.float32]
    stones: npt.NDArray[np.float32]


@kernel
def lay_out(mask, targets, maps, choice, legal, policy):
    """Move legal masks and policy targets from actions to places; where no cell lies both are written nowhere."""
    num_cells = maps.shape[1]
    places = legal.shape[1] - 2
    for b in range(len(mask)):
        for cell in range(num_cells):
            to = maps[choice[b], cell]
            legal[b, to] = mask[b, cell]
            policy[b, to] = targets[b, cell]
        for extra in range(2):
            legal[b, places + extra] = mask[b, num_cells + extra]
            policy[b, places + extra] = targets[b, num_cells + extra]


@kernel
def lay_stones(states, later, maps, choice, stones, spec):
    """Lay stones of later states on places, float32 [B, 2, P]: first those of the colour to place in `states`."""
    num_words = len(spec.words)
    for b in range(len(states)):
        for side in range(2):
            first = (np.int64(states[b, 4 * num_words]) & 1 ^ side) * num_words
            for cell in range(spec.num_cells):
                bit = spec.cell_bit[cell]
                held = later[b, first + (bit >> 6)] >> np.uint64(bit & 63) & kernels.ONE
                stones[b, side, maps[choice[b], cell]] = np.float32(held)


def batch_of(samples: Samples, rules: Rules, symmetries: npt.NDArray[np.int64], on_grid: bool) -> Batch:
    """Lay samples out.

    Args:
        samples: B of them.
        symmetries: int64 [B], which of the 12 symmetries each is seen through; 0 leaves it as it is.
        on_grid: places are those of the flattened H x W grid; else the N cells.
    """
    spec, board = kernels.spec_of(rules), rules.board
    maps = grid_maps(board) if on_grid else board.symmetries
    batch, places = len(samples), board.grid_shape[0] * board.grid_shape[1] if on_grid else board.num_cells
    states = np.ascontiguousarray(samples.states)
    planes = np.zeros((batch, NUM_PLANES, places), np.float32)
    work = np.zeros(kernels.work_size(len(spec.words)), np.uint64)
    encode_planes(states, maps, symmetries, planes, work, spec)
    mask = np.zeros((batch, rules.num_actions), np.bool_)
    kernels.legal_batch(states, mask, work, spec)
    legal = np.zeros((batch, places + 2), np.bool_)
    policy = np.zeros((batch, places + 2), np.float32)
    lay_out(mask, samples.policy_targets.astype(np.float32), maps, symmetries, legal, policy)
    reply, stones = np.zeros((0, places + 2), np.float32), np.zeros((0, 2, places), np.float32)
    if samples.later is not None:
        reply, stones = np.zeros((batch, places + 2), np.float32), np.zeros((batch, 2, places), np.float32)
        lay_out(mask, samples.later.replies.astype(np.float32), maps, symmetries, legal, reply)
        lay_stones(states, np.ascontiguousarray(samples.later.states), maps, symmetries, stones, spec)
    return Batch(planes, legal, policy, samples.value_targets, reply, stones)
