"""Drills: endings of random games with the truth about every ply, which no search has to be paid for.

Self-play comes to few kinds of endings, those between good players who know what the network knows; of others it learns
little, however long it goes on. A drill plays at random to the end and solves the last plies backwards. Then the ending
is played once more from where the solver has come to, half of the moves in won positions such as win, so that not all
of it are the results of blunders. Both endings are taught: who wins, and in won positions which moves do. Won and lost
ones are taught alike often, so that it does not learn that whoever moves wins.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from lifeline.solver import LOSS, UNKNOWN, WIN
from lifeline.streams import derive
from training.backward import BackwardSolver, Ending
from training.held_out import held_out
from training.trajectory import Trajectory

# Counters of the streams used here, far from those of the plies and of games that stray.
_DRILL = 1 << 44


class Drills:
    """Makes drills, each as its key says. Positions that models are graded on are not taught.

    Args:
        solver: of the rules that are played.
    """

    def __init__(self, solver: BackwardSolver) -> None:
        self._solver = solver
        self._held_out = held_out(solver.rules)

    def make(self, game_id: int, count: int, version: int) -> list[Trajectory]:
        """So many drills for a finished game, two endings each; those that teach nothing are left out.

        Args:
            game_id: of the game: drills depend on it and on nothing else.
            version: of the weights, noted in them.
        """
        keys = derive(np.full(2 * count, game_id, np.uint64), _DRILL + np.arange(2 * count))
        out: list[Trajectory] = []
        for pair in keys.reshape(-1, 2):
            for key, ending in zip(pair, self._solver.random_endings(int(pair[0])), strict=False):
                out += self._taught(ending, int(key), version)
        return out

    def _taught(self, ending: Ending, game_id: int, version: int) -> list[Trajectory]:
        """One ending, without the plies that are not known or that models are graded on; nothing if none are left.

        As many won plies are taken as lost ones.
        """
        free = ~self._held_out.contains(ending.states)
        won, lost = (np.flatnonzero(free & (ending.values == value)) for value in (WIN, LOSS))
        count = min(len(won), len(lost))
        if not count:
            return []
        rows = np.sort(np.concatenate([_some(won, count, game_id), _some(lost, count, game_id)]))
        values, moves = ending.values[rows], ending.moves[rows]
        certain = (values == WIN) & (moves != UNKNOWN).all(axis=1)
        good = (moves == WIN) & certain[:, None]
        return [
            Trajectory(
                states=ending.states[rows],
                policy_targets=(good / np.maximum(good.sum(axis=1, keepdims=True), 1)).astype(np.float16),
                root_values=values.astype(np.float32),
                surprise=np.zeros(len(rows), np.float16),
                to_play=ending.to_play[rows],
                actions=ending.actions[rows],
                solved=values,
                strayed=np.ones(len(rows), np.int8),  # no move was chosen for what the network is to foresee
                outcome=ending.outcome,
                random_plies=ending.begun,
                game_id=game_id,
                version=version,
                drill=1,
            )
        ]


def _some(rows: npt.NDArray[np.int64], count: int, key: int) -> npt.NDArray[np.int64]:
    """So many of the rows, in no order; which ones depends on a key."""
    if len(rows) == count:
        return rows
    return rows[np.argsort(derive(np.full(len(rows), key, np.uint64), rows))[:count]]
