"""The network over cells in place of the grid: the same function of the same weights, faster on a CPU.

A hex board fills three quarters of its grid and a hexagon seven ninths of a 3x3 kernel, so a convolution on the grid
spends two fifths of its work on zeros. Here activations are [C, N, B], channels by cells by games: gathering the seven
neighbours of every cell copies runs of B numbers, and what is left of a convolution is one matrix product. Its factors
may be rounded to bfloat16, which processors that multiply it do several times as fast; all else is float32.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Iterator
from itertools import pairwise
from typing import Any, cast

import numpy as np
import numpy.typing as npt
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from lifeline.compiled import kernel
from training.auxiliary import AuxiliaryHeads, Extras
from training.network import Block, Features, HexConv, Network
from training.taps import TAPS


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


# A product in float32 is made in blocks of about so many columns, for which what is gathered stays in the cache. All at
# once takes up to 1.7 times as long (docs/log.md). In bfloat16 a block takes so little time that it is all one.
COLUMNS = 1024


def _blocks(table: Tensor, batch: int, dtype: torch.dtype) -> Iterator[tuple[slice, Tensor]]:
    """Runs of cells that make about COLUMNS columns: which columns they are, and what their taps read, [7 cells]."""
    cells = table.shape[1]
    count = min(cells, -(-cells * batch // COLUMNS)) if dtype == torch.float32 and batch else 1
    ends = [cells * i // count for i in range(count + 1)]
    for first, last in pairwise(ends):
        yield slice(first * batch, last * batch), table[:, first:last].flatten()


class _CellConv(torch.autograd.Function):
    """HexConv over cells. Backward gathers anew: that is cheaper than to keep seven copies of the input."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor, table: Tensor, dtype: torch.dtype) -> Tensor:
        ctx.save_for_backward(x, weight, table)
        ctx.dtype = dtype
        matrix, padded = weight.flatten(1).to(dtype), _padded(x, "padded", dtype)
        out = x.new_empty(len(weight), x[0].numel())
        for columns, index in _blocks(table, x.shape[2], dtype):
            taps = _neighbours(padded, index)
            if dtype == torch.float32:
                torch.addmm(bias[:, None], matrix, taps, out=out[:, columns])
            else:
                torch.add(bias[:, None], matrix @ taps, out=out[:, columns])
        return out.view(-1, *x.shape[1:])

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, Tensor, Tensor, None, None]:
        x, weight, table = ctx.saved_tensors
        padded, gradient = _padded(x, "padded", ctx.dtype), _padded(gradients[0], "gradient", ctx.dtype)
        dy = gradient.flatten(1)
        # A cell is its neighbour's neighbour by the opposite tap.
        back = weight.transpose(0, 1).flip(2).flatten(1).to(ctx.dtype)
        dw = weight.new_zeros(len(weight), weight[0].numel())
        dx = x.new_empty(len(x), x[0].numel()) if ctx.needs_input_grad[0] else None
        for columns, index in _blocks(table, x.shape[2], ctx.dtype):
            dw += dy[:, columns] @ _neighbours(padded, index).T
            if dx is not None and ctx.dtype == torch.float32:
                torch.mm(back, _neighbours(gradient, index), out=dx[:, columns])
            elif dx is not None:
                dx[:, columns] = back @ _neighbours(gradient, index)
        if dx is not None:
            dx = dx.view(x.shape)
        return dx, dw.view(weight.shape), gradients[0].flatten(1).sum(dim=1), None, None


class _Scratch(threading.local):
    """Buffers of one thread: memory asked of the system anew for every layer costs more than to fill it."""

    def __init__(self) -> None:
        self._buffers: dict[tuple[str, torch.dtype], Tensor] = {}

    def get(self, name: str, dtype: torch.dtype, *shape: int) -> Tensor:
        """A tensor of that shape, in which anything may stand; the next one of that name takes its place."""
        size = math.prod(shape)
        buffer = self._buffers.get((name, dtype))
        if buffer is None or len(buffer) < size:
            buffer = self._buffers[name, dtype] = torch.empty(size, dtype=dtype)
        return buffer[:size].view(shape)


_scratch = _Scratch()


def _padded(x: Tensor, name: str, dtype: torch.dtype) -> Tensor:
    """[C, N, B] with one more cell of zeros, [C, N + 1, B]; overwritten by the next call of that name."""
    channels, cells, batch = x.shape
    out = _scratch.get(name, dtype, channels, cells + 1, batch)
    out[:, :cells] = x
    out[:, cells] = 0
    return out


def _neighbours(padded: Tensor, index: Tensor) -> Tensor:
    """What the seven taps read at some cells: [C, N + 1, B] to [7 C, cells B]. Overwritten by the next call."""
    channels, _, batch = padded.shape
    taps = _scratch.get("taps", padded.dtype, channels, len(index), batch)
    torch.index_select(padded, 1, index, out=taps)
    return taps.view(7 * channels, -1)


def _pointwise(layer: nn.Conv2d, x: Tensor) -> Tensor:
    """A 1x1 convolution: [C, N, B] to [C', N, B]."""
    assert layer.bias is not None
    return torch.addmm(layer.bias[:, None], layer.weight.flatten(1), x.flatten(1)).view(-1, *x.shape[1:])


def _linear(layer: nn.Linear, x: Tensor) -> Tensor:
    """[C, B] to [C', B]."""
    return torch.addmm(layer.bias[:, None], layer.weight, x)


class _Pool(torch.autograd.Function):
    """Mean and maximum over the cells. torch's own way back takes as long as three convolutions."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        most = x.amax(dim=1)
        ctx.save_for_backward(x, most)
        return torch.cat([x.mean(dim=1), most])

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Tensor:
        x, most = ctx.saved_tensors
        dx = torch.empty_like(x)
        share = torch.empty(x.shape[2])
        spread_back(gradients[0].contiguous().numpy(), x.numpy(), most.numpy(), share.numpy(), dx.numpy())
        return dx


@kernel
def spread_back(gradient, x, most, share, dx):
    """Gradients of mean and maximum [2 C, B] to those of x [C, N, B]; cells that share the maximum share its.

    `share` [B] is room to work in.
    """
    channels, cells, batch = x.shape
    for c in range(channels):
        share[:] = 0
        for n in range(cells):
            for b in range(batch):
                share[b] += np.float32(x[c, n, b] == most[c, b])
        for b in range(batch):
            share[b] = gradient[channels + c, b] / share[b]
        for n in range(cells):
            for b in range(batch):
                highest = share[b] if x[c, n, b] == most[c, b] else np.float32(0)
                dx[c, n, b] = gradient[c, b] / np.float32(cells) + highest


def _pool(x: Tensor) -> Tensor:
    """Mean and maximum over the cells: [C, N, B], non-negative, to [2 C, B]."""
    return cast(Tensor, _Pool.apply(x))


def features_of_cells(network: Network, planes: Tensor, table: Tensor, dtype: torch.dtype = torch.float32) -> Features:
    """What the heads look at, of positions given by cells.

    Args:
        network: on a CPU, float32.
        planes: float32 [C, N, B], the input planes at the board's cells.
        table: of `neighbour_table`.
        dtype: float32 or bfloat16: what the factors of convolutions over seven cells are rounded to.
    Returns:
        tower and policy [., N, B], pooled and value [., B]; float32.
    """

    def conv(layer: HexConv, x: Tensor) -> Tensor:
        return cast(Tensor, _CellConv.apply(x, layer.weight, layer.bias, table, dtype))

    x = conv(network.stem, network.seen(planes, 0))
    for module in network.blocks:
        block = cast(Block, module)
        y = F.relu(conv(block.first, F.relu(x)))
        if block.pooled is not None:
            y = F.relu(y + _linear(block.pooled, _pool(y))[:, None])
        x = x + conv(block.second, y)
    x = F.relu(x)
    p = F.relu(_pointwise(network.policy_cells, x))
    pooled = _pool(p)
    p = F.relu(p + _linear(network.policy_pooled, pooled)[:, None])
    v = F.relu(_pointwise(network.value_cells, x))
    return Features(x, p, pooled, F.relu(_linear(network.value_hidden, _pool(v))))


def heads_of_cells(network: Network, features: Features) -> tuple[Tensor, Tensor, Tensor]:
    """policy_cells [B, N], policy_global [B, 2] and value_logit [B], as `Network.forward` gives them."""
    return (
        _pointwise(network.policy_out, features.policy)[0].T,
        _linear(network.policy_global, features.pooled).T,
        _linear(network.value_out, features.value)[0],
    )


def extras_of_cells(heads: AuxiliaryHeads, features: Features) -> Extras:
    """What the auxiliary heads say, as `AuxiliaryHeads.forward` gives it."""
    return Extras(
        _pointwise(heads.policies, features.policy).permute(2, 0, 1),
        _linear(heads.policies_global, features.pooled).T.reshape(-1, 2, 2),
        _pointwise(heads.stones, features.tower).permute(2, 0, 1),
        _linear(heads.scalars, features.value).T,
    )
