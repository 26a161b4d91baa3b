"""Pictures of a run: the curve of its ratings, and boards for TensorBoard."""

from __future__ import annotations

import io
import math
from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.collections import EllipseCollection, PolyCollection
from matplotlib.figure import Figure

from lifeline.board import Board
from lifeline.notation import action_text
from lifeline.render import status_text
from lifeline.rules import EMPTY, Position

Image = npt.NDArray[np.uint8]

MAX_BOARDS = 12
"""Boards in the picture of a game, at most."""

_DPI = 100
_COLUMNS = 4
_LONGEST_NAME = 28
# Okabe and Ito's colours, which the colour-blind tell apart too.
_BLUE, _VERMILION = "#0072B2", "#D55E00"
_GREY, _INK = "#666666", "#1a1a1a"
_CELL, _EDGE = "#ead9b5", "#8a7650"
_ROW = math.sqrt(3) / 2  # from one row of hexagons to the next, in widths of a hexagon


def elo_curve_png(
    points: Sequence[tuple[float, float, float, float]], baselines: Mapping[str, float], title: str
) -> bytes:
    """Draw the rating of a run's models over the time they were trained for.

    Args:
        points: (seconds of training, Elo, low, high) of each model in ascending order of time, low and high the ends
            of its 95 % interval; may be empty, and what is not finite is left out.
        baselines: the Elo of each fixed player; drawn as dashed lines with their names beside them.
        title: drawn above.
    Returns:
        A PNG of 900 x 500 pixels.
    """
    figure = _figure(900, 500)
    axes = figure.add_axes((0.085, 0.12, 0.75, 0.78))
    axes.set_title(title, loc="left", fontsize=13, color=_INK, parse_math=False)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    axes.grid(axis="y", color="#e6e6e6", linewidth=0.8)
    axes.set_axisbelow(True)
    axes.tick_params(labelsize=10, colors=_INK)
    axes.set_ylabel("Elo", fontsize=11, color=_INK)
    rows = np.array(points, np.float64).reshape(-1, 4)
    rows = rows[np.isfinite(rows).all(axis=1)]
    in_hours = bool(len(rows)) and rows[-1, 0] >= 2 * 3600
    axes.set_xlabel(f"{'hours' if in_hours else 'minutes'} of training", fontsize=11, color=_INK)
    time, elo, low, high = rows.T / np.array([[3600.0 if in_hours else 60.0], [1], [1], [1]])
    if len(rows):
        axes.fill_between(time, low, high, color=_BLUE, alpha=0.2, linewidth=0, label="95 % interval")
        marker = "o" if len(rows) <= 60 else ""
        axes.plot(time, elo, color=_BLUE, linewidth=2, marker=marker, markersize=4, label="rating", clip_on=False)
        if len(rows) == 1:  # an area of no width shows nothing
            axes.vlines(time, low, high, color=_BLUE, alpha=0.4, linewidth=4, clip_on=False)
        axes.set_xlim(0, max(time[-1], 1e-3))
        axes.legend(loc="upper right", bbox_to_anchor=(1.21, -0.06), ncols=2, frameon=False, fontsize=9.5)
    else:
        axes.text(0.5, 0.5, "no ratings yet", transform=axes.transAxes, ha="center", color=_GREY, fontsize=12)
        axes.set_xticks([])
    everything = np.concatenate([rows[:, 1:].ravel(), list(baselines.values())])
    bottom, top = (everything.min(), everything.max()) if len(everything) else (0.0, 0.0)
    margin = max(25.0, 0.06 * (top - bottom))
    bottom, top = float(bottom - margin), float(top + margin)
    axes.set_ylim(bottom, top)
    for value in baselines.values():
        axes.axhline(value, color=_GREY, linewidth=1.2, linestyle=(0, (5, 4)), zorder=1.5)
    labels = [(f"{name} ({value:z.0f})", value, _GREY) for name, value in baselines.items()]
    if len(rows):
        labels.append((f"{elo[-1]:z.0f} ({low[-1]:z.0f} to {high[-1]:z.0f})", float(elo[-1]), _BLUE))
    _labels_at_right(axes, labels, bottom, top)
    out = io.BytesIO()
    figure.savefig(out, format="png")
    return out.getvalue()


def ratings_picture_png(rows: Sequence[tuple[str, float, float, float]], title: str) -> bytes:
    """Draw ratings as points with their intervals, one below the other.

    Args:
        rows: (name, Elo, low, high) of each player, the first uppermost, low and high the ends of its 95 % interval;
            what is not finite is left out.
        title: drawn above.
    Returns:
        A PNG 900 pixels wide, the higher the more players.
    """
    rows = [row for row in rows if np.isfinite(row[1:]).all()]
    height = 130 + 34 * max(1, len(rows))
    figure = _figure(900, height)
    axes = figure.add_axes((0.31, 62 / height, 0.58, 1 - 112 / height))
    figure.text(0.02, 1 - 26 / height, title, fontsize=13, color=_INK, va="center", parse_math=False)
    for side in ("top", "right", "left"):
        axes.spines[side].set_visible(False)
    axes.grid(axis="x", color="#e6e6e6", linewidth=0.8)
    axes.set_axisbelow(True)
    axes.tick_params(axis="x", labelsize=10, colors=_INK)
    axes.set_xlabel("Elo", fontsize=11, color=_INK)
    axes.set_yticks([])
    axes.set_ylim(max(1, len(rows)) - 0.4, -0.6)
    for place, (name, elo, low, high) in enumerate(rows):
        axes.hlines(place, low, high, color=_BLUE, linewidth=3, alpha=0.45)
        axes.plot([elo], [place], color=_BLUE, marker="o", markersize=7)
        shown = name if len(name) <= _LONGEST_NAME else f"{name[: _LONGEST_NAME - 1]}…"
        for x, text, side, colour in ((-0.02, shown, "right", _INK), (1.02, f"{elo:z.0f}", "left", _BLUE)):
            axes.text(
                x,
                place,
                text,
                transform=axes.get_yaxis_transform(),
                ha=side,
                va="center",
                fontsize=10.5,
                color=colour,
                parse_math=False,
            )
    axes.margins(x=0.06)
    out = io.BytesIO()
    figure.savefig(out, format="png")
    return out.getvalue()


def board_picture(position: Position, last: int | None = None, size: int = 480) -> Image:
    """Draw a board, its stones, and whose turn it is.

    Args:
        position: what is drawn.
        last: the action played last: its cell gets a ring, stone or not; a swap or a point of komi is named below.
        size: height and width of the picture in pixels, at least 100.
    Returns:
        uint8 [H, W, 3], red, green and blue.
    Raises:
        ValueError: `last` is no action.
    """
    figure = _figure(size, size)
    axes = figure.add_axes((0.01, 0.07, 0.98, 0.92))
    caption = status_text(position)
    if last is not None and last >= position.rules.num_cells:
        caption = f"{action_text(last, position.rules.board)}; {caption}"
    _draw(axes, position, last, size * 0.92, labelled=True)
    figure.text(0.5, 0.03, caption, ha="center", va="center", fontsize=size / 60, color=_INK)
    return _pixels(figure, size, size)


def game_picture(positions: Sequence[Position], lasts: Sequence[int | None], size: int = 240) -> Image:
    """Draw a game as a grid of boards, evenly spread from its first to its last position, at most `MAX_BOARDS`.

    Args:
        positions: of one game in order, at least one, all of one board size; each is numbered by its place, from 0.
        lasts: for each position the action that led to it; None where there was none.
        size: height and width of one board in pixels, at least 100.
    Returns:
        uint8 [H, W, 3], red, green and blue.
    Raises:
        ValueError: no positions, another number of actions, or an action that is none.
    """
    if not positions or len(positions) != len(lasts):
        raise ValueError(f"a game needs positions and an action for each, not {len(positions)} and {len(lasts)}")
    chosen = sorted({round(i) for i in np.linspace(0, len(positions) - 1, min(MAX_BOARDS, len(positions)))})
    columns = min(_COLUMNS, len(chosen))
    rows = -(-len(chosen) // columns)
    figure = _figure(columns * size, rows * size)
    for place, number in enumerate(chosen):
        left, bottom = (place % columns) / columns, 1 - (place // columns + 1) / rows
        axes = figure.add_axes((left + 0.02 / columns, bottom + 0.1 / rows, 0.96 / columns, 0.88 / rows))
        _draw(axes, positions[number], lasts[number], size * 0.88, labelled=False)
        figure.text(
            left + 0.5 / columns,
            bottom + 0.055 / rows,
            _ply_text(positions[number], lasts[number], number),
            ha="center",
            va="center",
            fontsize=size / 26,
            color=_INK,
        )
    return _pixels(figure, columns * size, rows * size)


def _ply_text(position: Position, last: int | None, number: int) -> str:
    """The move number and move under a board, and who has won."""
    move = "start" if last is None else action_text(last, position.rules.board)
    return f"{number}: {move}" + (f", seat {position.winner} wins" if position.is_over else "")


def _draw(axes: Axes, position: Position, last: int | None, pixels: float, labelled: bool) -> None:
    """Fill axes of so many pixels with a board, a hexagon being one unit wide."""
    rules = position.rules
    if last is not None and not 0 <= last < rules.num_actions:
        raise ValueError(f"no action {last} on a board of base {rules.base}")
    centres = _centres(rules.board)
    axes.set_axis_off()
    side = rules.base - 0.2  # half a board's width and a little air
    left, top = (rules.base + 0.15, (rules.base - 1) * _ROW + 1.1) if labelled else (side, side)
    axes.set_xlim(-left, side)
    axes.set_ylim(-top, top)
    axes.set_aspect("equal")
    unit = pixels / max(left + side, 2 * top)  # pixels in a unit: lines grow with the cells
    corners = [(math.sin(a) / math.sqrt(3), math.cos(a) / math.sqrt(3)) for a in np.arange(6) * math.pi / 3]
    hexagons = centres[:, None, :] + np.array(corners)
    axes.add_collection(PolyCollection(list(hexagons), facecolors=_CELL, edgecolors=_EDGE, linewidths=unit / 40))
    stones = [cell for cell, stone in enumerate(position.stones) if stone != EMPTY]
    fills = [_INK if position.stones[cell] == "b" else "white" for cell in stones]
    _discs(axes, centres[stones], 0.76, fills, _INK, unit / 26)
    if last is not None and last < rules.num_cells:
        _discs(axes, centres[[last]], 0.44, ["none"], _VERMILION, unit / 15)
    if labelled:
        _label_lines(axes, rules.board, centres, unit)


def _discs(axes: Axes, at: npt.NDArray[np.float64], diameter: float, fills: list[str], edge: str, line: float) -> None:
    sizes = np.full(len(at), diameter)
    axes.add_collection(
        EllipseCollection(
            sizes,
            sizes,
            np.zeros(len(at)),
            units="xy",
            offsets=at,
            offset_transform=axes.transData,
            facecolors=fills,
            edgecolors=edge,
            linewidths=line,
        )
    )


def _centres(geometry: Board) -> npt.NDArray[np.float64]:
    """float64 [N, 2]: the middle of each cell, x to the right and y up, the board's middle at 0."""
    return np.array([(q + z / 2, -z * _ROW) for q, z in geometry.coords], np.float64)


def _label_lines(axes: Axes, geometry: Board, centres: npt.NDArray[np.float64], unit: float) -> None:
    """Row letters at the left, and the places' numbers where their slanting lines end, above and below."""
    font = min(11.0, unit * 0.55 * 72 / _DPI)
    for row in geometry.rows:
        x, y = centres[row.start]
        axes.text(x - 0.85, y, geometry.labels[row.start][0], ha="center", va="center", fontsize=font, color=_GREY)
    for row, up in ((geometry.rows[0], 1), (geometry.rows[-1], -1)):
        for place, cell in enumerate(row, 1):
            x, y = centres[cell]
            at = (x + 0.43, y + up * 0.75)
            axes.text(*at, str(place), ha="center", va="center", fontsize=font, color=_GREY)


def _labels_at_right(axes: Axes, labels: list[tuple[str, float, str]], bottom: float, top: float) -> None:
    """Write texts right of the axes, each at its height, moved apart where they would cover one another."""
    step = 0.043
    ordered = sorted(labels, key=lambda label: label[1])
    heights = [(value - bottom) / (top - bottom) for _, value, _ in ordered]
    for _ in range(100):
        for i in range(1, len(heights)):
            push = max(0.0, step - (heights[i] - heights[i - 1])) / 2
            heights[i - 1] -= push
            heights[i] += push
    for (text, _, colour), height in zip(ordered, heights, strict=True):
        axes.text(
            1.015, height, text, transform=axes.transAxes, va="center", fontsize=9.5, color=colour, parse_math=False
        )


def _figure(width: int, height: int) -> Figure:
    """A white figure of so many pixels, known to none of matplotlib's global state."""
    # A hundredth more, as matplotlib rounds pixels down and the division may have done so before.
    return Figure(figsize=((width + 0.01) / _DPI, (height + 0.01) / _DPI), dpi=_DPI, facecolor="white")


def _pixels(figure: Figure, width: int, height: int) -> Image:
    out = io.BytesIO()
    figure.savefig(out, format="rgba")
    return np.frombuffer(out.getvalue(), np.uint8).reshape(height, width, 4)[:, :, :3].copy()
