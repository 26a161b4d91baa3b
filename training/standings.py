"""What a tournament came to: who stands where, and who beat whom."""

from __future__ import annotations

from dataclasses import dataclass

from training.ratings import Rating


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


@dataclass(frozen=True)
class SprtState:
    """A sequential test of "the first player is elo1 better" against "it is elo0 better".

    Attributes:
        elo0, elo1: the two hypotheses.
        llr: log-likelihood ratio so far; lower, upper: where the test ends.
        pairs: it rests on.
        verdict: "elo1 accepted", "elo0 accepted", or "undecided".
    """

    elo0: float
    elo1: float
    llr: float
    lower: float
    upper: float
    pairs: int
    verdict: str


@dataclass(frozen=True)
class Standings:
    """All of it.

    Attributes:
        players: by descending rating.
        encounters: one for each two players that met, in the order of `players`.
        anchor: the player whose rating is fixed; at anchor_elo.
        first_seat: advantage of seat 0, in Elo.
        sprt: the sequential test, where one was asked for.
    """

    players: tuple[Standing, ...]
    encounters: tuple[Encounter, ...]
    anchor: str
    anchor_elo: float
    first_seat: float
    sprt: SprtState | None = None
