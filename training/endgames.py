"""The truth about the last plies of finished games, from the solver: what they teach in place of what was played."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from lifeline.solver import LOSS, NO_MOVE, WIN
from training.backward import BackwardSolver
from training.held_out import held_out

_Float16 = npt.NDArray[np.float16]


class Endgames:
    """Solves the plies of finished games from the last one backwards, as far as the solver gets.

    Positions that models are graded on, and their symmetric forms, are left out: they are taught by how the game went
    on, like those that it cannot solve.

    Args:
        solver: of the rules that are played.
    Source: Leela Chess Zero rescores its games by endgame tables in the same way.
    """

    def __init__(self, solver: BackwardSolver) -> None:
        self._solver = solver
        self._held_out = held_out(solver.rules)

    def solve(
        self, states: npt.NDArray[np.uint64], policy_targets: _Float16
    ) -> tuple[npt.NDArray[np.int8], _Float16, npt.NDArray[np.float32]]:
        """Solve the last plies of a game, up to the first one, from the end, that takes too many positions.

        Args:
            states: uint64 [T, K] before each ply.
            policy_targets: float16 [T, A]; rows of zeros stay as they are.
        Returns:
            int8 [T]: +1 where the player to move wins, -1 where not, 0 where it is not known; the policy targets, in
            won positions without what is on moves that lose; and float32 [T], the share of each that was kept.
        """
        targets, kept = policy_targets.copy(), np.ones(len(states), np.float32)
        solved, moves = self._solver.solve(states)
        known = np.flatnonzero(solved)
        solved[known[self._held_out.contains(states[known])]] = 0
        rows = np.flatnonzero((solved == WIN) & policy_targets.any(axis=1))
        good = (moves[rows] != LOSS) & (moves[rows] != NO_MOVE)
        before = np.where(good, policy_targets[rows], 0).astype(np.float32)
        kept[rows] = before.sum(axis=1)
        # In proportion to what they had, and evenly where that was next to nothing.
        after = np.where(good, before + 1e-3, 0)
        targets[rows] = after / after.sum(axis=1, keepdims=True)
        return solved, targets, kept
