"""Commands for files of game records."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, BinaryIO

import typer

from lifeline.commands.options import any_given, rules_of
from lifeline.errors import RecordError


def records(
    files: Annotated[list[str], typer.Argument(metavar="FILE", help="Game records, .gz or not; - is the input.")],
    import_moves: Annotated[
        bool, typer.Option("--import-moves", help="The files are move lists (a1,c1 d3 swap ...): print their records.")
    ] = False,
    base: Annotated[
        int | None, typer.Option(help="Of move lists: cells a side of the board, 3 to 12; 3 if not given.")
    ] = None,
    opening: Annotated[
        str | None, typer.Option(help="Of move lists: strong_pie, weak_pie or komi_pie; strong_pie if not given.")
    ] = None,
    komi: Annotated[int | None, typer.Option(help="Of move lists in komi_pie: points of komi, 0 to 99.")] = None,
    adjacent_setup: Annotated[
        str | None, typer.Option(help="Of move lists in weak_pie and komi_pie: allowed, or forbidden.")
    ] = None,
) -> None:
    """Check game records and say what is in them, or make records of move lists.

    Errors are printed one a line; any of them makes the exit code 1.
    """
    from lifeline.movelist import import_moves as record_of
    from lifeline.record_json import format_record
    from lifeline.records import survey

    if import_moves:
        rules = rules_of(base, opening, komi, adjacent_setup)
        for name in files:
            with _input(name) as file:
                typer.echo(format_record(record_of(file, rules, name)))
        return
    if any_given(base, opening, komi, adjacent_setup):
        raise typer.BadParameter("records say themselves what was played: --base and so on go with --import-moves")
    damaged = 0
    for name in files:
        line, errors = survey(sys.stdin.buffer if name == "-" else name, name, lambda e: typer.echo(e, err=True))
        typer.echo(line)
        damaged += errors > 0
    if damaged:
        raise RecordError(f"damaged or unreadable files: {damaged} of {len(files)}")


@contextmanager
def _input(name: str) -> Iterator[BinaryIO]:
    """A file to read, the standard input if its name is -.

    Raises:
        RecordError: it cannot be opened.
    """
    if name == "-":
        yield sys.stdin.buffer
        return
    try:
        file = Path(name).open("rb")  # noqa: SIM115 # closed below; only opening it is guarded
    except OSError as error:
        raise RecordError(f"cannot be read: {error.strerror or error}", name) from None
    with file:
        yield file
