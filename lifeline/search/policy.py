"""The seam between a search and its way of choosing: Gumbel search and PUCT are both a `SearchPolicy`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

from lifeline.search.tree import Tree
from lifeline.streams import UInt64Array


@dataclass(frozen=True)
class SearchResult:
    """What a search says of B roots. Rows of finished games: action -1, zeros, and the outcome as value.

    Attributes:
        actions: int64 [B], the action to play.
        policy_target: float32 [B, A], the improved policy; 0 where illegal, sums to 1.
        root_value: float32 [B] in [-1, 1], what the improved policy expects, for the player to move. Not the mean
            of all evaluations: halving gives bad actions as many of the first simulations as good ones.
        visit_counts: int32 [B, A], simulations through each action.
        action_values: float32 [B, A] in [-1, 1], for the player to move; unvisited actions have an estimate.
    """

    actions: npt.NDArray[np.int64]
    policy_target: npt.NDArray[np.float32]
    root_value: npt.NDArray[np.float32]
    visit_counts: npt.NDArray[np.int32]
    action_values: npt.NDArray[np.float32]

    @classmethod
    def empty(cls, batch: int, num_actions: int) -> SearchResult:
        """Room for the result of B roots."""
        return cls(
            np.full(batch, -1, np.int64),
            np.zeros((batch, num_actions), np.float32),
            np.zeros(batch, np.float32),
            np.zeros((batch, num_actions), np.int32),
            np.zeros((batch, num_actions), np.float32),
        )


class SearchPolicy(Protocol):
    """How a root and its descendants choose."""

    def begin(self, tree: Tree, keys: UInt64Array, num_simulations: int) -> None:
        """Prepare a search; the roots stand already. `keys`, uint64 [B], start each game's random stream."""
        ...

    def select(
        self,
        tree: Tree,
        simulation: int,
        parents: npt.NDArray[np.int32],
        actions: npt.NDArray[np.int32],
    ) -> None:
        """Find in each tree the edge to grow.

        Args:
            simulation: counts from 0.
            parents: int32 [B], written: the node the edge leaves from.
            actions: int32 [B], written: the action, or -1 where that node is itself a finished game.
        """
        ...

    def finish(self, tree: Tree) -> SearchResult:
        """Sum the search up."""
        ...
