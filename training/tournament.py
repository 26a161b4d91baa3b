"""Tournaments: who meets whom, from which openings, and what a game of it is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import combinations
from pathlib import Path

import numpy as np

from lifeline.errors import ConfigError
from lifeline.play.book import make_book, read_book, rollout_judge, shipped_book
from lifeline.play.gtp_player import GtpPlayer
from lifeline.play.openings import Opening
from lifeline.play.players import Player
from lifeline.records import GameRecord, PlayerInfo
from lifeline.rules import Rules
from training.arena import Fixture, PlayedGame, play_games
from training.entrants import Entrant

# Of openings where there is no book: enough to tell a lost position from an open one.
_ROLLOUTS = 400
_LEAST_OPENINGS = 100
# Looked at for each that is taken.
_CANDIDATES = 4


@dataclass(frozen=True)
class Tournament:
    """What is to be played.

    Attributes:
        rules: the game.
        entrants: the players.
        openings: of the pairs of each two players that meet, in this order; taken anew where a board has no more.
        pairs: for each two players that meet. A pair is one opening played twice, seats exchanged.
        gauntlet: whether only the first player meets the others, and they not each other.
        seed: of everything random in it.
        openings_from: where the openings come from, for people.
    """

    rules: Rules
    entrants: tuple[Entrant, ...]
    openings: tuple[Opening, ...]
    pairs: int
    gauntlet: bool
    seed: int
    openings_from: str

    @property
    def pairings(self) -> list[tuple[int, int]]:
        """Who meets whom, by their numbers among the entrants."""
        numbers = range(len(self.entrants))
        return [(0, i) for i in numbers[1:]] if self.gauntlet else list(combinations(numbers, 2))

    @property
    def games(self) -> int:
        """Games in all."""
        return 2 * self.pairs * len(self.pairings)

    @property
    def repeated_pairs(self) -> int:
        """Pairs that say nothing new: of an opening that the same two have played before, and models play as before."""
        again = max(0, self.pairs - len(self.openings))
        return again * sum(self.entrants[i].is_settled and self.entrants[j].is_settled for i, j in self.pairings)

    def fixture(self, ticket: Ticket) -> Fixture:
        """A game as it is to be played: the same every time it is asked for."""
        entropy = (self.seed, ticket.first, ticket.second, ticket.pair, ticket.game)
        seed = int(np.random.SeedSequence(entropy).generate_state(1, np.uint64)[0])
        return Fixture(self.openings[ticket.pair % len(self.openings)], ticket.game, seed)

    def record(self, ticket: Ticket, game: PlayedGame) -> GameRecord:
        """The record of a game."""
        seats = [ticket.first, ticket.second] if ticket.game == 0 else [ticket.second, ticket.first]
        infos = [PlayerInfo(self.entrants[i].name, self.entrants[i].facts()) for i in seats]
        detail = {"detail": game.detail[:500]} if game.detail else {}
        waited = (None,) * len(game.fixture.opening.actions)
        return GameRecord(
            self.rules,
            game.moves,
            game.result,
            players=(infos[0], infos[1]),
            seconds_used=(*waited, *game.seconds) if any(s is not None for s in game.seconds) else None,
            id=ticket.id,
            date=datetime.now(UTC).isoformat(timespec="seconds"),
            seed=game.fixture.seed,
            extra={"pair": ticket.pair, "opening_plies": len(game.fixture.opening.actions), **detail},
            replay=False,
        )


@dataclass(frozen=True, order=True)
class Ticket:
    """The name of a game: which two entrants, which pair of theirs, and which game of the pair.

    Attributes:
        pair: counts from 0.
        first, second: the entrants, by number; the first has the seat `game`.
        game: 0 or 1.
    """

    pair: int
    first: int
    second: int
    game: int

    @property
    def id(self) -> str:
        """As text: the id of its record."""
        return f"{self.first}-{self.second}-{self.pair}-{self.game}"

    @classmethod
    def of(cls, text: str) -> Ticket:
        """The ticket of a record's id.

        Raises:
            ValueError: it is none.
        """
        first, second, pair, game = map(int, text.split("-"))
        return cls(pair, first, second, game)


class MatchTable:
    """Where games of a tournament are played: its players sit down when they are first needed, and stay.

    Args:
        tournament: what is played.
        threads: CPU threads a player may use.
    """

    def __init__(self, tournament: Tournament, threads: int = 1) -> None:
        self._tournament, self._threads = tournament, threads
        self._players: dict[int, Player] = {}

    def play(self, tickets: Sequence[Ticket]) -> list[GameRecord]:
        """Play games of the same two players, and give their records.

        Raises:
            ConfigError, ModelError: a player cannot play at all.
        """
        first, second = (self._player(n) for n in (tickets[0].first, tickets[0].second))
        fixtures = [self._tournament.fixture(t) for t in tickets]
        if not self._alone(tickets[0]):
            games = play_games(first, second, fixtures)
        else:  # a program is told each game once, and has its machine to itself
            games = [game for fixture in fixtures for game in play_games(first, second, [fixture])]
        return [self._tournament.record(t, g) for t, g in zip(tickets, games, strict=True)]

    def _alone(self, ticket: Ticket) -> bool:
        return any(self._tournament.entrants[n].is_alone for n in (ticket.first, ticket.second))

    def _player(self, number: int) -> Player:
        if number not in self._players:
            self._players[number] = self._tournament.entrants[number].player(self._tournament.rules, self._threads)
        return self._players[number]

    def close(self) -> None:
        """End the programs that play here."""
        for player in self._players.values():
            if isinstance(player, GtpPlayer):
                player.close()
        self._players.clear()


def opening_set(rules: Rules, pairs: int, book: Path | None, seed: int) -> tuple[tuple[Opening, ...], str]:
    """Openings for so many pairs, and where they come from.

    Args:
        book: a file; None takes the book that comes with the program, or makes one of few rollouts where there is none.

    Raises:
        NotationError: the file is no book.
        ConfigError: it is of other rules.
    """
    found, source = shipped_book(rules), "of the book that comes along"
    if book is not None:
        found, source = read_book(book), f"of {book.name}"
        if found.rules != rules:
            raise ConfigError(f"{book} is of {found.rules}, not of {rules}")
    if found is None:
        made = more_openings(rules, (), max(pairs, _LEAST_OPENINGS), seed)
        return made, f"judged by {_ROLLOUTS} rollouts"
    order = np.random.default_rng(seed).permutation(len(found.openings))
    openings = tuple(found.openings[i] for i in order)
    if pairs > len(openings):
        source += f", then others judged by {_ROLLOUTS} rollouts"
    return more_openings(rules, openings, pairs, seed), source


def more_openings(rules: Rules, openings: tuple[Opening, ...], count: int, seed: int) -> tuple[Opening, ...]:
    """Openings for `count` pairs: these, and behind them as many more as that takes and there are.

    Models play the same games again from the same opening, and pairs counted twice would make ratings too sure.
    """
    missing = count - len(openings)
    if missing <= 0:
        return openings
    rng = np.random.default_rng((seed, len(openings)))
    turns = openings[0].position.turn if openings else 2
    judge = rollout_judge(rules, _ROLLOUTS)
    made = make_book(rules, judge, "", missing, rng, turns, _CANDIDATES * missing, known=openings)
    order = rng.permutation(len(made.openings))
    return (*openings, *(made.openings[i] for i in order))
