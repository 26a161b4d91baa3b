"""Drills: endings of random games with the truth about every ply, which no search has to be paid for.

Self-play comes to few kinds of endings, those between good players who know what the network knows; of others it learns
little, however long it goes on. A drill plays at random to the end and solves the last plies from behind. Then the
ending is played once more from where the solver has come to, each move half of the time one that wins, so that neither
side has thrown everything away. Both endings are taught: who wins, and in won positions which moves do. Won and lost
ones are taught alike often, so that it does not learn that whoever moves wins.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from lifeline.env import BatchEnv
from lifeline.rules import Rules
from lifeline.solver import Solution
from lifeline.streams import derive
from training.endgames import Endgames
from training.trajectory import Trajectory

# Of the moves of an ending that is played again so many are such as win, where there are any; the others are random.
_PERFECT = 0.5
# Counters of the streams used here, far from those of the plies and of games that stray.
_DRILL = 1 << 44

_Ply = tuple[npt.NDArray[np.uint64], int, int]
"""The state before it, the seat to move, the action."""


class Drills:
    """Makes drills, each as its key says.

    Args:
        rules: what is played.
        endgames: solves plies; positions that models are graded on are not taught.
    """

    def __init__(self, rules: Rules, endgames: Endgames) -> None:
        self._endgames = endgames
        self._env = BatchEnv(rules, 1)
        self._placements = rules.num_cells

    def make(self, game_id: int, count: int, version: int) -> list[Trajectory]:
        """So many drills for a finished game, two endings each; those of which nothing could be solved are left out.

        Args:
            game_id: of the game: drills hang on it and on nothing else.
            version: of the weights, noted in them.
        """
        keys = derive(np.full(2 * count, game_id, np.uint64), _DRILL + np.arange(2 * count))
        out: list[Trajectory] = []
        for first, second in keys.reshape(-1, 2):
            rng = np.random.default_rng(first)
            plies, outcome = self._random_game(rng)
            found = self._endgames.truths([state for state, _, _ in plies])
            begun = len(plies) - len(found)
            if found:
                again, truths, other = self._play_again(plies[begun][0], rng)
                out += self._taught(rng, plies[begun:], found, outcome, begun, int(first), version)
                out += self._taught(rng, again, truths, other, begun, int(second), version)
        return out

    def _random_game(self, rng: np.random.Generator) -> tuple[list[_Ply], int]:
        """The plies of a random game without swap, and its outcome."""
        self._env.reset()
        plies = []
        while not self._env.terminated[0]:
            plies.append(self._step(rng, ()))
        return plies, int(self._env.outcome[0])

    def _play_again(
        self, state: npt.NDArray[np.uint64], rng: np.random.Generator
    ) -> tuple[list[_Ply], list[Solution], int]:
        """An ending from a state on, with what the solver says of each ply."""
        self._env.scatter(None, state[None])
        plies, truths = [], []
        while not self._env.terminated[0]:
            truths.append(self._endgames.truth(self._env.gather()[0]))
            plies.append(self._step(rng, truths[-1].known_winning if rng.random() < _PERFECT else ()))
        return plies, truths, int(self._env.outcome[0])

    def _step(self, rng: np.random.Generator, among: Sequence[int]) -> _Ply:
        """Play one of some actions, if there are any, or else a random one."""
        state, seat = self._env.gather()[0], int(self._env.to_play[0])
        legal = np.flatnonzero(self._env.legal_action_mask[0])
        if legal[0] < self._placements:
            legal = legal[legal < self._placements]
        action = int(rng.choice(among if len(among) else legal))
        self._env.step(np.array([action]))
        return state, seat, action

    def _taught(
        self,
        rng: np.random.Generator,
        plies: list[_Ply],
        truths: list[Solution],
        outcome: int,
        begun: int,
        game_id: int,
        version: int,
    ) -> list[Trajectory]:
        """One ending, without the plies that are not known or that models are graded on; nothing if none are left.

        As many won plies are taken as lost ones.
        """
        states = np.array([state for state, _, _ in plies])
        values = np.array([truth.value or 0 for truth in truths], np.int8)
        free = ~self._endgames.left_out(states)
        won, lost = np.flatnonzero(free & (values > 0)), np.flatnonzero(free & (values < 0))
        count = min(len(won), len(lost))
        rows = np.sort(np.append(rng.permutation(won)[:count], rng.permutation(lost)[:count]))
        if not len(rows):
            return []
        targets = np.zeros((len(rows), self._env.num_actions), np.float16)
        for row, target in zip(rows, targets, strict=True):
            if truths[row].value == 1 and not truths[row].undecided:
                target[list(truths[row].known_winning)] = 1 / len(truths[row].known_winning)
        return [
            Trajectory(
                states=states[rows],
                policy_targets=targets,
                root_values=values[rows].astype(np.float32),
                surprise=np.zeros(len(rows), np.float16),
                to_play=np.array([plies[row][1] for row in rows], np.int8),
                actions=np.array([plies[row][2] for row in rows], np.int16),
                solved=values[rows],
                strayed=np.ones(len(rows), np.int8),  # no move was chosen for what the network is to foresee
                outcome=outcome,
                random_plies=begun,
                game_id=game_id,
                version=version,
                drill=1,
            )
        ]
