"""What a tournament came to: who stands where, and who beat whom."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import betainc

from lifeline.errors import ConfigError
from training.ratings import ELO, Rating, fit_ratings
from training.resampling import Meeting, Pair, meetings
from training.sprt import SprtState

__all__ = ["Encounter", "SprtState", "Standing", "Standings", "standings"]

# Draws behind the interval of an encounter, and the weight of what was not seen in them: one pair, see `fit_ratings`.
_DRAWS = 4000
_PRIOR_PAIRS = 1.0
_LEAST = 1e-9  # games: draws from hardly any results may come out as none at all


@dataclass(frozen=True)
class Standing:
    """A player of a tournament.

    Attributes:
        name: of the player.
        rating: in Elo, with its interval.
        games: played; wins: of them.
        forfeits: games lost by a crash, a time-out or an illegal move.
    """

    name: str
    rating: Rating
    games: int
    wins: int
    forfeits: int


@dataclass(frozen=True)
class Encounter:
    """Two players of a tournament, from the side of the first. A pair is one opening played with seats exchanged.

    Attributes:
        first, second: their names.
        games: played; wins: of the first.
        pairs_lost, pairs_drawn, pairs_won: pairs in which the first won no game, one, or both.
        elo: difference in Elo that the share of wins amounts to; low, high: its 95 % interval, clustered by pair.
        superiority: likelihood that the first is the stronger one.
    """

    first: str
    second: str
    games: int
    wins: int
    pairs_lost: int
    pairs_drawn: int
    pairs_won: int
    elo: float
    low: float
    high: float
    superiority: float

    def reversed(self) -> Encounter:
        """The same from the side of the second."""
        return Encounter(
            first=self.second,
            second=self.first,
            games=self.games,
            wins=self.games - self.wins,
            pairs_lost=self.pairs_won,
            pairs_drawn=self.pairs_drawn,
            pairs_won=self.pairs_lost,
            elo=-self.elo,
            low=-self.high,
            high=-self.low,
            superiority=1 - self.superiority,
        )


@dataclass(frozen=True)
class Standings:
    """All of it.

    Attributes:
        players: by descending rating.
        encounters: one for each two players that met, in the order of `players`.
        anchor: the player whose rating is fixed; at anchor_elo.
        first_seat: advantage of seat 0, in Elo; first_seat_low, first_seat_high: its 95 % interval.
        sprt: the sequential test, where one was asked for; sprt_first: the player it asks about.
    """

    players: tuple[Standing, ...]
    encounters: tuple[Encounter, ...]
    anchor: str
    anchor_elo: float
    first_seat: float
    first_seat_low: float
    first_seat_high: float
    sprt: SprtState | None = None
    sprt_first: str | None = None


def standings(
    pairs: Sequence[Pair],
    anchor: str,
    rng: np.random.Generator,
    anchor_elo: float = 0.0,
    forfeits: Mapping[str, int] | None = None,
    sprt: SprtState | None = None,
) -> Standings:
    """Sum a tournament up.

    Args:
        pairs: at least one game; a pair of which only one game was played counts in games and ratings.
        anchor: the player whose rating is fixed, one of those that played.
        rng: draws the intervals.
        anchor_elo: where it is fixed.
        forfeits: games each player forfeited; 0 where it is not named.
        sprt: a test of the player that comes first in `pairs` against the other; of two players only.
    Raises:
        ConfigError: no games, an anchor that did not play, or a test of more than two players.
    """
    met = meetings(pairs)
    names = sorted({name for m in met for name in (m.first, m.second)})
    if anchor not in names:
        raise ConfigError(f"the anchor must be one of those that played ({', '.join(names) or 'no one'}), not {anchor}")
    if sprt is not None and len(names) != 2:
        raise ConfigError(f"a sequential test is of two players, not of {len(names)}")
    ratings = fit_ratings(pairs, anchor, rng)
    players = []
    for name in names:
        r = ratings.players[name]
        moved = Rating(r.elo + anchor_elo, r.low + anchor_elo, r.high + anchor_elo, r.games)
        wins = sum(m.wins if name == m.first else m.games - m.wins for m in met if name in (m.first, m.second))
        players.append(Standing(name, moved, r.games, wins, (forfeits or {}).get(name, 0)))
    players.sort(key=lambda p: (-p.rating.elo, p.name))
    rank = {p.name: i for i, p in enumerate(players)}
    encounters = [_encounter(m, rng) for m in met]
    ordered = [e if rank[e.first] < rank[e.second] else e.reversed() for e in encounters]
    ordered.sort(key=lambda e: (rank[e.first], rank[e.second]))
    return Standings(
        tuple(players),
        tuple(ordered),
        anchor,
        anchor_elo,
        ratings.first_seat,
        ratings.first_seat_low,
        ratings.first_seat_high,
        sprt,
        None if sprt is None else pairs[0].first,
    )


def _encounter(met: Meeting, rng: np.random.Generator) -> Encounter:
    lost, drawn, won = met.pairs
    totals = met.draw(rng, _DRAWS, _PRIOR_PAIRS)
    wins, losses = totals[:, 1] + totals[:, 2] - totals[:, 3], totals[:, 0] - totals[:, 1] + totals[:, 3]
    odds = np.maximum(wins, _LEAST) / np.maximum(losses, _LEAST)
    low, high = np.quantile(np.log(odds) / ELO, [0.025, 0.975])
    # Half a game on either side: finite at 200 to 0, and without bias to first order (Anscombe 1956).
    elo = math.log((met.wins + 0.5) / (met.games - met.wins + 0.5)) / ELO
    # Drawn pairs say nothing of who is better. Of the others a share p is won, with Jeffreys' prior: P(p > 1/2).
    superiority = float(betainc(lost + 0.5, won + 0.5, 0.5))
    return Encounter(
        met.first, met.second, met.games, met.wins, lost, drawn, won, elo, float(low), float(high), superiority
    )
