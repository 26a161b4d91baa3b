"""Text in and out: moves and the rows of a board. Position texts are put together in rules.py."""

from __future__ import annotations

import re

from lifeline.board import Board
from lifeline.errors import NotationError

SWAP_TEXT = "swap"
KOMI_TEXT = "komi"

# The longest valid position text has 397 cells, 22 slashes and a dozen characters behind them.
MAX_TEXT = 500

_ROW_TOKEN = re.compile(r"[bw]|[1-9][0-9]?", re.ASCII)


def action_text(action: int, geometry: Board) -> str:
    """The move text of an action: a cell label, `swap` (action N) or `komi` (action N + 1)."""
    if action < geometry.num_cells:
        return geometry.labels[action]
    return SWAP_TEXT if action == geometry.num_cells else KOMI_TEXT


def parse_move(text: str, geometry: Board) -> tuple[int, ...]:
    """The actions of a move text: one, or two for a two-stone turn such as "c4,e2".

    Raises:
        NotationError: not a move on this board.
    """
    # Some letters beyond ASCII have one of ours as their lower case: komi with a Kelvin sign is no move.
    parts = [p.strip().lower() for p in text.split(",")] if len(text) <= MAX_TEXT and text.isascii() else []
    if not 1 <= len(parts) <= 2 or not all(parts):
        raise NotationError(f"a move is a cell, two cells joined by a comma, swap or komi, not {text[:40]!r}")
    if parts == [SWAP_TEXT]:
        return (geometry.num_cells,)
    if parts == [KOMI_TEXT]:
        return (geometry.num_cells + 1,)
    return tuple(geometry.cell(p) for p in parts)


def rows_text(stones: tuple[str, ...], geometry: Board) -> str:
    """The rows of a board from the top, `/` between them, a number for each run of empty cells."""
    lines = []
    for row in geometry.rows:
        line, run = "", 0
        for cell in row:
            if stones[cell] == ".":
                run += 1
                continue
            line += (str(run) if run else "") + stones[cell]
            run = 0
        lines.append(line + (str(run) if run else ""))
    return "/".join(lines)


def parse_rows(text: str, geometry: Board) -> tuple[str, ...]:
    """The stones of a board, one of '.', 'b', 'w' for each cell.

    Raises:
        NotationError: not the rows of this board; the message names row and character.
    """
    lines = text.split("/")
    if len(lines) != len(geometry.rows):
        raise NotationError(
            f"a board of base {geometry.base} has {len(geometry.rows)} rows, not {len(lines)}: {text[:60]!r}"
        )
    stones: list[str] = []
    for number, (line, row) in enumerate(zip(lines, geometry.rows, strict=True), start=1):
        cells: list[str] = []
        at, after_number = 0, False
        while at < len(line):
            token = _ROW_TOKEN.match(line, at)
            if token is None or (after_number and token[0].isdigit()):
                raise NotationError(
                    f"row {number}, character {at + 1}: expected b, w or a number of empty cells in {line[:40]!r}"
                )
            after_number = token[0].isdigit()
            cells.extend("." * int(token[0]) if after_number else token[0])
            at = token.end()
        if len(cells) != len(row):
            raise NotationError(
                f"row {number} has {len(cells)} cells where base {geometry.base} has {len(row)}: {line[:40]!r}"
            )
        stones.extend(cells)
    return tuple(stones)
