"""Drawing a position as text, for terminals, logs and error reports."""

from __future__ import annotations

from lifeline.rules import Position

_SIGNS = {".": "·", "b": "●", "w": "○"}
_ASCII_SIGNS = {".": ".", "b": "X", "w": "O"}
_COLOUR_NAMES = {"b": "black", "w": "white"}


def board_text(position: Position, *, ascii: bool = False, last: int | None = None) -> str:
    """Draw the board, row letters at the left and place numbers at the ends of the lines, and say whose turn it is.

    A cell's label is its row's letter and its place in the row from the left. The number behind a row is that of its
    last place; the numbers above and below the board (units only) stand at the ends of the slanting lines of cells
    with that place: of the upper half above, of the lower half below.

    Args:
        position: what is drawn.
        ascii: X, O and . for black, white and empty, in place of ●, ○ and ·.
        last: the action played last; its cell is put in brackets, stone or not. A swap or a point of komi marks none.
    Returns:
        2n+2 lines, no newline at the end: numbers, 2n-1 rows, numbers, and `status_text`.
    """
    geometry = position.rules.board
    signs = _ASCII_SIGNS if ascii else _SIGNS
    numbers = " ".join(str(place % 10) for place in range(1, geometry.base + 1))
    edge = " " * (geometry.base + 4) + numbers
    lines = [edge]
    for row in geometry.rows:
        # One sign a cell with one column between: half a cell is one column, so each row moves by one.
        gaps = [" "] * (len(row) + 1)
        if last is not None and last in row:
            gaps[last - row.start], gaps[last - row.start + 1] = "(", ")"
        cells = "".join(gap + signs[position.stones[cell]] for gap, cell in zip(gaps, row, strict=False)) + gaps[-1]
        indent = " " * (2 * geometry.base - len(row))
        lines.append(f"{indent}{geometry.labels[row.start][0]} {cells} {len(row)}")
    return "\n".join([*lines, edge, status_text(position)])


def status_text(position: Position) -> str:
    """One line: who is to play (colour and seat), the turn counted from 1 and what is special now, or who has won."""
    if position.winner is not None:
        colour = "w" if position.colour == "b" else "b"
        return f"{_COLOUR_NAMES[colour]} (seat {position.winner}) has won after {position.turn} turns"
    parts = [f"{_COLOUR_NAMES[position.colour]} (seat {position.to_play}) to play, turn {position.turn + 1}"]
    if position.rules.stones_in_turn(position.turn) > 1:
        parts.append("second stone" if position.placed else "first stone of two")
    if position.may_swap:
        parts.append("may swap sides")
    if position.rules.opening == "komi_pie":
        parts.append(f"komi left {position.komi}")
    return ", ".join(parts)
