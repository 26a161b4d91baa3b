"""Players: anything that chooses moves, many games at once, so that any two can meet."""

from __future__ import annotations

import math
import re
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import numpy as np
import numpy.typing as npt

from lifeline.env import BatchEnv
from lifeline.errors import ConfigError, IllegalMoveError
from lifeline.play.engine import Engine, EngineSettings
from lifeline.rules import Position, Rules
from lifeline.search.evaluator import Evaluator, OnnxEvaluator
from lifeline.search.gumbel import GumbelConstants
from lifeline.search.rollout import RolloutSearch
from lifeline.solver import Solver
from lifeline.streams import UInt64Array, state_keys

IntArray = npt.NDArray[np.int64]
History = Sequence[int]
"""The actions of a game from the start of its rules."""

# More than any machine gets through; keeps a slip of the keyboard from asking for all memory.
_MAX_ROLLOUTS = 10_000_000
# Rollout trees within a time limit stay within this memory.
_MAX_TIMED_ROLLOUTS = 200_000
_SOLVER_NODES = 100_000
_SOLVER_FALLBACK = 1_000
_SOLVER_TABLE_BITS = 18


@dataclass(frozen=True)
class Budget:
    """What a player may spend on a move.

    Attributes:
        simulations: of a model, at least 2; or 0, its policy alone without search. Other players have numbers of
            their own.
        seconds: for each move; None = as long as the simulations take. Where it is given, a player takes as much as it
            gets through in the time instead.
        search: of a model, "puct" or "gumbel".
        level: of a model, a name or number of levels.py. All but "full" take simulations of their own and no time.
        solver: of a model, whether the exact solver helps near the end; without, two networks are compared by what they
            know.

    Raises:
        ConfigError: a number out of range, or no such search or level.
    """

    simulations: int = 64
    seconds: float | None = None
    search: str = "puct"
    level: str = "full"
    solver: bool = True

    def __post_init__(self) -> None:
        self.settings()  # refuses what no engine can do

    def settings(self) -> EngineSettings:
        """Those of an engine that plays so."""
        solving = {} if self.solver else {"solver_nodes": 0, "prove": 0}
        return EngineSettings(self.simulations, self.seconds, self.level, self.search, **solving)


class Player(Protocol):
    """Chooses moves."""

    @property
    def name(self) -> str:
        """What it is called in tables."""
        ...

    @property
    def batched(self) -> bool:
        """Whether many games at once are faster than one after the other."""
        ...

    def choose(
        self,
        env: BatchEnv,
        rows: IntArray,
        keys: UInt64Array,
        histories: Sequence[History] | None = None,
        seconds: float | None = None,
    ) -> IntArray:
        """Choose an action in some running games of a batch.

        Args:
            env: the games; not changed.
            rows: int64 [R], which games, at least one.
            keys: uint64 [R], a random key for each; see `move_keys`.
            histories: how each of these games got where it is; None = not known. Only programs that must be told a
                game move by move need it.
            seconds: what it may take in each game this once, in place of its budget.
        Returns:
            int64 [R] legal actions; each depends on its own game and key alone, but for limits of time.
        Raises:
            ForfeitError: the player cannot go on, and has lost; only players that are not `batched` raise it, asked
                for one game.
        """
        ...


def move_keys(seeds: UInt64Array, env: BatchEnv, rows: IntArray) -> UInt64Array:
    """The keys of moves in some games of a batch, each of the game's seed and position alone.

    So the same player moves the same way in the same position under the same seed, wherever it plays.
    """
    return state_keys(seeds, env.gather(rows))


class RandomPlayer:
    """Plays uniformly random legal actions."""

    name = "random"
    batched = True

    def choose(
        self,
        env: BatchEnv,
        rows: IntArray,
        keys: UInt64Array,
        histories: Sequence[History] | None = None,
        seconds: float | None = None,
    ) -> IntArray:
        """See `Player.choose`."""
        legal = env.legal_action_mask[rows]
        return np.array(
            [np.random.default_rng(k).choice(np.flatnonzero(m)) for k, m in zip(keys, legal, strict=True)], np.int64
        )


class _Pace:
    """How many simulations fit into a time, by those before."""

    def __init__(self, least: int, most: int) -> None:
        self._least, self._most, self._rate = least, most, 0.0

    def count(self, seconds: float) -> int:
        """A number that should take no longer, of a few sizes, whose memory can be kept; small at first."""
        exact = self._rate * seconds
        if exact < 2 * self._least:
            return self._least
        size = 1 << int(math.log2(exact))
        return min(self._most, size + size // 2 if exact >= 1.5 * size else size)

    def learn(self, count: int, seconds: float) -> None:
        """What it took. Slow searches tell more than short ones."""
        rate = count / max(seconds, 1e-6)
        self._rate = rate if not self._rate else 0.5 * (self._rate + rate)


class RolloutPlayer:
    """UCT with random rollouts.

    Args:
        rules: what is played.
        num_rollouts: for each move.
        threads: games thought about at once.
        seconds: for each move, in place of a number.
    """

    batched = True

    def __init__(self, rules: Rules, num_rollouts: int, threads: int = 1, seconds: float | None = None) -> None:
        self.name = f"rollout:{num_rollouts}"
        self._rules, self._num_rollouts, self._seconds = rules, num_rollouts, seconds
        self._searches: list[dict[int, RolloutSearch]] = [{} for _ in range(max(1, threads))]
        self._pace = _Pace(least=100, most=_MAX_TIMED_ROLLOUTS)

    def choose(
        self,
        env: BatchEnv,
        rows: IntArray,
        keys: UInt64Array,
        histories: Sequence[History] | None = None,
        seconds: float | None = None,
    ) -> IntArray:
        """See `Player.choose`."""
        limit = self._seconds if seconds is None else seconds
        count = self._num_rollouts if limit is None else self._pace.count(limit)
        states, workers = env.gather(rows), len(self._searches)

        def share(worker: int) -> list[int]:
            kept = self._searches[worker]
            if count not in kept:
                kept.clear()
                kept[count] = RolloutSearch(self._rules, count)
            return [kept[count].choose(states[i], keys[i]) for i in range(worker, len(rows), workers)]

        actions = np.zeros(len(rows), np.int64)
        began = time.perf_counter()
        with ThreadPoolExecutor(workers) as pool:
            for worker, chosen in enumerate(pool.map(share, range(workers))):
                actions[worker::workers] = chosen
        rounds = -(-len(rows) // workers)
        self._pace.learn(count * rounds, time.perf_counter() - began)
        return actions


class SolverPlayer:
    """Plays exactly where the solver finishes within its limit, and as a rollout player before that and where lost.

    Args:
        rules: what is played.
        nodes: positions searched for a move, at most.
        seconds: for each move, in place of a number of positions.
    """

    batched = False

    def __init__(self, rules: Rules, nodes: int = _SOLVER_NODES, seconds: float | None = None) -> None:
        self.name = "solver"
        self._solver, self._nodes, self._seconds = Solver(rules, _SOLVER_TABLE_BITS), nodes, seconds
        self._fallback = RolloutPlayer(rules, _SOLVER_FALLBACK)

    def choose(
        self,
        env: BatchEnv,
        rows: IntArray,
        keys: UInt64Array,
        histories: Sequence[History] | None = None,
        seconds: float | None = None,
    ) -> IntArray:
        """See `Player.choose`. Of several winning moves the key picks one."""
        limit = self._seconds if seconds is None else seconds
        solving, guessing = (None, None) if limit is None else (0.9 * limit, 0.1 * limit)
        nodes = self._nodes if limit is None else None
        actions = np.zeros(len(rows), np.int64)
        for i, state in enumerate(env.gather(rows)):
            self._solver.forget()
            found = self._solver.solve_state(state, nodes, solving)
            rng = np.random.default_rng(keys[i])
            if found.known_winning:
                actions[i] = rng.choice(found.known_winning)
                continue
            actions[i] = self._fallback.choose(env, rows[i : i + 1], keys[i : i + 1], None, guessing)[0]
            if found.undecided and actions[i] not in found.undecided:  # what is known to lose is not played
                actions[i] = rng.choice(found.undecided)
        return actions


class NetworkPlayer:
    """The engine over an evaluator: the same move every time for the same position and key, but for limits of time.

    Args:
        rules: what is played.
        evaluator: judges positions.
        budget: of each move; or all settings of the engine.
        name: what it is called.
        constants: of Gumbel search; the noise in them is not used.

    Attributes:
        engine: what chooses.
    """

    batched = True

    def __init__(
        self,
        rules: Rules,
        evaluator: Evaluator,
        budget: Budget | EngineSettings | int,
        name: str = "network",
        constants: GumbelConstants | None = None,
    ) -> None:
        self.name = name
        self._rules = rules
        budget = Budget(budget) if isinstance(budget, int) else budget
        settings = budget.settings() if isinstance(budget, Budget) else budget
        self.engine = Engine(rules, evaluator, settings, constants)

    def of(self, rules: Rules) -> NetworkPlayer:
        """The same player of other rules."""
        return NetworkPlayer(rules, self.engine.evaluator, self.engine.settings, self.name)

    def choose(
        self,
        env: BatchEnv,
        rows: IntArray,
        keys: UInt64Array,
        histories: Sequence[History] | None = None,
        seconds: float | None = None,
    ) -> IntArray:
        """See `Player.choose`."""
        games = BatchEnv(self._rules, len(rows))
        games.scatter(None, env.gather(rows))
        return self.engine.actions(games, keys, seconds)


def choose_move(
    player: Player, position: Position, seed: int, history: History | None = None, seconds: float | None = None
) -> int:
    """A player's action in one position: the same for the same player, position and seed.

    Args:
        seed: 0..2**64-1, of the game.
        history: the actions that led there; None = not known.
        seconds: what it may take, in place of its budget.

    Raises:
        IllegalMoveError: the game is over.
        ForfeitError: the player cannot go on.
    """
    if position.is_over:
        raise IllegalMoveError(f"the game is over: {position.text()}")
    env, rows = BatchEnv(position.rules, 1), np.zeros(1, np.int64)
    env.reset(positions=[position])
    keys = move_keys(np.array([seed], np.uint64), env, rows)
    return int(player.choose(env, rows, keys, None if history is None else [history], seconds)[0])


def make_bot(model: Path, rules: Rules, budget: Budget | EngineSettings | int = 64, threads: int = 1) -> NetworkPlayer:
    """The player of an exported model, whatever the name of its file.

    Raises:
        ModelError: the model cannot be used.
    """
    return NetworkPlayer(rules, OnnxEvaluator(model, threads), budget, model.stem)


PLAYER_FORMS = (
    f"random, rollout:N (N up to {_MAX_ROLLOUTS}), solver, FILE.onnx, and gtp:COMMAND (a program that speaks GTP)"
)


def make_player(text: str, rules: Rules, budget: Budget | int = 64, threads: int = 1) -> Player:
    """A player by its text: `random`, `rollout:N`, `solver`, the path of an exported model, or `gtp:COMMAND`.

    Args:
        budget: of each move; a number is that of simulations of a model.
        threads: CPU threads it may use.

    Raises:
        ConfigError: no such player.
        ModelError: the model cannot be used.
    """
    budget = Budget(budget) if isinstance(budget, int) else budget
    if text == "random":
        return RandomPlayer()
    if text == "solver":
        return SolverPlayer(rules, seconds=budget.seconds)
    rollout = re.fullmatch(r"rollout:([1-9][0-9]{0,8})", text, re.ASCII)
    if rollout and int(rollout[1]) <= _MAX_ROLLOUTS:
        return RolloutPlayer(rules, int(rollout[1]), threads, budget.seconds)
    if text.startswith("gtp:"):
        from lifeline.play.gtp_player import GtpPlayer  # which builds on this file

        return GtpPlayer(rules, text.removeprefix("gtp:"), budget)
    if text.endswith(".onnx"):
        return make_bot(Path(text), rules, budget, threads)
    raise ConfigError(f"no player {text[:60]!r}: there are {PLAYER_FORMS}")
