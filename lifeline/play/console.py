"""A board and a dialogue in a terminal: in colours where it has them, else as plain text.

The board paints its own ground, so that it looks the same on light and dark terminals, and a black stone is black on
both. Nothing is told by hue alone: stones differ in brightness, the last move has brackets, a legal cell its label.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass

from rich.console import Console
from rich.markup import escape
from rich.text import Text

from lifeline.render import board_text, status_text
from lifeline.rules import EMPTY, Position


@dataclass(frozen=True)
class Palette:
    """Styles, as rich names them.

    Attributes:
        ground: of the board; it lies under all others.
        wall: of lines between cells.
        stones: of the sign of each colour, "b" and "w".
        legal, barred: of the label or dot of empty cells where a stone may be placed, and where none may.
        last: of the brackets round the last move.
        signs: of each colour.
    """

    ground: str
    wall: str
    stones: dict[str, str]
    legal: str
    barred: str
    last: str
    signs: dict[str, str]


# Of the 240 colours that are the same in every terminal that has 256. Both stones stand out from the ground by a
# contrast of at least 3, what is written on it by 4.5.
PAINTED = Palette(
    ground="on color(137)",
    wall="color(94)",
    stones={"b": "color(16)", "w": "bold color(231)"},
    legal="color(235)",
    barred="color(94)",
    last="bold color(231)",
    signs={"b": "●", "w": "●"},
)
# The 16 colours are the user's own: what reads on light and on dark ones, without a ground.
SIXTEEN = Palette(
    ground="",
    wall="bright_black",
    stones={"b": "bold blue", "w": "bold yellow"},
    legal="",
    barred="bright_black",
    last="bold magenta",
    signs={"b": "●", "w": "○"},
)


def palette_of(console: Console) -> Palette | None:
    """What a console can show; None where colours are not wanted, or it is no terminal."""
    if not console.is_terminal or console.no_color or console.color_system is None:
        return None
    return PAINTED if console.color_system in ("256", "truecolor") else SIXTEEN


def draw_board(console: Console, position: Position, last: Sequence[int] = (), ascii_signs: bool = False) -> None:
    """Print a board, its coordinates, and whose turn it is.

    In colours it is drawn as hexagons, with their labels in the cells where a stone may be placed, if the console is
    large enough, else as the lines of `board_text`; without, as `board_text` itself.

    Args:
        last: the actions of the last move: all cells among them get brackets, in plain text that of the last action.
        ascii_signs: X, O and . in plain text, as where the console has nothing else.
    """
    palette, base = palette_of(console), position.rules.base
    only_ascii = ascii_signs or console.options.ascii_only
    if palette is None or only_ascii:
        text = Text(board_text(position, ascii=only_ascii, last=last[-1] if last else None))
    else:
        drawing = _Drawing(position, frozenset(last), palette)
        roomy = console.width >= 8 * base + 4 and console.height >= 4 * base + 4
        text = drawing.hexagons() if roomy else drawing.dots()
        text.append(status_text(position))
    console.print(text, soft_wrap=True)


class _Drawing:
    """One position in colours."""

    def __init__(self, position: Position, last: frozenset[int], palette: Palette) -> None:
        self._position, self._last, self._palette = position, last, palette
        self._geometry = position.rules.board
        self._legal = set(position.legal_actions())

    def hexagons(self) -> Text:
        """A cell is four columns wide and two lines high. The walls between two rows are those of the longer one."""
        geometry, ground, out = self._geometry, self._palette.ground, Text()
        wall, bracket = f"{self._palette.wall} {ground}", f"{self._palette.last} {ground}"
        middle = geometry.rows[geometry.base - 1].start
        numbers = "  ".join(f"{place:2}" for place in range(1, geometry.base + 1))
        out.append(f"{' ' * (2 * geometry.base + 4)}{numbers}\n")
        for row in geometry.rows:
            indent = " " * (2 * (2 * geometry.base - 1 - len(row)))
            if row.start <= middle:
                out.append(f"{indent}    ").append(" ".join(["╱ ╲"] * len(row)), wall).append("\n")
            out.append(f"{indent} {geometry.labels[row.start][0]} ")
            for cell in row:
                out.append("│", wall)
                sign, style = self._sign(cell)
                if cell in self._last:
                    out.append("(", bracket).append(sign, style).append(")", bracket)
                elif self._position.stones[cell] != EMPTY:
                    out.append(f" {sign} ", style)
                else:
                    out.append(f"{geometry.labels[cell] if cell in self._legal else '':^3}", style)
            out.append("│", wall).append(f" {len(row)}\n")
            if row.start >= middle:
                out.append(f"{indent}    ").append(" ".join(["╲ ╱"] * len(row)), wall).append("\n")
        return out.append(f"{' ' * (2 * geometry.base + 4)}{numbers}\n")

    def dots(self) -> Text:
        """A cell is two columns wide and one line high, as in `board_text`."""
        geometry, out = self._geometry, Text()
        bracket = f"{self._palette.last} {self._palette.ground}"
        numbers = " ".join(str(place % 10) for place in range(1, geometry.base + 1))
        out.append(f"{' ' * (geometry.base + 4)}{numbers}\n")
        for row in geometry.rows:
            gaps = [" "] * (len(row) + 1)
            for cell in self._last.intersection(row):
                gaps[cell - row.start], gaps[cell - row.start + 1] = "(", ")"
            out.append(f"{' ' * (2 * geometry.base - len(row))}{geometry.labels[row.start][0]} ")
            for gap, cell in zip(gaps, row, strict=False):
                out.append(gap, bracket).append(*self._sign(cell))
            out.append(gaps[-1], bracket).append(f" {len(row)}\n")
        return out.append(f"{' ' * (geometry.base + 4)}{numbers}\n")

    def _sign(self, cell: int) -> tuple[str, str]:
        """The sign of a cell and its style."""
        stone, palette = self._position.stones[cell], self._palette
        if stone != EMPTY:
            return palette.signs[stone], f"{palette.stones[stone]} {palette.ground}"
        return "·", f"{palette.legal if cell in self._legal else palette.barred} {palette.ground}"


class Screen:
    """What a person sees of a game and is asked.

    Args:
        console: where it is shown.
        ascii_signs: see `draw_board`.
        ask: shows a prompt and returns a line; may raise EOFError to end the game.
    """

    def __init__(self, console: Console, ascii_signs: bool = False, ask: Callable[[str], str] = input) -> None:
        self._console, self._ascii_signs = console, ascii_signs
        self.ask = ask

    def board(self, position: Position, last: Sequence[int] = ()) -> None:
        """Show a position; see `draw_board`."""
        draw_board(self._console, position, last, self._ascii_signs)

    def say(self, text: str) -> None:
        """Show lines."""
        self._console.print(Text(text), soft_wrap=True)

    def waiting(self, name: str) -> AbstractContextManager[object]:
        """In a terminal, show while it lasts that a player thinks."""
        if not self._console.is_terminal:
            return nullcontext()
        return self._console.status(f"{escape(name)} thinks ...")
