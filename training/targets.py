"""What is learnt from: samples made of finished games."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from training.trajectory import Trajectory


@dataclass(frozen=True)
class Samples:
    """M positions with their targets, indexed by cells; planes and grid are made when a batch is drawn.

    Attributes:
        states: uint64 [M, K], packed states.
        policy_targets: float16 [M, A]; rows of zeros teach no policy.
        value_targets: float32 [M] in [0, 1], probability that the player to move wins.
        versions: int64 [M], of the weights each was made with.
    """

    states: npt.NDArray[np.uint64]
    policy_targets: npt.NDArray[np.float16]
    value_targets: npt.NDArray[np.float32]
    versions: npt.NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.states)

    @property
    def policy_share(self) -> float:
        """Share of the samples that teach a policy."""
        bits = self.policy_targets.view(np.uint16)  # six times as fast as to compare numbers of 16 bits
        return float(bits.any(axis=1).mean())

    def take(self, rows: npt.NDArray[np.int64]) -> Samples:
        """Some of the samples, in the order of `rows`."""
        return Samples(self.states[rows], self.policy_targets[rows], self.value_targets[rows], self.versions[rows])


def samples_of(trajectories: Sequence[Trajectory], root_value_share: float) -> Samples:
    """All plies of some games, at least one, as samples.

    Args:
        root_value_share: share of the search's value in the value target, in [0, 1]; the rest is the outcome.
    """
    values = []
    for t in trajectories:
        won = np.where(t.to_play == 0, t.outcome, -t.outcome).astype(np.float32)
        values.append((1 + (1 - root_value_share) * won + root_value_share * t.root_values) / 2)
    return Samples(
        np.concatenate([t.states for t in trajectories]),
        np.concatenate([t.policy_targets for t in trajectories]),
        np.concatenate(values).astype(np.float32),
        np.concatenate([np.full(len(t), t.version) for t in trajectories]),
    )
