"""What a page may ask, checked field by field before anything is done with it."""

from __future__ import annotations

from typing import Annotated, TypeVar

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError

from lifeline.board import MAX_BASE, MIN_BASE
from lifeline.errors import RequestError
from lifeline.game_record import MAX_NAME, MAX_PLIES
from lifeline.notation import MAX_TEXT
from lifeline.play.server_view import Replay, replay
from lifeline.record_json import MAX_LINE
from lifeline.rules import Rules

# A two-stone turn, such as "w12,w11".
_Move = Annotated[str, StringConstraints(max_length=12)]
_Word = Annotated[str, StringConstraints(max_length=40)]
_Name = Annotated[str, StringConstraints(min_length=1, max_length=MAX_NAME)]
_Seed = Annotated[int, Field(ge=0, le=2**53 - 1)]  # what a page can count to

MAX_VALUES = 32
"""Positions that are judged for one query."""


class RulesQuery(BaseModel):
    """What is played; see `Rules`."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)

    base: Annotated[int, Field(ge=MIN_BASE, le=MAX_BASE)]
    opening: _Word = "strong_pie"
    komi: int = 0
    adjacent_setup: _Word = "allowed"

    def rules(self) -> Rules:
        """The rules.

        Raises:
            RulesError: there are none such.
        """
        return Rules(self.base, self.opening, self.komi, self.adjacent_setup)


class GameQuery(RulesQuery):
    """A game: what a link holds.

    Attributes:
        start: a position text the moves start from; the empty board if null.
        moves: plies, or two-stone turns such as "c4,e2".
        at: which position is meant, 0 to the number of plies; the last one if null.
    """

    start: Annotated[str, StringConstraints(max_length=MAX_TEXT)] | None = None
    moves: Annotated[list[_Move], Field(max_length=MAX_PLIES)] = []
    at: Annotated[int, Field(ge=0, le=MAX_PLIES)] | None = None

    def game(self) -> tuple[Replay, int]:
        """The game played through, and which position is meant.

        Raises:
            LifelineError: no such game, or no such position in it.
        """
        game = replay(self.rules(), self.start, self.moves)
        at = len(game.actions) if self.at is None else self.at
        if at > len(game.actions):
            raise RequestError(f"the game has {len(game.actions)} plies, and no position after {at}")
        return game, at


class ThinkQuery(GameQuery):
    """A position that a bot is asked about.

    Attributes:
        model: which bot, by its id.
        level: how well it plays, by name; not for analyses.
        simulations: of an analysis; as many as the server gives a move if null.
        seed: of the game.
    """

    model: _Word
    level: _Word = "full"
    simulations: Annotated[int, Field(ge=0)] | None = None
    seed: _Seed = 0


class ValuesQuery(GameQuery):
    """Positions of a game to be judged without search.

    Attributes:
        model: which bot.
        plies: which positions, 32 at most; those of a finished game are answered by its result.
    """

    model: _Word
    plies: Annotated[list[Annotated[int, Field(ge=0, le=MAX_PLIES)]], Field(min_length=1, max_length=MAX_VALUES)]


class KomiQuery(RulesQuery):
    """A komi to be named, or of that in `komi` the better side to be taken."""

    model: _Word
    seed: _Seed = 0


class ImportQuery(RulesQuery):
    """A text to be read as a game: a record of JSON, a position text, or moves; the last two by the rules given.

    Attributes:
        text: the text.
        number: which record, where there are several, from 1.
    """

    text: Annotated[str, StringConstraints(max_length=MAX_LINE)]
    number: Annotated[int, Field(ge=1, le=MAX_LINE)] = 1


class ExportQuery(GameQuery):
    """A game to be written as a record.

    Attributes:
        players: names of seat 0 and seat 1.
        resigned: the seat that gave up, if any.
    """

    players: Annotated[list[_Name], Field(min_length=2, max_length=2)]
    resigned: Annotated[int, Field(ge=0, le=1)] | None = None


Query = TypeVar("Query", bound=BaseModel)


def parse_query(kind: type[Query], body: bytes) -> Query:
    """A query out of the body of a request.

    Raises:
        RequestError: no JSON, or not of that form; the message names the field.
    """
    try:
        return kind.model_validate_json(body)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False, include_context=False)[0]
        place = ".".join(str(step)[:40] for step in first["loc"])
        raise RequestError(f"{place}: {first['msg']}" if place else str(first["msg"])) from None
