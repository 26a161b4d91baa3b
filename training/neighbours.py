"""The neighbours of every cell of a board, gathered for products over cells, see `cells`."""

from __future__ import annotations

import math
import threading
from collections.abc import Iterator
from itertools import pairwise

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from training.taps import TAPS

# A product in float32 is made in blocks of about so many columns, for which what is gathered stays in the cache. All at
# once takes up to 1.7 times as long (docs/log.md). For bfloat16 that has not been measured: there all is one block.
_COLUMNS = 1024


def neighbour_table(cell_to_grid: npt.NDArray[np.int64], grid_shape: tuple[int, int]) -> Tensor:
    """int64 [7, N]: for each of the seven taps of `HexConv.weight` the cell it reads at every cell, N off the board.

    Args:
        cell_to_grid: int64 [N], where each cell lies on the flattened grid.
        grid_shape: of the grid.
    """
    cells = len(cell_to_grid)
    at = np.full((grid_shape[0] + 2, grid_shape[1] + 2), cells, np.int64)
    rows, columns = np.divmod(cell_to_grid, grid_shape[1])
    at[rows + 1, columns + 1] = np.arange(cells)
    return torch.from_numpy(np.stack([at[rows + 1 + dr, columns + 1 + dc] for dr, dc in TAPS]))


def column_blocks(table: Tensor, batch: int, dtype: torch.dtype) -> Iterator[tuple[slice, Tensor]]:
    """Runs of cells whose products are made at once.

    Args:
        table: int64 [7, N], of `neighbour_table`.
        batch: positions, at least 1.
        dtype: of the factors.
    Yields:
        Which columns of N B they are, and what their taps read, int64 [7 n].
    """
    cells = table.shape[1]
    count = min(cells, -(-cells * batch // _COLUMNS)) if dtype == torch.float32 else 1
    ends = [cells * i // count for i in range(count + 1)]
    for first, last in pairwise(ends):
        yield slice(first * batch, last * batch), table[:, first:last].flatten()


class Scratch(threading.local):
    """Buffers of one thread: memory asked of the system anew for every layer costs more than to fill it."""

    def __init__(self) -> None:
        self._buffers: dict[tuple[str, torch.dtype], Tensor] = {}

    def get(self, name: str, dtype: torch.dtype, *shape: int) -> Tensor:
        """A tensor of that shape, in which anything may stand; the next one of that name takes its place."""
        size = math.prod(shape)
        buffer = self._buffers.get((name, dtype))
        if buffer is None or len(buffer) < size:
            with torch.inference_mode(False):  # else only what runs in that mode could use it
                buffer = self._buffers[name, dtype] = torch.empty(size, dtype=dtype)
        return buffer[:size].view(shape)


_scratch = Scratch()


def padded_cells(x: Tensor, name: str, dtype: torch.dtype) -> Tensor:
    """[C, N, B] with one more cell of zeros, [C, N + 1, B]; overwritten by the next call of that name."""
    channels, cells, batch = x.shape
    out = _scratch.get(name, dtype, channels, cells + 1, batch)
    out[:, :cells] = x
    out[:, cells] = 0
    return out


def neighbours(padded: Tensor, index: Tensor, ones: int = 0) -> Tensor:
    """What the seven taps read at some cells, above so many rows of ones.

    Args:
        padded: [C, N + 1, B], the last cell zeros.
        index: int64 [7 n], of `column_blocks`.
        ones: rows.
    Returns:
        [7 C + ones, n B], overwritten by the next call.
    """
    channels, _, batch = padded.shape
    rows = 7 * channels
    taps = _scratch.get("taps", padded.dtype, rows + ones, len(index) // 7 * batch)
    torch.index_select(padded, 1, index, out=taps[:rows].view(channels, -1, batch))
    taps[rows:] = 1
    return taps
