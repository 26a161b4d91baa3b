"""The engine: one model and one set of rules, asked about positions, one game or many at once.

With a number of simulations each search begins with a tree of its own: the same position, model, seed and simulations
give the same move, whoever asks. With a time the tree is kept from move to move.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from lifeline import kernels
from lifeline.env import BatchEnv
from lifeline.errors import ConfigError, IllegalMoveError
from lifeline.play.clock import Clock, allotment
from lifeline.play.komi import KomiChoice, name_komi
from lifeline.play.levels import level_of, weakened_choice
from lifeline.play.resigning import Resigning
from lifeline.play.thinking import Thinking, Thought
from lifeline.rules import Position, Rules
from lifeline.search.evaluator import Evaluator
from lifeline.search.gumbel import GumbelConstants
from lifeline.search.policies import POLICIES
from lifeline.streams import UInt64Array, state_keys

FloatArray = npt.NDArray[np.float32]
IntArray = npt.NDArray[np.int64]
Stop = Callable[[], bool]


@dataclass(frozen=True)
class EngineSettings:
    """How an engine plays.

    Attributes:
        simulations: of each search, 0 (the model's policy alone) or 2 to 1000000.
        seconds: of each search, in place of simulations; None = no limit of time.
        level: name or number of the level it plays at; see levels.py. Analyses are always as good as can be.
        search: "puct" or "gumbel".
        leaves: grown at once in a tree, of PUCT; None = by the number of simulations.
        solver_nodes: positions that the exact solver may search for each answer, where few moves are left; 0 = none;
            None = some for each simulation.
        prove: legal actions up to which the leaves of a search by PUCT are solved exactly, 0..11; 0 = none are; None =
            as far as it pays.
        resign_below: a value below which a move looks lost; -1 = it never resigns.
        resign_moves: such moves in a row after which it resigns, at least 1.

    Raises:
        ConfigError: a number out of range, or no such level or search.
    """

    simulations: int = 64
    seconds: float | None = None
    level: str = "full"
    search: str = "puct"
    leaves: int | None = None
    solver_nodes: int | None = None
    prove: int | None = None
    resign_below: float = -1.0
    resign_moves: int = 3

    def __post_init__(self) -> None:
        check_simulations(self.simulations)
        if self.seconds is not None and not 0.001 <= self.seconds <= 86_400:
            raise ConfigError(f"seconds for a move are 0.001 to 86400, not {self.seconds}")
        level_of(self.level)
        if self.search not in POLICIES:
            raise ConfigError(f"a search is {' or '.join(POLICIES)}, not {self.search[:40]!r}")
        if self.leaves is not None and not 1 <= self.leaves <= 256:
            raise ConfigError(f"leaves grown at once are 1 to 256, not {self.leaves}")
        if self.solver_nodes is not None and not 0 <= self.solver_nodes <= 10**9:
            raise ConfigError(f"solver_nodes are 0 to 1000000000, not {self.solver_nodes}")
        if self.prove is not None and not 0 <= self.prove <= 11:
            raise ConfigError(f"prove is 0 to 11 legal actions, not {self.prove}")
        if not -1 <= self.resign_below <= 1:
            raise ConfigError(f"resign_below is a value from -1 to 1, not {self.resign_below}")
        if not 1 <= self.resign_moves <= 100:
            raise ConfigError(f"resign_moves are 1 to 100, not {self.resign_moves}")


def check_simulations(simulations: int) -> None:
    """See that a number of simulations is one.

    Raises:
        ConfigError: it is not.
    """
    if not (simulations == 0 or 2 <= simulations <= 1_000_000):
        raise ConfigError(f"simulations are 0 (the policy alone) or 2 to 1000000, not {simulations}")


@dataclass(frozen=True)
class MoveReport:
    """A move of an analysis.

    Attributes:
        action: the ply.
        visits: simulations through it.
        value: in [-1, 1] for the player to move at the root; +1 and -1 where it is proven.
        prior: the network's own probability of it.
        pv: the plies expected, itself first.
    """

    action: int
    visits: int
    value: float
    prior: float
    pv: tuple[int, ...]


@dataclass(frozen=True)
class Analysis:
    """What an engine thinks of a position.

    Attributes:
        position: running.
        value: in [-1, 1] for the player to move; +1 and -1 where it is solved.
        simulations: done, those of a kept tree included.
        best: the action an engine of full strength plays.
        moves: those visited (without search all legal ones), best first.
        policy: float32 [A], the share of visits of each action; without search the network's own.
        prior: float32 [A], the network's own probabilities, 0 where illegal.
        solved: +1 the player to move wins, -1 loses; None where the exact solver has not said so.
    """

    position: Position
    value: float
    simulations: int
    best: int
    moves: tuple[MoveReport, ...]
    policy: FloatArray
    prior: FloatArray
    solved: int | None


@dataclass(frozen=True)
class Choice:
    """What an engine does in a position.

    Attributes:
        action: the ply it plays.
        resigns: whether it rather gives up.
        analysis: what it thinks.
    """

    action: int
    resigns: bool
    analysis: Analysis


class Engine:
    """Thinks about positions of one set of rules, and plays one game. Not to be shared between threads.

    Args:
        rules: what is played.
        evaluator: judges positions.
        settings: how it plays.
        constants: of Gumbel search; the noise in them is not used.
    """

    def __init__(
        self,
        rules: Rules,
        evaluator: Evaluator,
        settings: EngineSettings | None = None,
        constants: GumbelConstants | None = None,
    ) -> None:
        self.rules, self.evaluator, self.settings = rules, evaluator, settings or EngineSettings()
        s = self.settings
        self._level = level_of(s.level)
        self._thinking = Thinking(rules, evaluator, s.search, s.leaves, s.solver_nodes, s.prove, constants)
        self.new_game()

    def new_game(self) -> None:
        """Forget the game played so far: what is kept of its tree, and what was hopeless in it."""
        self._resigning = Resigning(self.settings.resign_below, self.settings.resign_moves)
        self._thinking.forget()

    def analyse(
        self,
        position: Position,
        seed: int = 0,
        simulations: int | None = None,
        seconds: float | None = None,
        stop: Stop | None = None,
    ) -> Analysis:
        """What it thinks of a position, at full strength.

        Args:
            position: running, of these rules; the komi may differ.
            seed: 0..2**64-1, of what is random in a search.
            simulations, seconds: in place of those of the settings; seconds go before simulations.
            stop: asked again and again; ends the search when it returns True, with what has been found by then.

        Raises:
            IllegalMoveError: the game is over.
            ConfigError: a position of other rules, or a number out of range.
        """
        if simulations is None and seconds is None:
            simulations, seconds = self.settings.simulations, self.settings.seconds
        env, keys = self._table([position], [seed])
        return self._reports([position], self._think(env, keys, simulations or 0, seconds, stop))[0]

    def analyse_many(
        self,
        positions: Sequence[Position],
        seeds: Sequence[int],
        simulations: int | None = None,
        stop: Stop | None = None,
    ) -> list[Analysis]:
        """The same of many positions, whose leaves are evaluated together; of each what it would be by itself.

        Args:
            positions: at least one, running, of these rules; the komi may differ.
            seeds: one for each.
            simulations: of each, in place of those of the settings.
            stop: see `analyse`; it is for all of them.

        Raises:
            IllegalMoveError, ConfigError: see `analyse`.
        """
        count = self.settings.simulations if simulations is None else simulations
        thought = self._think(*self._table(positions, seeds), count, None, stop)
        return self._reports(positions, thought)

    def choose(
        self,
        position: Position,
        seed: int,
        history: Sequence[int] | None = None,
        seconds: float | None = None,
        clock: Clock | None = None,
    ) -> Choice:
        """What it does in a position of its game, at its level.

        Args:
            position: running, of these rules; the komi may differ.
            seed: 0..2**64-1, of the game.
            history: the actions that led there; it plays the same without.
            seconds: what it may take, in place of its settings.
            clock: its clock, which it takes a share of; `seconds` is then an upper limit.

        Raises:
            IllegalMoveError: the game is over.
            ConfigError: a position of other rules.
        """
        if clock is not None:
            share = allotment(clock, position.stones.count("."))
            seconds = share if seconds is None else min(share, seconds)
        env, keys = self._table([position], [seed])
        thought = self._think_at_level(env, keys, seconds)
        analysis = self._reports([position], thought)[0]
        action = int(self._chosen(thought, keys)[0])
        return Choice(action, self._resigning.judge(position, analysis.value), analysis)

    def actions(self, env: BatchEnv, keys: UInt64Array, seconds: float | None = None) -> IntArray:
        """What it plays in many games at once, at its level; of each what `choose` plays.

        Args:
            env: B running games of these rules; not changed.
            keys: uint64 [B], of seed and position; see `state_keys`.
            seconds: for each game, one after the other, in place of its settings.
        Returns:
            int64 [B] legal actions.
        """
        limit = self.settings.seconds if seconds is None else seconds
        if limit is None or not self._level.is_full:
            return self._chosen(self._think_at_level(env, keys, None), keys)
        best = np.zeros(env.batch_size, np.int64)
        for row, state in enumerate(env.gather()):
            game = BatchEnv(self.rules, 1)
            game.scatter(None, state[None])
            best[row] = self._think_at_level(game, keys[row : row + 1], limit).best[0]
        return best

    def named_komi(self, most: int | None = None, simulations: int | None = None, seed: int = 0) -> KomiChoice:
        """As first player of komi pie, the komi to name: that whose value is nearest to even; see `name_komi`.

        Args:
            most: the greatest komi to consider; None = half the cells.
            simulations: of each search, in place of those of the settings.
            seed: see `analyse`.
        """

        def judge(starts: Sequence[Position], count: int) -> list[float]:
            return [a.value for a in self.analyse_many(starts, [seed] * len(starts), count)]

        return name_komi(self.rules, judge, self.settings.simulations if simulations is None else simulations, most)

    def better_side(self, simulations: int | None = None, seed: int = 0) -> tuple[str, float]:
        """As second player of komi pie, the colour to take, "b" or "w", and the value of the start for Black."""
        value = self.analyse(Position.start(self.rules), seed, simulations).value
        return ("b" if value >= 0 else "w"), value

    def _table(self, positions: Sequence[Position], seeds: Sequence[int]) -> tuple[BatchEnv, UInt64Array]:
        """Games at these positions, and their keys."""
        for position in positions:
            if position.is_over:
                raise IllegalMoveError(f"the game is over: {position.text()}")
            if replace(position.rules, komi=0) != replace(self.rules, komi=0):
                raise ConfigError(f"a position of {position.rules} for an engine of {self.rules}")
        env = BatchEnv(self.rules, len(positions))
        env.scatter(None, np.stack([kernels.encode_position(p) for p in positions]))
        return env, state_keys(np.array(seeds, np.uint64), env.gather())

    def _think(
        self, env: BatchEnv, keys: UInt64Array, simulations: int, seconds: float | None, stop: Stop | None
    ) -> Thought:
        if seconds is not None:
            return self._thinking.run_timed(env, keys, seconds, stop)
        check_simulations(simulations)
        return self._thinking.run(env, keys, simulations, stop)

    def _think_at_level(self, env: BatchEnv, keys: UInt64Array, seconds: float | None) -> Thought:
        if self._level.simulations is not None:
            return self._think(env, keys, self._level.simulations, None, None)
        limit = self.settings.seconds if seconds is None else seconds
        return self._think(env, keys, self.settings.simulations, limit, None)

    def _chosen(self, thought: Thought, keys: UInt64Array) -> IntArray:
        """What is played at its level: int64 [B]."""
        if self._level.is_full:
            return thought.best
        rows = zip(thought.prior, thought.values, thought.best, keys, strict=True)
        return np.array([weakened_choice(self._level, p, v, int(b), k) for p, v, b, k in rows], np.int64)

    def _reports(self, positions: Sequence[Position], thought: Thought) -> list[Analysis]:
        return [
            self._report(position, thought, row, lines)
            for row, (position, lines) in enumerate(zip(positions, thought.lines(), strict=True))
        ]

    def _report(self, position: Position, thought: Thought, row: int, lines: Mapping[int, tuple[int, ...]]) -> Analysis:
        visits, values, prior = thought.visits[row], thought.values[row], thought.prior[row]
        best, solved = int(thought.best[row]), int(thought.solved[row]) or None
        shown = np.flatnonzero(visits if visits.any() else prior)
        order = sorted({best, *shown.tolist()}, key=lambda a: (a != best, -visits[a], -values[a], -prior[a], a))
        moves = tuple(
            MoveReport(a, int(visits[a]), float(values[a]), float(prior[a]), lines.get(a, (a,))) for a in order
        )
        value = float(thought.value[row] if solved is None else solved)
        return Analysis(position, value, int(visits.sum()), best, moves, thought.policy[row], prior, solved)
