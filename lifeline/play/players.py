"""Players: anything that chooses moves, many games at once, so that any two can meet."""

from __future__ import annotations

import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Protocol

import numpy as np
import numpy.typing as npt

from lifeline.env import BatchEnv
from lifeline.errors import ConfigError, IllegalMoveError
from lifeline.rules import Position, Rules
from lifeline.search.evaluator import Evaluator, OnnxEvaluator
from lifeline.search.gumbel import GumbelConstants, GumbelPolicy
from lifeline.search.rollout import RolloutSearch
from lifeline.search.search import BatchSearch
from lifeline.streams import UInt64Array, draw_keys

IntArray = npt.NDArray[np.int64]

# More than any machine gets through; keeps a slip of the keyboard from asking for all memory.
_MAX_ROLLOUTS = 10_000_000


class Player(Protocol):
    """Chooses moves."""

    @property
    def name(self) -> str:
        """What it is called in tables."""
        ...

    def choose(self, env: BatchEnv, rows: IntArray, keys: UInt64Array) -> IntArray:
        """Choose an action in some running games of a batch.

        Args:
            env: the games; not changed.
            rows: int64 [R], which games, at least one.
            keys: uint64 [R], a fresh random key for each.
        Returns:
            int64 [R] legal actions; each depends on its own game and key alone.
        """
        ...


class RandomPlayer:
    """Plays uniformly random legal actions."""

    name = "random"

    def choose(self, env: BatchEnv, rows: IntArray, keys: UInt64Array) -> IntArray:
        """See `Player.choose`."""
        legal = env.legal_action_mask[rows]
        return np.array(
            [np.random.default_rng(k).choice(np.flatnonzero(m)) for k, m in zip(keys, legal, strict=True)], np.int64
        )


class RolloutPlayer:
    """UCT with random rollouts.

    Args:
        rules: what is played.
        num_rollouts: for each move.
        threads: games thought about at once.
    """

    def __init__(self, rules: Rules, num_rollouts: int, threads: int = 1) -> None:
        self.name = f"rollout:{num_rollouts}"
        self._searches = [RolloutSearch(rules, num_rollouts) for _ in range(max(1, threads))]

    def choose(self, env: BatchEnv, rows: IntArray, keys: UInt64Array) -> IntArray:
        """See `Player.choose`."""
        states, workers = env.gather(rows), len(self._searches)

        def share(worker: int) -> list[int]:
            search = self._searches[worker]
            return [search.choose(states[i], keys[i]) for i in range(worker, len(rows), workers)]

        actions = np.zeros(len(rows), np.int64)
        with ThreadPoolExecutor(workers) as pool:
            for worker, chosen in enumerate(pool.map(share, range(workers))):
                actions[worker::workers] = chosen
        return actions


class NetworkPlayer:
    """Gumbel search without noise over an evaluator: the same move every time for the same position.

    Args:
        rules: what is played.
        evaluator: judges positions.
        num_simulations: for each move.
        name: what it is called.
        constants: of the search; the noise in them is not used.
    """

    def __init__(
        self,
        rules: Rules,
        evaluator: Evaluator,
        num_simulations: int,
        name: str = "network",
        constants: GumbelConstants | None = None,
    ) -> None:
        self.name = name
        self._rules, self._evaluator, self._num_simulations = rules, evaluator, num_simulations
        c = constants or GumbelConstants()
        self._policy = GumbelPolicy(GumbelConstants(c.max_considered, c.c_visit, c.c_scale, noise=0.0))
        self._searches: dict[int, BatchSearch] = {}

    def choose(self, env: BatchEnv, rows: IntArray, keys: UInt64Array) -> IntArray:
        """See `Player.choose`."""
        # Batches are padded to a few sizes, whose memory is kept.
        size = 1 << (len(rows) - 1).bit_length()
        if size not in self._searches:
            self._searches[size] = BatchSearch(
                lambda: BatchEnv(self._rules, size), self._evaluator, self._policy, self._num_simulations
            )
        padded = np.resize(rows, size)
        games = BatchEnv(self._rules, size)
        games.scatter(None, env.gather(padded))
        return self._searches[size].run(games, np.resize(keys, size)).actions[: len(rows)]


def choose_move(player: Player, position: Position, rng: np.random.Generator) -> int:
    """A player's action in one position.

    Raises:
        IllegalMoveError: the game is over.
    """
    if position.is_over:
        raise IllegalMoveError(f"the game is over: {position.text()}")
    env = BatchEnv(position.rules, 1)
    env.reset(positions=[position])
    return int(player.choose(env, np.zeros(1, np.int64), draw_keys(rng, 1))[0])


def make_player(text: str, rules: Rules, num_simulations: int = 64, threads: int = 1) -> Player:
    """A player by its text: `random`, `rollout:N`, or the path of an exported model (`.onnx`).

    Args:
        num_simulations: for each move of a model.
        threads: CPU threads it may use.

    Raises:
        ConfigError: no such player.
        ModelError: the model cannot be used.
    """
    if text == "random":
        return RandomPlayer()
    rollout = re.fullmatch(r"rollout:([1-9][0-9]{0,8})", text, re.ASCII)
    if rollout and int(rollout[1]) <= _MAX_ROLLOUTS:
        return RolloutPlayer(rules, int(rollout[1]), threads)
    if text.endswith(".onnx"):
        return NetworkPlayer(rules, OnnxEvaluator(Path(text), threads), num_simulations, name=Path(text).stem)
    raise ConfigError(f"no player {text[:60]!r}: there are random, rollout:N (N up to {_MAX_ROLLOUTS}) and FILE.onnx")
