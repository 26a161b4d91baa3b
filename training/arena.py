"""Matches: two players, games in pairs from varied openings, each opening played with seats exchanged."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from lifeline.env import BatchEnv
from lifeline.errors import ForfeitError
from lifeline.notation import action_text
from lifeline.play.openings import Opening
from lifeline.play.players import Player, move_keys
from lifeline.records import Result
from lifeline.streams import draw_keys
from training.ratings import Pair

IntArray = npt.NDArray[np.int64]


@dataclass(frozen=True)
class MatchResult:
    """What a match came to, from the side of its first player.

    Attributes:
        name: the first player; opponent: the second.
        games: games played; wins: of the first player.
        distinct_games: different sequences of moves among them.
        mean_plies: their mean length.
        low, high: 95 % interval of the share of wins (Wilson's, games taken as independent).
    """

    name: str
    opponent: str
    games: int
    wins: int
    distinct_games: int
    mean_plies: float
    low: float
    high: float

    def line(self) -> str:
        """One line for a person."""
        share = 100 * self.wins / self.games
        return (
            f"{self.name} against {self.opponent}: {self.wins} of {self.games} games won, {share:.1f} % "
            f"(95 % interval {100 * self.low:.1f}-{100 * self.high:.1f}), {self.distinct_games} distinct games, "
            f"{self.mean_plies:.1f} plies on average"
        )


def wilson_interval(wins: int, games: int, z: float = 1.959964) -> tuple[float, float]:
    """The 95 % interval of a share by Wilson's score; sensible at 0 and 100 % too."""
    share, spread = wins / games, z * z / games
    middle = (share + spread / 2) / (1 + spread)
    half = z / (1 + spread) * math.sqrt(share * (1 - share) / games + spread / (4 * games))
    return max(0.0, middle - half), min(1.0, middle + half)


@dataclass(frozen=True)
class Fixture:
    """A game of two players that is to be played.

    Attributes:
        opening: where it starts.
        first_seat: the seat of the first of the two.
        seed: of what is random in it; see `move_keys`.
    """

    opening: Opening
    first_seat: int
    seed: int


def paired(openings: Sequence[Opening], rng: np.random.Generator) -> list[Fixture]:
    """Every opening twice, one game behind the other, seats exchanged."""
    keys = draw_keys(rng, 2 * len(openings)).tolist()
    return [Fixture(openings[game // 2], game % 2, key) for game, key in enumerate(keys)]


@dataclass(frozen=True)
class PlayedGame:
    """A game that has been played.

    Attributes:
        fixture: as it was to be played.
        actions: the plies after the opening.
        result: who won, and how.
        detail: what went wrong with a player that forfeited; else empty.
        seconds: what each ply took; None where games were thought about together.
    """

    fixture: Fixture
    actions: tuple[int, ...]
    result: Result
    detail: str
    seconds: tuple[float | None, ...]

    @property
    def first_won(self) -> bool:
        """Whether the match's first player won it."""
        return self.result.winner == self.fixture.first_seat

    @property
    def moves(self) -> tuple[str, ...]:
        """All plies as move texts, those of the opening included."""
        opening = self.fixture.opening
        return tuple(action_text(a, opening.position.rules.board) for a in (*opening.actions, *self.actions))


def pairs_of(games: Sequence[PlayedGame], player: str, opponent: str) -> list[Pair]:
    """The games of `paired` fixtures as pairs of one opening each; the names are those of the two players."""
    results = [(g.fixture.first_seat == 0, g.first_won) for g in games]
    return [Pair(player, opponent, tuple(results[i : i + 2])) for i in range(0, len(results), 2)]


def play_games(player: Player, opponent: Player, fixtures: Sequence[Fixture]) -> list[PlayedGame]:
    """Play games of two players, all at once.

    A player that crashes, hangs or breaks the rules loses that game, and the others go on.

    Args:
        fixtures: at least one, all of the same rules; their openings leave the game running.
    """
    return _Table((player, opponent), fixtures).play()


class _Table:
    """Games of two players under way: what each of them is asked, and what becomes of the answers."""

    def __init__(self, players: tuple[Player, Player], fixtures: Sequence[Fixture]) -> None:
        self._players, self._fixtures = players, fixtures
        games = len(fixtures)
        self._seeds = np.array([f.seed for f in fixtures], np.uint64)
        self._first_seat = np.array([f.first_seat for f in fixtures])
        self._env = BatchEnv(fixtures[0].opening.position.rules, games)
        self._env.reset(positions=[f.opening.position for f in fixtures])
        self._actions: list[list[int]] = [[] for _ in range(games)]
        self._seconds: list[list[float | None]] = [[] for _ in range(games)]
        self._forfeits: dict[int, tuple[Result, str]] = {}

    def play(self) -> list[PlayedGame]:
        """Play all games to their ends."""
        env = self._env
        while len(running := self._running()):
            # Forfeited games take any legal action until the batch is done: the rows are not looked at again.
            chosen = env.legal_action_mask.argmax(axis=1)
            for number, player in enumerate(self._players):
                rows = running[(env.to_play[running] == self._first_seat[running]) == (number == 0)]
                if player.batched and len(rows) and len(self._fixtures) > 1:  # of a single game times are kept
                    chosen[rows] = player.choose(env, rows, move_keys(self._seeds[rows], env, rows), self._told(rows))
                    self._note(rows, chosen, None)
                elif len(rows):
                    for row in rows:
                        self._ask_alone(player, int(row), chosen)
            env.step(chosen)
        return [self._game(row) for row in range(env.batch_size)]

    def _running(self) -> IntArray:
        rows = np.flatnonzero(~self._env.terminated)
        return rows[[row not in self._forfeits for row in rows.tolist()]]

    def _told(self, rows: IntArray) -> list[tuple[int, ...]]:
        return [(*self._fixtures[r].opening.actions, *self._actions[r]) for r in rows]

    def _ask_alone(self, player: Player, row: int, chosen: IntArray) -> None:
        rows, began = np.array([row]), time.perf_counter()
        keys = move_keys(self._seeds[rows], self._env, rows)
        try:
            chosen[row] = player.choose(self._env, rows, keys, self._told(rows))[0]
        except ForfeitError as error:
            winner = 1 - int(self._env.to_play[row])
            self._forfeits[row] = Result(winner, error.reason), str(error)
        else:
            self._note(rows, chosen, round(time.perf_counter() - began, 4))

    def _note(self, rows: IntArray, chosen: IntArray, seconds: float | None) -> None:
        for row in rows:
            self._actions[row].append(int(chosen[row]))
            self._seconds[row].append(seconds)

    def _game(self, row: int) -> PlayedGame:
        winner = 0 if self._env.outcome[row] == 1 else 1
        result, detail = self._forfeits.get(row, (Result(winner, "played out"), ""))
        return PlayedGame(
            self._fixtures[row],
            tuple(self._actions[row]),
            result,
            detail,
            tuple(self._seconds[row]),
        )


def play_match(player: Player, opponent: Player, openings: Sequence[Opening], rng: np.random.Generator) -> MatchResult:
    """Play every opening twice, seats exchanged, and sum the games up; see `play_games`."""
    games = play_games(player, opponent, paired(openings, rng))
    wins = sum(g.first_won for g in games)
    low, high = wilson_interval(wins, len(games))
    distinct, plies = len({g.moves for g in games}), float(np.mean([len(g.actions) for g in games]))
    return MatchResult(player.name, opponent.name, len(games), wins, distinct, plies, low, high)
