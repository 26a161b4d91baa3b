"""The bot that is there without any model: it judges a position by random games."""

from __future__ import annotations

import numpy as np

from lifeline.env import BatchEnv
from lifeline.game_record import MAX_PLIES
from lifeline.rules import Rules
from lifeline.search.evaluator import Env, FloatArray, UniformEvaluator
from lifeline.streams import state_keys


class RolloutEvaluator:
    """Equal priors, and as value of a position the mean result of random games from it: the same ones each time.

    Not to be shared between threads: it owns its work memory.

    Args:
        rules: what is played.
        rollouts: random games from each position; fewer on larger boards if None.
    """

    def __init__(self, rules: Rules, rollouts: int | None = None) -> None:
        rollouts = max(2, 360 // rules.num_cells) if rollouts is None else rollouts
        self._games = BatchEnv(rules, rollouts)
        self._plies = np.full(rollouts, MAX_PLIES, np.int64)

    def evaluate(self, leaves: Env) -> tuple[FloatArray, FloatArray]:
        """See `Evaluator.evaluate`."""
        priors, values = UniformEvaluator().evaluate(leaves)
        running = np.flatnonzero(~leaves.terminated)
        states = leaves.gather(running)
        streams = state_keys(np.zeros(len(running), np.uint64), states)
        for row, state, stream in zip(running, states, streams, strict=True):
            self._games.scatter(None, state[None])
            self._games.step_random(self._plies, np.array([stream], np.uint64))
            values[row] = self._games.outcome.mean() * (1 - 2 * int(leaves.to_play[row]))
        return priors, values
