"""Matches: two players, games in pairs from varied openings, each opening played with seats exchanged."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from lifeline.env import BatchEnv
from lifeline.play.players import Player
from lifeline.rules import Position, Rules
from lifeline.streams import derive, draw_keys
from training.ratings import Pair


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


def random_openings(rules: Rules, count: int, rng: np.random.Generator, turns: int = 1) -> list[Position]:
    """Positions after random first turns, no swap; distinct as far as there are enough.

    Args:
        turns: 1, Black's only, with the swap still to be decided: the game's own way of being fair; or 2, both
            players' with the swap behind them: more varied, but many such positions are lost from the start.
    """
    found: dict[str, Position] = {}
    tries = 0
    while len(found) < count and tries < 50 * count:
        tries += 1
        env = BatchEnv(rules, 1)
        while (position := env.position(0)).turn < turns:
            env.step(rng.choice(np.flatnonzero(env.legal_action_mask[0, : rules.num_cells]), size=1))
        found.setdefault(position.text(), position)
    openings = list(found.values())
    return [openings[i % len(openings)] for i in range(count)]


@dataclass(frozen=True)
class Games:
    """Games of two players: each opening twice, one behind the other, seats exchanged.

    Attributes:
        openings: where each game started.
        first_seat: the seat of the first player in each.
        won: whether the first player won it.
        moves: the actions of each.
    """

    openings: tuple[Position, ...]
    first_seat: tuple[int, ...]
    won: tuple[bool, ...]
    moves: tuple[tuple[int, ...], ...]

    def pairs(self, player: str, opponent: str) -> list[Pair]:
        """The games as pairs of one opening each."""
        results = [(seat == 0, won) for seat, won in zip(self.first_seat, self.won, strict=True)]
        return [Pair(player, opponent, tuple(results[i : i + 2])) for i in range(0, len(results), 2)]


def play_games(player: Player, opponent: Player, openings: Sequence[Position], rng: np.random.Generator) -> Games:
    """Play every opening twice, seats exchanged, all games at once.

    Args:
        openings: at least one running position, all of the same rules.
    """
    games = 2 * len(openings)
    env = BatchEnv(openings[0].rules, games)
    starts = tuple(p for p in openings for _ in range(2))
    env.reset(positions=starts)
    first_seat = np.arange(games) % 2
    keys = draw_keys(rng, games)
    moves: list[list[int]] = [[] for _ in range(games)]
    ply = 0
    while not env.terminated.all():
        actions = np.zeros(games, np.int64)
        for side, who in ((True, player), (False, opponent)):
            rows = np.flatnonzero(~env.terminated & ((env.to_play == first_seat) == side))
            if len(rows):
                actions[rows] = who.choose(env, rows, derive(keys[rows], np.full(len(rows), ply)))
        for row in np.flatnonzero(~env.terminated):
            moves[row].append(int(actions[row]))
        env.step(actions)
        ply += 1
    won = (env.outcome == 1) == (first_seat == 0)
    return Games(starts, tuple(first_seat.tolist()), tuple(won.tolist()), tuple(tuple(m) for m in moves))


def play_match(player: Player, opponent: Player, openings: Sequence[Position], rng: np.random.Generator) -> MatchResult:
    """Play every opening twice, seats exchanged, and sum the games up; see `play_games`."""
    games = play_games(player, opponent, openings, rng)
    count, wins = len(games.won), sum(games.won)
    distinct = {(start.text(), moves) for start, moves in zip(games.openings, games.moves, strict=True)}
    low, high = wilson_interval(wins, count)
    plies = float(np.mean([len(m) for m in games.moves]))
    return MatchResult(player.name, opponent.name, count, wins, len(distinct), plies, low, high)
