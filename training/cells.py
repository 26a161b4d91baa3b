"""The network over cells in place of the grid: the same function of the same weights, faster on a CPU.

A hex board fills three quarters of its grid and a hexagon seven ninths of a 3x3 kernel, so a convolution on the grid
spends two fifths of its work on zeros. Here activations are [C, N, B], channels by cells by games: gathering the seven
neighbours of every cell copies runs of B numbers, and what is left of a convolution is one matrix product.
"""

from __future__ import annotations

import threading
from typing import Any, cast

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from lifeline.board import Board
from training.auxiliary import AuxiliaryHeads, Extras
from training.network import Block, Features, HexConv, Network


def neighbour_table(board: Board) -> Tensor:
    """int64 [7 N]: for each of the seven taps of `HexConv.weight` the cell it reads at every cell, N off the board."""
    grid_width = board.grid_shape[1]
    cells = board.num_cells
    at = np.full((board.grid_shape[0] + 2, grid_width + 2), cells, np.int64)
    rows, columns = np.divmod(board.cell_to_grid, grid_width)
    at[rows + 1, columns + 1] = np.arange(cells)
    taps = [(-1, 0), (-1, 1), (0, -1), (0, 0), (0, 1), (1, -1), (1, 0)]  # of a 3x3 kernel without two corners
    return torch.from_numpy(np.concatenate([at[rows + 1 + dr, columns + 1 + dc] for dr, dc in taps]))


class _CellConv(torch.autograd.Function):
    """HexConv over cells. Backward gathers anew: that is cheaper than to keep seven copies of the input."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor, table: Tensor) -> Tensor:
        ctx.save_for_backward(x, weight, table)
        out = torch.addmm(bias[:, None], weight.flatten(1), _gather(x, table))
        return out.view(weight.shape[0], *x.shape[1:])

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, Tensor, Tensor, None]:
        x, weight, table = ctx.saved_tensors
        dy = gradients[0].contiguous()
        flat = dy.flatten(1)
        dw = (flat @ _gather(x, table).T).view(weight.shape)
        dx = None
        if ctx.needs_input_grad[0]:
            # A cell is its neighbour's neighbour by the opposite tap.
            back = weight.transpose(0, 1).flip(2).reshape(weight.shape[1], -1)
            dx = (back @ _gather(dy, table)).view(x.shape)
        return dx, dw, flat.sum(dim=1), None


class _Scratch(threading.local):
    """Buffers of one thread, by shape: memory asked of the system anew for every layer costs more than to fill it."""

    def __init__(self) -> None:
        self._buffers: dict[tuple[int, int, int, int], tuple[Tensor, Tensor]] = {}

    def get(self, channels: int, cells: int, batch: int, taps: int) -> tuple[Tensor, Tensor]:
        """A [C, N + 1, B] of which the last cell is zero, and a [C, T, B]."""
        key = (channels, cells, batch, taps)
        if key not in self._buffers:
            self._buffers[key] = torch.zeros(channels, cells + 1, batch), torch.empty(channels, taps, batch)
        return self._buffers[key]


_scratch = _Scratch()


def _gather(x: Tensor, table: Tensor) -> Tensor:
    """The neighbours of every cell: [C, N, B] to [7 C, N B], zeros off the board. Overwritten by the next call."""
    channels, cells, batch = x.shape
    padded, taps = _scratch.get(channels, cells, batch, len(table))
    padded[:, :cells] = x
    torch.index_select(padded, 1, table, out=taps)
    return taps.view(7 * channels, cells * batch)


def _conv(layer: HexConv, x: Tensor, table: Tensor) -> Tensor:
    return cast(Tensor, _CellConv.apply(x, layer.weight, layer.bias, table))  # type: ignore[no-untyped-call]


def _pointwise(layer: nn.Conv2d, x: Tensor) -> Tensor:
    """A 1x1 convolution: [C, N, B] to [C', N, B]."""
    assert layer.bias is not None
    return torch.addmm(layer.bias[:, None], layer.weight.flatten(1), x.flatten(1)).view(-1, *x.shape[1:])


def _linear(layer: nn.Linear, x: Tensor) -> Tensor:
    """[C, B] to [C', B]."""
    return torch.addmm(layer.bias[:, None], layer.weight, x)


def _pool(x: Tensor) -> Tensor:
    """Mean and maximum over the cells: [C, N, B], non-negative, to [2 C, B]."""
    return torch.cat([x.mean(dim=1), x.amax(dim=1)])


def features_of_cells(network: Network, planes: Tensor, table: Tensor) -> Features:
    """What the heads look at, of positions given by cells.

    Args:
        network: on a CPU.
        planes: float32 [C, N, B], the input planes at the board's cells.
        table: of `neighbour_table`.
    Returns:
        tower and policy [., N, B], pooled and value [., B].
    """
    x = _conv(network.stem, network.seen(planes, 0), table)
    for module in network.blocks:
        block = cast(Block, module)
        y = F.relu(_conv(block.first, F.relu(x), table))
        if block.pooled is not None:
            y = F.relu(y + _linear(block.pooled, _pool(y))[:, None])
        x = x + _conv(block.second, y, table)
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
