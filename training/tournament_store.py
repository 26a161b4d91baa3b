"""A tournament's folder: what is to be played, what has been played already, and what is left.

`tournament.json` says what is to be played, once and for all; `players/` holds the models; `games.jsonl` the games, a
record each, appended as they end. What is missing in it is what is left to play: so a tournament that is killed goes on
without a game lost or played twice, but for those it was playing.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from lifeline.errors import ConfigError, IllegalMoveError, LifelineError, RecordError
from lifeline.files import hold, write_atomic
from lifeline.play.openings import Opening
from lifeline.play.players import Budget
from lifeline.records import GameRecord, append_records, read_records
from lifeline.rules import Rules
from lifeline.version import __version__
from training.entrants import Entrant
from training.ratings import Pair
from training.tournament import Ticket, Tournament, more_openings

TOURNAMENT_FORMAT = 1
SETTINGS_FILE = "tournament.json"
GAMES_FILE = "games.jsonl"
_LOCK_FILE = "lock"
_PLAYERS = "players"


class Store:
    """A tournament's folder.

    Args:
        folder: where it is.
        tournament: what is to be played in it.

    Attributes:
        done: winner and reason of each game played.
    """

    def __init__(self, folder: Path, tournament: Tournament) -> None:
        self.folder, self.tournament = folder, tournament
        self.done: dict[Ticket, tuple[bool, str]] = {}
        self._pairings = frozenset(tournament.pairings)
        self.read()

    def read(self) -> None:
        """Take in what lies on the disk: after an interruption, too, that may have come between writing and noting.

        Raises:
            RecordError: the games are damaged, or of another tournament.
        """
        self.done.clear()
        for record in self.records() if self._games.exists() else ():
            self._note(record)

    @property
    def _games(self) -> Path:
        return self.folder / GAMES_FILE

    def records(self) -> Iterator[GameRecord]:
        """The games played so far. A last line that was cut off by a kill is passed over; it is removed by `add`.

        Raises:
            RecordError: another line is damaged.
        """

        def passed_over(error: RecordError) -> None:
            if "the last line is cut off" not in error.reason:
                raise error

        yield from read_records(self._games, on_error=passed_over, replay=False)

    def _note(self, record: GameRecord) -> None:
        try:
            ticket = Ticket.of(record.id or "")
        except ValueError:
            raise self._foreign(record) from None
        if (ticket.first, ticket.second) not in self._pairings or ticket.pair < 0 or ticket.game not in (0, 1):
            raise self._foreign(record)
        if record.result is None or ticket in self.done:
            raise RecordError(f"game {record.id} is there twice or has no result", str(self._games))
        self.done[ticket] = record.result.winner == ticket.game, record.result.reason

    def _foreign(self, record: GameRecord) -> RecordError:
        return RecordError(f"a game of another tournament: id {record.id!r}", str(self._games))

    def add(self, records: Sequence[GameRecord]) -> None:
        """Add games that have just been played; they are on the disk when this returns.

        Raises:
            RecordError: the file cannot be written.
        """
        append_records(self._games, records)
        for record in records:
            self._note(record)

    def write(self, name: str, data: bytes) -> None:
        """Write a file beside the games.

        Raises:
            LifelineError: it cannot be written.
        """
        _write(self.folder / name, data)

    def left(self) -> list[Ticket]:
        """The games that have not been played, those of early pairs first."""
        pairings = self.tournament.pairings
        return [
            ticket
            for pair in range(self.tournament.pairs)
            for first, second in pairings
            for game in (0, 1)
            if (ticket := Ticket(pair, first, second, game)) not in self.done
        ]

    def pairs(self) -> list[Pair]:
        """The pairs of which both games have been played."""
        return [
            Pair(self._name(t.first), self._name(t.second), ((True, won), (False, self.done[other][0])))
            for t, (won, _) in sorted(self.done.items())
            if t.game == 0 and (other := replace(t, game=1)) in self.done
        ]

    def scores(self, first: int, second: int) -> list[float]:
        """The scores of the first player, 0, 0.5 or 1, in the pairs of two entrants up to the first one not played."""
        scores = []
        for pair in range(self.tournament.pairs):
            found = [self.done.get(Ticket(pair, first, second, game)) for game in (0, 1)]
            if found[0] is None or found[1] is None:
                break
            scores.append((found[0][0] + found[1][0]) / 2)
        return scores

    def forfeits(self) -> dict[str, int]:
        """Games that each player lost otherwise than on the board."""
        counts = {entrant.name: 0 for entrant in self.tournament.entrants}
        for ticket, (won, reason) in self.done.items():
            if reason not in ("played out", "resigned"):
                counts[self._name(ticket.second if won else ticket.first)] += 1
        return counts

    def _name(self, number: int) -> str:
        return self.tournament.entrants[number].name


def create(folder: Path, tournament: Tournament) -> Store:
    """Begin a tournament in a folder of its own, or go on with the same one.

    One of which no game has been played gives way: what was wrong with it may have been noticed at its start.

    Raises:
        ConfigError: the folder holds something else, or another tournament.
        LifelineError: it cannot be written.
    """
    settings = _settings(tournament)
    try:
        if not _is_unplayed(folder):
            if not (folder / SETTINGS_FILE).exists():
                raise _in_use(folder)
            _see_that_it_is_the_same(folder, _read_settings(folder), settings)
            return Store(folder, tournament)
        (folder / SETTINGS_FILE).unlink(missing_ok=True)
        (folder / _PLAYERS).mkdir(parents=True, exist_ok=True)
        for path in (folder / _PLAYERS).glob("*.onnx"):
            path.unlink()
    except OSError as error:
        raise LifelineError(f"{folder}: cannot be written: {error.strerror or error}") from None
    for number, entrant in enumerate(tournament.entrants):
        if entrant.model is not None:
            _write(folder / _PLAYERS / f"{number}.onnx", entrant.model)
    _write_settings(folder, tournament)  # last: a folder that has it is a tournament
    return Store(folder, tournament)


def _is_unplayed(folder: Path) -> bool:
    """Whether a folder is not there or empty, or holds no more than a tournament does before its first game."""
    names = {p.name for p in folder.iterdir()} if folder.exists() else set()
    temporary = f".{SETTINGS_FILE}."  # of a process that was killed
    known = {name for name in names if name in (SETTINGS_FILE, _PLAYERS, _LOCK_FILE) or name.startswith(temporary)}
    # Players alone may be anybody's.
    return not names or (names == known and not names.isdisjoint((SETTINGS_FILE, _LOCK_FILE)))


def _in_use(folder: Path) -> ConfigError:
    return ConfigError(f"{folder} is in use already; name another --out")


def _see_that_it_is_the_same(folder: Path, found: dict[str, Any], wanted: dict[str, Any]) -> None:
    different = [key for key in wanted if key != "version" and found.get(key) != wanted[key]]
    if "pairs" in different and set(different) <= {"pairs", "openings", "openings_from"}:
        games = f"{2 * found['pairs']} games for each two players"
        raise ConfigError(f"{folder} holds this tournament with {games}; for more: --resume {folder} --games N")
    if different:
        raise ConfigError(f"{folder} holds a tournament with other {', '.join(different)}; name another --out")


def tournament_in(folder: Path) -> Tournament:
    """The tournament of a folder.

    Raises:
        ConfigError: the folder holds none, or it is damaged.
    """
    settings = _read_settings(folder)
    try:
        return _tournament_of(folder, settings)
    except OSError as error:
        raise ConfigError(f"{error.filename or folder} cannot be read: {error.strerror or error}") from None
    except (KeyError, TypeError, AttributeError, ValueError, IllegalMoveError) as error:
        raise ConfigError(f"{folder / SETTINGS_FILE} is damaged: {str(error)[:120]}") from None


def resume(folder: Path, pairs: int | None = None) -> Store:
    """Go on with a tournament.

    Args:
        pairs: of each two players that meet, where there are to be more of them than was said at the beginning.

    Raises:
        ConfigError: the folder holds none, or fewer pairs are asked for.
        RecordError: its games are damaged.
        LifelineError: it cannot be written.
    """
    tournament = tournament_in(folder)
    if pairs is not None:
        if pairs < tournament.pairs:
            raise ConfigError(f"{folder} is of {2 * tournament.pairs} games for each two players already")
        openings = more_openings(tournament.rules, tournament.openings, pairs, tournament.seed)
        tournament = replace(tournament, pairs=pairs, openings=openings)
        _write_settings(folder, tournament)
    return Store(folder, tournament)


def _write(path: Path, data: bytes) -> None:
    try:
        write_atomic(path, data)
    except OSError as error:
        raise LifelineError(f"{path}: cannot be written: {error.strerror or error}") from None


def _write_settings(folder: Path, tournament: Tournament) -> None:
    _write(folder / SETTINGS_FILE, (json.dumps(_settings(tournament), indent=1) + "\n").encode())


def _settings(t: Tournament) -> dict[str, Any]:
    return {
        "format": TOURNAMENT_FORMAT,
        "version": __version__,
        "rules": {
            "base": t.rules.base,
            "opening": t.rules.opening,
            "komi": t.rules.komi,
            "adjacent_setup": t.rules.adjacent_setup,
        },
        "players": [
            {
                "name": e.name,
                "player": e.text,
                "simulations": e.budget.simulations,
                "seconds": e.budget.seconds,
                "search": e.budget.search,
                "level": e.budget.level,
                **({} if e.budget.solver else {"solver": False}),
                "model": e.digest,
            }
            for e in t.entrants
        ],
        "gauntlet": t.gauntlet,
        "pairs": t.pairs,
        "seed": t.seed,
        "openings_from": t.openings_from,
        "openings": [o.text() for o in t.openings],
    }


def _read_settings(folder: Path) -> dict[str, Any]:
    path = folder / SETTINGS_FILE
    try:
        value = json.loads(path.read_bytes())
    except OSError as error:
        raise ConfigError(f"{folder} holds no tournament: {error.strerror or error}") from None
    except ValueError:
        raise ConfigError(f"{path} is damaged") from None
    if not isinstance(value, dict) or value.get("format") != TOURNAMENT_FORMAT:
        raise ConfigError(f"{path} is no tournament of this version")
    return value


def _tournament_of(folder: Path, value: dict[str, Any]) -> Tournament:
    rules = Rules(**value["rules"])
    entrants = []
    for number, player in enumerate(value["players"]):
        model = None
        if player["model"] is not None:
            model = (folder / _PLAYERS / f"{number}.onnx").read_bytes()
        entrant = Entrant(player["name"], player["player"], _budget(player), model)
        if entrant.digest != player["model"]:
            raise ValueError(f"players/{number}.onnx is not the model that began")
        entrants.append(entrant)
    openings = [Opening.parse(rules, text) for text in value["openings"]]
    if not openings:
        raise ValueError("it has no openings")
    return Tournament(
        rules,
        tuple(entrants),
        tuple(openings),
        int(value["pairs"]),
        bool(value["gauntlet"]),
        int(value["seed"]),
        str(value["openings_from"]),
    )


def _budget(player: dict[str, Any]) -> Budget:
    level, solver = player.get("level", "full"), player.get("solver", True)
    return Budget(player["simulations"], player["seconds"], player["search"], level, solver)


@contextmanager
def locked(folder: Path, make: bool) -> Iterator[None]:
    """Hold a tournament's folder for one process, where the system can.

    Args:
        make: whether to make the folder if it is not there. One that holds something else is left as it is.

    Raises:
        ConfigError: another process plays in it, or it holds no tournament.
        LifelineError: the folder cannot be written.
    """
    try:
        if make:
            if not _is_unplayed(folder) and not (folder / SETTINGS_FILE).exists():
                raise _in_use(folder)
            folder.mkdir(parents=True, exist_ok=True)
        elif not (folder / SETTINGS_FILE).exists():
            raise ConfigError(f"{folder} holds no tournament")
        file = hold(folder / _LOCK_FILE)
    except BlockingIOError:
        raise ConfigError(f"{folder}: another process plays this tournament") from None
    except OSError as error:
        raise LifelineError(f"{folder}: cannot be written: {error.strerror or error}") from None
    with file:
        yield


def units(store: Store, workers: int, batch: int) -> list[list[Ticket]]:
    """The games that are left, in bundles of two players' games that one worker plays at once.

    Args:
        workers: that share them out.
        batch: games in a bundle, at most. Games that are best played alone come one pair a bundle.
    """
    entrants = store.tournament.entrants
    by_pairing: dict[tuple[int, int], list[Ticket]] = {}
    for ticket in store.left():
        by_pairing.setdefault((ticket.first, ticket.second), []).append(ticket)
    bundles: list[list[Ticket]] = []
    for (first, second), tickets in by_pairing.items():
        alone = entrants[first].is_alone or entrants[second].is_alone
        # Enough bundles for all workers to be busy to the end, few enough for their batches to be large.
        fair = -(-len(tickets) // (2 * max(1, workers)))
        size = 2 if alone else max(2, min(batch, fair + fair % 2))
        bundles += [tickets[i : i + size] for i in range(0, len(tickets), size)]
    return sorted(bundles)
