"""What the analysis engine is asked: lines of JSON, made into positions to be searched, or refused."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import lru_cache
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from lifeline.env import BatchEnv
from lifeline.errors import LifelineError
from lifeline.notation import action_text, parse_move
from lifeline.rules import MAX_TURN, Position, Rules

# The longest query that means anything, a game of base 12 with all its turns, has some 10 000 characters.
MAX_QUERY = 65_536
_MAX_MOVES = 2_000
_MAX_MESSAGE = 300

Id = Annotated[str, Field(max_length=200)] | Annotated[int, Field(ge=-(2**63), lt=2**63)]


class QueryError(LifelineError):
    """A line that is refused.

    Attributes:
        id: the line's, None where it could not be read.
        field: what is wrong, None where it is no single field.
    """

    def __init__(self, id_: str | int | None, field: str | None, message: str) -> None:
        self.id, self.field = id_, field
        super().__init__("".join(c if c.isprintable() else "?" for c in " ".join(message.split()))[:_MAX_MESSAGE])


@dataclass(frozen=True)
class Query:
    """Positions of a game that are to be analysed.

    Attributes:
        id: comes back with every answer.
        rules: what is played.
        positions: by turn, the number of moves played before.
        simulations: of each search.
        seed: 0..2**64-1.
        prior: whether the network's own probabilities are wanted too.
        unknown: fields that mean nothing.
    """

    id: str | int
    rules: Rules
    positions: dict[int, Position]
    simulations: int
    seed: int
    prior: bool
    unknown: tuple[str, ...]


@dataclass(frozen=True)
class Action:
    """Something else that is asked for.

    Attributes:
        id: comes back with the answer.
        name: "query_version", "terminate" or "terminate_all".
        terminate_id: whose analyses are to end; of "terminate".
        turns: which of them; None = all.
        unknown: fields that mean nothing.
    """

    id: str | int
    name: str
    terminate_id: str | int | None
    turns: frozenset[int] | None
    unknown: tuple[str, ...]


class _Fields(BaseModel):
    model_config = ConfigDict(extra="allow", strict=True)

    id: Id

    def unknown(self) -> tuple[str, ...]:
        return tuple(self.model_extra or ())


class _QueryFields(_Fields):
    base: int
    opening: str = "strong_pie"
    komi: int = 0
    adjacent_setup: str = "allowed"
    position: str | None = None
    moves: list[str] = Field(default=[], max_length=_MAX_MOVES)
    turns: list[int] | None = Field(default=None, min_length=1, max_length=_MAX_MOVES + 1)
    simulations: int | None = None
    seed: int = Field(default=0, ge=0, lt=2**64)
    prior: bool = False


class _ActionFields(_Fields):
    action: Literal["query_version", "terminate", "terminate_all"]
    terminate_id: Id | None = None
    turns: list[int] | None = Field(default=None, max_length=_MAX_MOVES + 1)


def read_line(line: bytes, simulations: int, most_simulations: int) -> Query | Action:
    """What a line asks for.

    Args:
        line: as it was read, at most `MAX_QUERY` bytes.
        simulations: where the query says nothing of them.
        most_simulations: that a query may ask for.

    Raises:
        QueryError: it cannot be understood, or not be done.
    """
    if len(line) > MAX_QUERY:
        raise QueryError(None, None, f"a line has at most {MAX_QUERY} bytes")
    try:
        value = json.loads(line.decode())
    except (ValueError, RecursionError) as error:
        what = "too deep" if isinstance(error, RecursionError) else str(error)
        raise QueryError(None, None, f"a query is a JSON object on one line: {what}") from None
    if not isinstance(value, dict):
        raise QueryError(None, None, f"a query is a JSON object, not {type(value).__name__}")
    try:
        if "action" in value:
            return _action(_ActionFields.model_validate(value))
        return _query(_QueryFields.model_validate(value), simulations, most_simulations)
    except ValidationError as error:
        first = error.errors()[0]
        field = str(first["loc"][0]) if first["loc"] else None
        raise QueryError(_readable_id(value), field, f"{field}: {first['msg']}") from None


def _readable_id(value: dict[str, Any]) -> str | int | None:
    try:
        return _Fields.model_validate({"id": value.get("id")}).id
    except ValidationError:
        return None


def _action(f: _ActionFields) -> Action:
    if (f.action == "terminate") != (f.terminate_id is not None):
        raise QueryError(f.id, "terminate_id", "terminate_id goes with the action terminate, and it with that")
    turns = None if f.turns is None else frozenset(f.turns)
    return Action(f.id, f.action, f.terminate_id, turns, f.unknown())


def _query(f: _QueryFields, simulations: int, most_simulations: int) -> Query:
    count = simulations if f.simulations is None else f.simulations
    if not (count == 0 or 2 <= count <= most_simulations):
        raise QueryError(f.id, "simulations", f"simulations: 0 (no search) or 2 to {most_simulations}, not {count}")
    field = "base"
    try:
        Rules(f.base)
        field = "opening"
        Rules(f.base, f.opening)
        field = "adjacent_setup"
        Rules(f.base, f.opening, adjacent_setup=f.adjacent_setup)
        field = "komi"
        rules = Rules(f.base, f.opening, f.komi, f.adjacent_setup)
        field = "position"
        start = Position.start(rules) if f.position is None else Position.parse(f.position, rules)
        field = "turns"
        turns = [len(f.moves)] if f.turns is None else f.turns
        if not all(0 <= t <= len(f.moves) for t in turns) or len(set(turns)) < len(turns):
            raise QueryError(f.id, field, f"turns: different numbers from 0 to {len(f.moves)}, that of the moves")
        field = "moves"
        if start.turn + len(f.moves) > MAX_TURN:
            raise QueryError(f.id, field, f"moves: a game has at most {MAX_TURN} turns")
        positions = _positions(start, f.moves, set(turns))
    except QueryError:
        raise
    except LifelineError as error:
        raise QueryError(f.id, field, f"{field}: {error}") from None
    return Query(f.id, rules, {t: positions[t] for t in turns}, count, f.seed, f.prior, f.unknown())


@lru_cache(maxsize=16)
def _env(rules: Rules) -> BatchEnv:
    return BatchEnv(rules, 1)


def _positions(start: Position, moves: list[str], turns: set[int]) -> dict[int, Position]:
    """The positions after some numbers of moves. By the kernels: rules.py would take longer than many a search."""
    found = {0: start} if 0 in turns else {}
    if not moves:
        return found
    env = _env(start.rules)
    env.reset(positions=[start])
    for number, text in enumerate(moves, start=1):
        actions = parse_move(text, start.rules.board)
        if len(actions) > 1:
            env.position(0).play(text)  # refuses two stones where one is due
        for action in actions:
            if not env.legal_action_mask[0, action]:
                position = env.position(0)
                why = "the game is over" if position.is_over else "illegal move"
                raise LifelineError(f"{why}: {action_text(action, start.rules.board)} in {position.text()}")
            env.step(np.array([action]))
        if number in turns:
            found[number] = env.position(0)
    return found
