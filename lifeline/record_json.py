"""A game record as a line of JSON. docs/records.md has the schema."""

from __future__ import annotations

import json
from typing import Any, NoReturn

from lifeline.errors import LifelineError, NotationError, RecordError, RulesError
from lifeline.game_record import MAX_INTEGER, FieldError, GameRecord, PlayerInfo, Result, is_whole, short
from lifeline.notation import action_text, parse_move
from lifeline.rules import Rules

VERSION = 1
# Many times the longest game with all there is to tell of it.
MAX_LINE = 1_000_000

# The keys of a line in the order they are written; docs/records.md has their meaning.
_SERIES = ("seconds_used", "seconds_left", "values", "visits")
_KEYS = (
    "version",
    "id",
    "base",
    "opening",
    "komi",
    "adjacent_setup",
    "start",
    "players",
    "moves",
    *_SERIES,
    "winner",
    "reason",
    "date",
    "seed",
    "extra",
)
_REQUIRED = ("version", "base", "opening", "moves", "winner", "reason")


def format_record(record: GameRecord) -> str:
    """The record as a line of JSON in ASCII, without the end of the line; `parse_record` reads it back equal.

    Raises:
        RecordError: longer than 1 000 000 characters.
    """
    rules, result = record.rules, record.result
    fields = {
        "version": VERSION,
        "id": record.id,
        "base": rules.base,
        "opening": rules.opening,
        "komi": rules.komi,
        "adjacent_setup": rules.adjacent_setup,
        "start": record.start,
        "players": [{"name": p.name, **p.info} for p in record.players],
        "moves": record.moves,
        **{name: getattr(record, name) for name in _SERIES},
        "winner": None if result is None else result.winner,
        "reason": None if result is None else result.reason,
        "date": record.date,
        "seed": record.seed,
        "extra": record.extra,
    }
    text = json.dumps({k: v for k, v in fields.items() if v is not None or k in _REQUIRED}, allow_nan=False)
    if len(text) >= MAX_LINE:
        raise RecordError(f"the record is {len(text)} characters long, {MAX_LINE - 1} are the most")
    return text


def parse_record(text: str, file: str | None = None, line: int | None = None, *, replay: bool = True) -> GameRecord:
    """Read the line of `format_record`, with or without the end of the line.

    Args:
        text: the line.
        file, line: where it comes from, for messages.
        replay: see `GameRecord`.

    Raises:
        RecordError: not such a line; the message names file, line, column and reason.
    """
    try:
        if len(text) > MAX_LINE:
            raise FieldError((), f"longer than {MAX_LINE} characters")
        try:
            value = _DECODER.decode(text)
        except json.JSONDecodeError as error:
            # JSON counts lines of its own; in a line of a file only the place counts.
            raise RecordError(f"not JSON: {error.msg}", file, line, error.pos + 1) from None
        except RecursionError:
            raise FieldError((), "not a record: nested too deeply") from None
        except FieldError:
            raise
        except ValueError as error:  # a number of thousands of digits
            raise FieldError((), f"not a record: {str(error)[:80]}") from None
        return _from_json(value, replay)
    except FieldError as error:
        raise RecordError(error.reason, file, line, _column(text, error.path)) from None


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        keys = [key for key, _ in pairs]
        twice = next(key for i, key in enumerate(keys) if key in keys[:i]) if len(keys) < 1000 else keys[0]
        raise FieldError((), f"a key appears twice, such as {short(twice)}")
    return found


def _no_constant(name: str) -> NoReturn:
    raise FieldError((), f"{name} is no number of JSON")


_DECODER = json.JSONDecoder(object_pairs_hook=_object, parse_constant=_no_constant)


def _from_json(value: Any, replay: bool) -> GameRecord:
    """The record of a JSON value; path and reason of what is wrong with it are in the error."""
    if not isinstance(value, dict):
        raise FieldError((), "a record is a JSON object")
    # First of all: another version may have other keys.
    if not is_whole(value.get("version"), VERSION, VERSION):
        raise FieldError(("version",), f"version {VERSION} is read here, not {short(value.get('version'))}")
    for key in value:
        if key not in _KEYS:
            raise FieldError((key,), f"unknown key {short(key)}; what is not in the schema goes into extra")
    for key in _REQUIRED:
        if key not in value:
            raise FieldError((), f"the key {key} is missing")
    rules = _rules(value)
    moves, origins = _moves(value["moves"], rules)
    try:
        return GameRecord(
            rules,
            moves,
            _result(value),
            _players(value),
            _typed(value, "start", str, "a position text"),
            **{name: _series(value, name) for name in _SERIES},
            id=_typed(value, "id", str, "a text"),
            date=_typed(value, "date", str, "a text"),
            seed=value.get("seed"),
            extra=_typed(value, "extra", dict, "an object"),
            replay=replay,
        )
    except FieldError as error:
        if len(error.path) == 2 and error.path[0] == "moves":
            raise FieldError(("moves", origins[int(error.path[1])]), error.reason) from None
        raise


def _typed(value: dict[str, Any], key: str, kind: type, name: str, default: Any = None) -> Any:
    found = value.get(key)
    if found is None:
        return default
    if not isinstance(found, kind):
        raise FieldError((key,), f"{key} must be {name}, not {short(found)}")
    return found


def _rules(value: dict[str, Any]) -> Rules:
    opening = _typed(value, "opening", str, "a text", "")
    adjacent = _typed(value, "adjacent_setup", str, "a text", "allowed")
    base, komi = value["base"], value.get("komi", 0)
    for key, number in (("base", base), ("komi", komi)):
        if not is_whole(number, 0, MAX_INTEGER):
            raise FieldError((key,), f"{key} must be a whole number, not {short(number)}")
    try:
        Rules(base)  # alone, so that what is wrong with it is found in its place
    except RulesError as error:
        raise FieldError(("base",), str(error)) from None
    try:
        return Rules(base, opening[:40], komi, adjacent[:40])
    except LifelineError as error:
        # Its message begins with the name of the option.
        raise FieldError((str(error).split(" ", 1)[0],), str(error)) from None


def _moves(tokens: Any, rules: Rules) -> tuple[tuple[str, ...], list[int]]:
    """The plies, and for each the index of its token: the two stones of a first turn may share one."""
    if not isinstance(tokens, list):
        raise FieldError(("moves",), f"moves must be a list of move texts, not {short(tokens)}")
    plies: list[str] = []
    origins: list[int] = []
    for i, token in enumerate(tokens):
        if not isinstance(token, str):
            raise FieldError(("moves", i), f"a move is a text, not {short(token)}")
        try:
            actions = parse_move(token, rules.board)
        except NotationError as error:
            raise FieldError(("moves", i), f"ply {len(plies) + 1}: {error}") from None
        plies += [action_text(action, rules.board) for action in actions]
        origins += [i] * len(actions)
    return tuple(plies), origins


def _result(value: dict[str, Any]) -> Result | None:
    winner, reason = value["winner"], value["reason"]
    if winner is None and reason is None:
        return None
    if winner is None or reason is None:
        key = "winner" if winner is None else "reason"
        raise FieldError((key,), "winner and reason are both null, for a game not finished, or neither is")
    return Result(winner, reason)


def _players(value: dict[str, Any]) -> tuple[PlayerInfo, PlayerInfo]:
    players = _typed(value, "players", list, "a list of two", [{"name": "?"}, {"name": "?"}])
    if len(players) != 2:
        raise FieldError(("players",), f"there are two players, not {len(players)}")
    for seat, player in enumerate(players):
        if not isinstance(player, dict) or "name" not in player:
            raise FieldError(("players", seat), f"a player is an object with a name, not {short(player)}")
    first, second = (PlayerInfo(p["name"], {k: v for k, v in p.items() if k != "name"}) for p in players)
    return first, second


def _series(value: dict[str, Any], name: str) -> tuple[Any, ...] | None:
    found = _typed(value, name, list, "a list")
    return None if found is None else tuple(found)


def _column(text: str, path: tuple[str | int, ...]) -> int:
    """Where in a line the value at a path begins, 1-based; 1 where there is none. The line is known to be JSON."""
    if not path:
        return 1
    decoder = json.JSONDecoder()
    at = _skip(text, 0)
    for step in path:
        closing = {"{": "}", "[": "]"}.get(text[at])
        at, index = _skip(text, at + 1), 0
        while closing and text[at] != closing:
            key: str | int = index
            if closing == "}":
                key, at = decoder.raw_decode(text, at)
                at = _skip(text, _skip(text, at) + 1)  # the colon
            if key == step:
                break
            _, at = decoder.raw_decode(text, at)
            at, index = _skip(text, at), index + 1
            if text[at] == ",":
                at = _skip(text, at + 1)
        else:
            return 1
    return at + 1


def _skip(text: str, at: int) -> int:
    while at < len(text) and text[at] in " \t\n\r":
        at += 1
    return at
