"""The truth about the last plies of finished games, from the solver: what they teach in place of what was played."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from lifeline.env import BatchEnv
from lifeline.rules import Rules
from lifeline.solver import Solution, Solver
from training.starts import held_out

# The table is cleared for each game, which takes a millisecond for so many entries.
_MAX_TABLE_BITS = 18


class Endgames:
    """Solves the plies of finished games from the last one backwards, as far as the solver gets.

    What `solve` and `truths` find in one game does not hang on the games before it. Positions that models are graded
    on, and their symmetric forms, are left out: they are taught by how the game went on, like those that it cannot
    solve.

    Args:
        rules: what is played.
        max_nodes: positions searched for each ply at most.
    Source: Leela Chess Zero rescores its games by endgame tables in the same way.
    """

    def __init__(self, rules: Rules, max_nodes: int) -> None:
        # Each ply finds what those behind it have left in the table.
        self._solver = Solver(rules, min(max(10, (8 * max_nodes).bit_length()), _MAX_TABLE_BITS), symmetric=False)
        self._max_nodes = max_nodes
        self._held_out = held_out(rules)

    def warm_up(self) -> None:
        """Have the kernels compiled that it needs."""
        start = BatchEnv(self._solver.rules, 1).gather()
        self.solve(start, np.zeros((1, self._solver.rules.num_actions), np.float16))

    def truth(self, state: npt.NDArray[np.uint64]) -> Solution:
        """What the solver finds of one state, uint64 [K], within its limit, from what it has met since `truths`."""
        return self._solver.solve_quickly(state, self._max_nodes)

    def truths(self, states: Sequence[npt.NDArray[np.uint64]]) -> list[Solution]:
        """What it finds of the last plies of a game, up to the first one, from behind, whose value it does not find.

        Args:
            states: uint64 [K] before each ply of the game.
        """
        self._solver.forget()
        found: list[Solution] = []
        for state in reversed(states):
            solution = self.truth(state)
            if solution.value is None:
                break
            found.append(solution)
        return found[::-1]

    def left_out(self, states: npt.NDArray[np.uint64]) -> npt.NDArray[np.bool_]:
        """bool [T], whether models are graded on states, uint64 [T, K]."""
        return self._held_out.contains(states)

    def solve(
        self, states: npt.NDArray[np.uint64], policy_targets: npt.NDArray[np.float16]
    ) -> tuple[npt.NDArray[np.int8], npt.NDArray[np.float16], npt.NDArray[np.float32]]:
        """Solve the last plies of a game, up to the first one, from behind, that takes too many positions.

        Args:
            states: uint64 [T, K] before each ply.
            policy_targets: float16 [T, A]; rows of zeros stay as they are.
        Returns:
            int8 [T]: +1 where the player to move wins, -1 where not, 0 where it is not known; the policy targets, in
            won positions without what is on moves that lose; and float32 [T], the share of each that was kept.
        """
        solved, targets, kept = np.zeros(len(states), np.int8), policy_targets.copy(), np.ones(len(states), np.float32)
        truths = self.truths(list(states))
        first = len(states) - len(truths)
        for ply in first + np.flatnonzero(~self.left_out(states[first:])):
            found = truths[ply - first]
            solved[ply] = found.value or 0
            if found.known_winning and targets[ply].any():
                good = np.array([*found.known_winning, *found.undecided])
                kept[ply] = targets[ply][good].astype(np.float32).sum()
                targets[ply] = _only(targets[ply], good)
        return solved, targets, kept


def _only(target: npt.NDArray[np.float16], actions: npt.NDArray[np.int64]) -> npt.NDArray[np.float16]:
    """A policy target on these actions alone, in proportion to what it was, and evenly where it was next to nothing."""
    kept = np.zeros(len(target), np.float32)
    kept[actions] = target[actions].astype(np.float32) + 1e-3
    return np.asarray((kept / kept.sum()).astype(np.float16))
