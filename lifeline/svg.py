"""Drawing a position as SVG: one self-contained text, without styles, scripts, fonts or links from elsewhere.

Nothing in it has an id, so that many pictures can stand in one page. A cell's hexagon holds its label as a tooltip.
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from xml.sax.saxutils import escape

from lifeline.board import Board
from lifeline.errors import NotationError
from lifeline.notation import action_text
from lifeline.render import status_text
from lifeline.rules import EMPTY, STONES, Position

# Lengths are in units of the view box, which are pixels at natural size. A hexagon is 40 wide.
_WIDTH = 40.0
_SIDE = _WIDTH / math.sqrt(3)
_ROW = 1.5 * _SIDE
_STONE = 15.4
_MARGIN = 14.0
_EDGE_LABELS = 22.0  # room around the board for row letters and place numbers
_LINE = 20.0  # of the caption
_CAPTION = 14.0
_LETTER = 0.54  # average width of a letter, in sizes of the type, on the generous side

_BACKGROUND, _CELL, _EDGE = "#f7f1e3", "#ead9b5", "#8a7650"
_INK, _PAPER, _LAST, _LEGAL = "#1a1a1a", "#ffffff", "#d55e00", "#00694d"
# Brewer's blues: one hue, ever darker, so that those who see colours otherwise see the same order.
_RAMP = ("#f7fbff", "#deebf7", "#c6dbef", "#9ecae1", "#6baed6", "#4292c6", "#2171b5", "#08519c", "#08306b")

Centres = Sequence[tuple[float, float]]

# What a text of XML may not hold, escaped or not.
_NO_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")

_NAMES = {"b": "black", "w": "white"}


def board_svg(
    position: Position,
    *,
    last: Collection[int] = (),
    coordinates: bool = True,
    labels: bool = False,
    heat: Mapping[int, float] | None = None,
    legal: bool = False,
    caption: str | None = None,
) -> str:
    """Draw a position. Equal arguments make equal texts.

    Rows stand as in `board_text`, and so do the letters and numbers around the board: a cell's label is its row's
    letter and its place in the row from the left, the numbers standing at the ends of the slanting lines of cells with
    that place, of the upper half above the board, of the lower half below.

    Args:
        position: what is drawn.
        last: the actions of the last move: their cells get a ring, stone or not; a swap or a point of komi has none.
        coordinates: draw row letters and place numbers around the board.
        labels: write its label in each cell.
        heat: cell index -> number in [0, 1], drawn as blue of that depth, with the number in per cent; "<1%" is less
            than half a per cent and more than nothing. Cells that are left out keep the colour of the board.
        legal: mark the cells where a stone may be placed by a dot.
        caption: the text below the board and the picture's title, one line or more; `status_text` if None, none if
            empty (the title is `status_text` then).
    Returns:
        An `svg` element with a view box and a natural size, and a newline at the end.
    Raises:
        NotationError: `last` holds what is no action; `heat` what is no cell, or a value that is not in [0, 1].
    """
    rules, geometry = position.rules, position.rules.board
    for action in last:
        if not 0 <= action < rules.num_actions:
            raise NotationError(f"no action {action!r} on a board of base {rules.base}")
    heat = _checked_heat(heat or {}, geometry)
    status = status_text(position)
    layout = layout_of(geometry, coordinates)
    width, centres = layout.width, layout.centres
    lines = _wrapped(status if caption is None else caption, width - 2 * _MARGIN)
    height = layout.height + (len(lines) * _LINE + _MARGIN / 2 if lines else 0.0)

    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_n(width)} {_n(height)}" width="{_n(width)}" '
        f'height="{_n(height)}" role="img" font-family="Helvetica, Arial, sans-serif" text-anchor="middle">',
        f"<title>{_text(f'Lifeline, base {rules.base}: {caption or status}')}</title>",
        f"<desc>{_text(_description(position, last, heat))}</desc>",
        f'<rect width="{_n(width)}" height="{_n(height)}" rx="10" fill="{_BACKGROUND}"/>',
    ]
    out += _cells(geometry, centres, heat)
    out.append('<g pointer-events="none">')  # what lies over a hexagon does not hide its tooltip
    if legal:
        out += _legal_marks(position, centres, heat, labels)
    out += _stones(position, centres)
    out += _rings(centres, [cell for cell in sorted(set(last)) if cell < rules.num_cells])
    if labels or heat:
        out += _cell_texts(position, centres, heat, labels)
    if coordinates:
        out += [f'<g font-size="13" fill="{_INK}">', *(_write(*text, 13) for text in layout.texts), "</g>"]
    if lines:
        out.append(f'<g font-size="{_n(_CAPTION)}" fill="{_INK}">')
        for number, line in enumerate(lines):
            out.append(_write(line, width / 2, layout.height + (number + 0.3) * _LINE, _CAPTION))
        out.append("</g>")
    return "\n".join([*out, "</g>", "</svg>"]) + "\n"


@dataclass(frozen=True)
class Layout:
    """Where the parts of a board stand in a picture, in units of its view box.

    Attributes:
        width, height: of the picture, without a caption.
        centres: (x, y) of each cell.
        texts: (text, x, y) of each row letter and place number around the board; empty without coordinates.
        hexagon: the path of a cell whose centre is the origin.
    """

    width: float
    height: float
    centres: tuple[tuple[float, float], ...]
    texts: tuple[tuple[str, float, float], ...]
    hexagon: str


def layout_of(geometry: Board, coordinates: bool = True) -> Layout:
    """How a board is laid out, with or without room for coordinates around it."""
    size, room = 2 * geometry.base - 1, _MARGIN + (_EDGE_LABELS if coordinates else 0.0)
    width = size * _WIDTH + _MARGIN + room + (_EDGE_LABELS / 2 if coordinates else 0.0)
    height = (size - 1) * _ROW + 2 * _SIDE + 2 * room
    middle = (room + size * _WIDTH / 2, height / 2)
    centres = tuple((middle[0] + (q + z / 2) * _WIDTH, middle[1] + z * _ROW) for q, z in geometry.coords)
    texts: list[tuple[str, float, float]] = []
    for row in geometry.rows if coordinates else ():
        x, y = centres[row.start]
        texts.append((geometry.labels[row.start][0], x - _WIDTH / 2 - 12, y))
    for row, down in ((geometry.rows[0], -1), (geometry.rows[-1], 1)) if coordinates else ():
        for place, cell in enumerate(row, 1):
            x, y = centres[cell]
            texts.append((str(place), x + 0.45 * _WIDTH, y + down * (_SIDE + 8)))
    return Layout(width, height, centres, tuple(texts), _hexagon(0, 0, _SIDE))


def _checked_heat(heat: Mapping[int, float], geometry: Board) -> dict[int, float]:
    """The heat by ascending cell."""
    for cell, value in heat.items():
        if cell not in range(geometry.num_cells):
            raise NotationError(f"no cell {cell!r} on a board of base {geometry.base}")
        if not 0 <= value <= 1:  # written so that NaN, which compares with nothing, is refused
            raise NotationError(f"the heat of {geometry.labels[cell]} must be a number from 0 to 1, not {value!r}")
    return {cell: float(heat[cell]) for cell in sorted(heat)}


def _description(position: Position, last: Collection[int], heat: Mapping[int, float]) -> str:
    """The picture in words."""
    geometry = position.rules.board
    parts = []
    for stone in STONES:
        cells = [geometry.labels[c] for c, s in enumerate(position.stones) if s == stone]
        parts.append(f"{_NAMES[stone].capitalize()} stones: {', '.join(cells) or 'none'}.")
    if last:
        parts.append(f"Last move: {', '.join(action_text(a, geometry) for a in sorted(set(last)))}.")
    if heat:
        parts.append(f"Values: {', '.join(f'{geometry.labels[c]} {_percent(v)}' for c, v in heat.items())}.")
    return " ".join([*parts, f"Position: {position.text()}."])


def _cells(geometry: Board, centres: Centres, heat: Mapping[int, float]) -> list[str]:
    out = [f'<g fill="{_CELL}" stroke="{_EDGE}" stroke-width="1.2" stroke-linejoin="round">']
    for cell, (x, y) in enumerate(centres):
        fill = f' fill="{heat_colour(heat[cell])}"' if cell in heat else ""
        tip = geometry.labels[cell] + (f" {_percent(heat[cell])}" if cell in heat else "")
        out.append(f'<path d="{_hexagon(x, y, _SIDE)}"{fill}><title>{_text(tip)}</title></path>')
    return [*out, "</g>"]


def _legal_marks(position: Position, centres: Centres, heat: Mapping[int, float], labels: bool) -> list[str]:
    """A dot in the middle of each cell, or a smaller one under what is written there."""
    out = [f'<g fill="{_LEGAL}">']
    for cell in position.legal_actions():
        if cell < len(centres):
            x, y = centres[cell]
            down, radius = (14.0, 2.4) if labels or cell in heat else (0.0, 4.0)
            ink = f' fill="{_contrast(heat_colour(heat[cell]))}"' if cell in heat else ""
            out.append(f'<circle cx="{_n(x)}" cy="{_n(y + down)}" r="{_n(radius)}"{ink}/>')
    return [*out, "</g>"]


def _stones(position: Position, centres: Centres) -> list[str]:
    out = [f'<g stroke="{_INK}" stroke-width="1.8">']
    for cell, stone in enumerate(position.stones):
        if stone != EMPTY:
            x, y = centres[cell]
            fill = _INK if stone == "b" else _PAPER
            out.append(f'<circle cx="{_n(x)}" cy="{_n(y)}" r="{_n(_STONE)}" fill="{fill}"/>')
    return [*out, "</g>"]


def _rings(centres: Centres, cells: list[int]) -> list[str]:
    out = [f'<g fill="none" stroke="{_LAST}" stroke-width="3">']
    for cell in cells:
        x, y = centres[cell]
        out.append(f'<circle cx="{_n(x)}" cy="{_n(y)}" r="{_n(_STONE - 2.5)}"/>')
    return [*out, "</g>"] if cells else []


def _cell_texts(position: Position, centres: Centres, heat: Mapping[int, float], labels: bool) -> list[str]:
    """Percentages in the middle; labels there too, or above where there is a percentage."""
    out = ['<g font-size="12">']
    for cell, (x, y) in enumerate(centres):
        stone = position.stones[cell]
        if stone != EMPTY:
            ground = _INK if stone == "b" else _PAPER
        else:
            ground = heat_colour(heat[cell]) if cell in heat else _CELL
        ink = _contrast(ground)
        if cell in heat:
            weight = ' font-weight="bold"'
            out.append(_write(_percent(heat[cell]), x, y + (3.5 if labels else 0), 12, f' fill="{ink}"{weight}'))
        if labels:
            size, up = (8.5, 8.0) if cell in heat else (12.0, 0.0)
            out.append(
                _write(position.rules.board.labels[cell], x, y - up, size, f' fill="{ink}" font-size="{_n(size)}"')
            )
    return [*out, "</g>"]


def heat_colour(value: float) -> str:
    """The colour, such as "#9ecae1", of a value in [0, 1]: the higher the darker."""
    at = value * (len(_RAMP) - 1)
    low = min(int(at), len(_RAMP) - 2)
    pairs = zip(_channels(_RAMP[low]), _channels(_RAMP[low + 1]), strict=True)
    return "#" + "".join(f"{round(a + (b - a) * (at - low)):02x}" for a, b in pairs)


def _channels(colour: str) -> tuple[int, int, int]:
    return int(colour[1:3], 16), int(colour[3:5], 16), int(colour[5:7], 16)


def contrast_ratio(one: str, other: str) -> float:
    """Contrast of two colours, 1 to 21. Source: WCAG 2.1, contrast ratio."""
    high, low = sorted((_luminance(one), _luminance(other)), reverse=True)
    return (high + 0.05) / (low + 0.05)


def _luminance(colour: str) -> float:
    parts = [c / 255 for c in _channels(colour)]
    linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def _contrast(ground: str) -> str:
    """Black or white, whichever reads better: one of them has a contrast of at least 4.5 on any colour."""
    return max("#000000", "#ffffff", key=lambda ink: contrast_ratio(ink, ground))


def _percent(value: float) -> str:
    rounded = math.floor(100 * value + 0.5)
    return "<1%" if rounded == 0 and value > 0 else f"{rounded}%"


def _hexagon(x: float, y: float, side: float) -> str:
    """The path of a hexagon that stands on a corner."""
    half = side * math.sqrt(3) / 2
    corners = [(0, -side), (half, -side / 2), (half, side / 2), (0, side), (-half, side / 2), (-half, -side / 2)]
    return "M" + "L".join(f"{_n(x + dx)} {_n(y + dy)}" for dx, dy in corners) + "Z"


def _wrapped(text: str, width: float) -> list[str]:
    """The text in lines of at most this width, as far as words allow, broken at commas first; no lines for no text."""
    most = max(1, int(width / (_LETTER * _CAPTION)))
    lines: list[str] = []
    for part in re.split("(?<=,) ", " ".join(text.split())):
        words = [part] if len(part) <= most else part.split(" ")
        for word in words:
            if lines and len(lines[-1]) + 1 + len(word) <= most:
                lines[-1] += " " + word
            elif word:
                lines.append(word)
    return lines


def _write(text: str, x: float, y: float, size: float, attributes: str = "") -> str:
    """A text centred at a point: capitals and figures are 0.7 of their size high."""
    return f'<text x="{_n(x)}" y="{_n(y + 0.35 * size)}"{attributes}>{_text(text)}</text>'


def _text(text: str) -> str:
    """A text as XML holds it; what XML has no place for is shown as a question mark in a diamond."""
    return escape(_NO_XML.sub("\ufffd", text))


def _n(number: float) -> str:
    """A number with at most two decimals."""
    text = f"{number:.2f}".rstrip("0").rstrip(".")
    return "0" if text == "-0" else text
