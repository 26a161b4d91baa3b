"""The seam between a search and its way of choosing: Gumbel search and PUCT are both a `SearchPolicy`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
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

    @classmethod
    def of(cls, parts: Sequence[SearchResult]) -> SearchResult:
        """The results of several searches, one behind the other."""
        return cls(*(np.concatenate([getattr(part, f.name) for part in parts]) for f in fields(cls)))


@dataclass(frozen=True)
class Edges:
    """The edges that are grown next, k of each of B trees: those of tree b are rows b k to b k + k - 1.

    Attributes:
        parents: int32 [B k], the node an edge leaves from.
        actions: int32 [B k], its action; -1 where that node, a finished game, is itself the leaf.
        leaf: int32 [B k], the node at its end, which has been visited already where it is decided; -1 where the row
            stands for none, its edge being that of another row.
    """

    parents: npt.NDArray[np.int32]
    actions: npt.NDArray[np.int32]
    leaf: npt.NDArray[np.int32]

    @classmethod
    def empty(cls, count: int) -> Edges:
        """Room for so many."""
        return cls(*(np.full(count, fill, np.int32) for fill in (0, -1, 0)))


class SearchPolicy(Protocol):
    """How a root and its descendants choose."""

    def begin(self, tree: Tree, keys: UInt64Array, num_simulations: int) -> None:
        """Prepare a search; the roots stand already. `keys`, uint64 [B], start each game's random stream."""
        ...

    @property
    def num_leaves(self) -> int:
        """k, leaves grown in each tree between two evaluations."""
        ...

    @property
    def proves(self) -> bool:
        """Whether games count as decided as soon as the tree shows it; see `Tree.add`."""
        ...

    def select(self, tree: Tree, simulation: int, edges: Edges) -> None:
        """Find in each tree the k edges to grow, and reserve their leaves.

        Args:
            simulation: counts from 0, by k.
            edges: written.
        """
        ...

    def finish(self, tree: Tree) -> SearchResult:
        """Sum the search up."""
        ...
