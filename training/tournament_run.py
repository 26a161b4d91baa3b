"""Plays a tournament: hands its games out, keeps them, stops when a test is decided, and reports."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from lifeline.records import GameRecord
from training.report import ratings_png, report_html, standings_json
from training.sprt import Sprt
from training.standings import SprtState, Standings, standings
from training.tournament import MatchTable, Ticket, Tournament
from training.tournament_store import Store, units

REPORT_FILE = "report.html"
STANDINGS_FILE = "standings.json"
PICTURE_FILE = "ratings.png"
# Games that one worker plays at once: more fill no batch better.
_BATCH = 64


class Players(Protocol):
    """Where games are played: here, or by workers."""

    @property
    def workers(self) -> int:
        """How many play at once."""
        ...

    def run(self, bundles: Iterable[list[Ticket]]) -> Iterator[list[GameRecord]]:
        """Play bundles of games, and give the records of each as it is done."""
        ...

    def close(self) -> None:
        """End whatever has been started."""
        ...


class LocalPlayers:
    """Plays in this process, one bundle after the other."""

    workers = 1

    def __init__(self, tournament: Tournament, threads: int) -> None:
        self._table = MatchTable(tournament, threads)

    def run(self, bundles: Iterable[list[Ticket]]) -> Iterator[list[GameRecord]]:
        """See `Players.run`."""
        for bundle in bundles:
            yield self._table.play(bundle)

    def close(self) -> None:
        """End the programs that play here."""
        self._table.close()


@dataclass(frozen=True)
class Progress:
    """How far a tournament is.

    Attributes:
        done: games played; total: games in all.
        played: of them, since this process began; seconds: it took.
        wins: of the first of two players; None where there are more.
        sprt: the sequential test so far, if there is one.
    """

    done: int
    total: int
    played: int
    seconds: float
    wins: int | None
    sprt: SprtState | None


def play(store: Store, players: Players, sprt: Sprt | None, progress: Callable[[Progress], None]) -> None:
    """Play what is left of a tournament, or until a sequential test of its two players is decided.

    Args:
        sprt: the test; None plays all games.
        progress: called every now and then.
    """
    began, before, total = time.monotonic(), len(store.done), store.tournament.games

    def tell() -> SprtState | None:
        state = None if sprt is None else sprt.first_crossing(store.scores(0, 1))[1]
        two = len(store.tournament.entrants) == 2
        wins = sum(won for won, _ in store.done.values()) if two else None
        now = time.monotonic() - began
        progress(Progress(len(store.done), total, len(store.done) - before, now, wins, state))
        return state

    if _decided(tell()):
        return
    for records in players.run(units(store, players.workers, _BATCH)):
        if records:
            store.add(records)
        if _decided(tell()):
            return


def _decided(state: SprtState | None) -> bool:
    return state is not None and state.verdict != "undecided"


def report(store: Store, anchor: str, anchor_elo: float, sprt: Sprt | None) -> Standings | None:
    """Rate the players by the games so far, and write table, picture and report into the folder.

    Args:
        anchor: the player whose rating is fixed, at anchor_elo; before it has played the first one that has, at 0.

    Returns:
        The standings; None where no pair has been played to its end.

    Raises:
        LifelineError: a file cannot be written.
    """
    pairs, t = store.pairs(), store.tournament
    if not pairs:
        return None
    state = None if sprt is None else sprt.first_crossing(store.scores(0, 1))[1]
    if not any(anchor in (pair.first, pair.second) for pair in pairs):
        anchor, anchor_elo = pairs[0].first, 0.0
    found = standings(pairs, anchor, np.random.default_rng(t.seed), anchor_elo, store.forfeits(), state)
    store.write(STANDINGS_FILE, (json.dumps(standings_json(found), indent=1) + "\n").encode())
    store.write(PICTURE_FILE, ratings_png(found))
    page = report_html(_title(t), t.rules, _facts(store), found, store.records())
    store.write(REPORT_FILE, page.encode())
    return found


def _title(t: Tournament) -> str:
    return " against ".join(e.name for e in t.entrants) if len(t.entrants) == 2 else f"{len(t.entrants)} players"


def _facts(store: Store) -> dict[str, str]:
    t = store.tournament
    facts = {
        "Game": f"base {t.rules.base}, {t.rules.opening}" + (f", komi {t.rules.komi}" if t.rules.komi else ""),
        "Games": f"{len(store.done)} of {t.games}, in pairs: each opening twice, seats exchanged",
        "Format": "gauntlet" if t.gauntlet else "round robin",
        "Openings": f"{len(t.openings)}, {t.openings_from}" + ("; they repeat" if t.pairs > len(t.openings) else ""),
        "Seed": str(t.seed),
    }
    for e in t.entrants:
        model = f", model {e.digest[:12]}" if e.digest else ""
        seconds = f", {e.budget.seconds:g} s a move" if e.budget.seconds is not None else ""
        simulations = f", {e.budget.simulations} simulations a move" if e.model and not seconds else ""
        simulations += f", {e.budget.search} search" if e.model else ""
        simulations += "" if e.budget.solver else " without the solver"
        facts[f"Player {e.name}"] = f"{e.text}{simulations}{seconds}{model}"
    return facts


@contextmanager
def local_or_cluster(tournament: Tournament, workers: int | None, address: str | None) -> Iterator[Players]:
    """Where a tournament is played, until the end of the block: by workers on Ray, or with 0 of them in this process.

    Args:
        workers: None = one a core.
        address: of a running cluster; None starts one on this machine.

    Raises:
        RunError: the cluster cannot be reached.
    """
    players: Players
    if workers == 0:
        players = LocalPlayers(tournament, threads=1)
    else:
        from training.workers import MatchCluster

        players = MatchCluster(tournament, workers, address)
    try:
        yield players
    finally:
        players.close()
