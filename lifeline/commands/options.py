"""Options that several commands share, and what is made of them."""

from __future__ import annotations

from typing import Annotated

import typer

from lifeline.rules import Rules

BaseOption = Annotated[int, typer.Option(help="Cells a side of the board, 3 to 12.")]
OpeningOption = Annotated[str, typer.Option(help="strong_pie, weak_pie or komi_pie.")]

# The same where it must be known whether they have been given: records say themselves what was played.
GivenBase = Annotated[int | None, typer.Option(help="Cells a side of the board, 3 to 12; 3 if not given.")]
GivenOpening = Annotated[str | None, typer.Option(help="strong_pie, weak_pie or komi_pie; strong_pie if not given.")]
GivenKomi = Annotated[int | None, typer.Option(help="Points of komi at the start, 0 to 99; komi_pie only.")]
GivenAdjacent = Annotated[
    str | None, typer.Option(help="allowed (if not given) or forbidden; weak_pie and komi_pie only.")
]
MovesOption = Annotated[
    str | None, typer.Option(help='The position after these moves, such as "c4,e2 swap d4,b3"; "" is the start.')
]
PositionOption = Annotated[str | None, typer.Option(help='A position text, such as "3/4/5/4/3 b 0 0 - 0".')]

LevelOption = Annotated[
    str | None,
    typer.Option(
        help="Strength of the model, 1 (beginner) to 10 (full), or a name; full if not given.", metavar="LEVEL"
    ),
]


def rules_of(base: int | None, opening: str | None, komi: int | None, adjacent_setup: str | None) -> Rules:
    """Rules of options of which any may be missing."""
    return Rules(
        3 if base is None else base,
        "strong_pie" if opening is None else opening,
        0 if komi is None else komi,
        "allowed" if adjacent_setup is None else adjacent_setup,
    )


def workers_of(text: str | None) -> int | str | None:
    """What --workers says: a number, "auto", or None where it was not given."""
    if text is None or text == "auto":
        return text
    if not (text.isascii() and text.isdigit() and int(text) <= 10_000):
        raise typer.BadParameter(f"--workers takes a number or auto, not {text[:40]!r}")
    return int(text)


def any_given(*options: object) -> bool:
    return any(option is not None for option in options)


def exactly_one(**options: object) -> None:
    given = [f"--{name}" for name, value in options.items() if value is not None]
    if len(given) != 1:
        *names, last = [f"--{name}" for name in options]
        told = " and ".join(given) if given else "none of them"
        raise typer.BadParameter(f"give exactly one of {', '.join(names)} and {last}, not {told}")
