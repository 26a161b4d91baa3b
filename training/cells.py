"""The network over cells in place of the grid: the same function of the same weights, faster on a CPU.

A hex board fills three quarters of its grid and a hexagon seven ninths of a 3x3 kernel, so a convolution on the grid
spends two fifths of its work on zeros. Here activations are [C, N, B], channels by cells by games: gathering the seven
neighbours of every cell copies runs of B numbers, and what is left of a convolution is one matrix product. Its factors
may be rounded to bfloat16, which processors that multiply it do several times as fast; all else is float32.
"""

from __future__ import annotations

from typing import Any, cast

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from lifeline.compiled import kernel
from training.auxiliary import AuxiliaryHeads, Extras
from training.neighbours import column_blocks, neighbours, padded_cells
from training.network import Block, Features, HexConv, Network


class _CellConv(torch.autograd.Function):
    """HexConv over cells. Backward gathers anew: that is cheaper than to keep seven copies of the input."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor, table: Tensor, dtype: torch.dtype) -> Tensor:
        ctx.save_for_backward(x, weight, table)
        ctx.dtype = dtype
        matrix, padded = weight.flatten(1).to(dtype), padded_cells(x, "padded", dtype)
        out = x.new_empty(len(weight), x[0].numel())
        for columns, index in column_blocks(table, x.shape[2], dtype):
            taps = neighbours(padded, index)
            if dtype == torch.float32:
                torch.addmm(bias[:, None], matrix, taps, out=out[:, columns])
            else:
                torch.add(bias[:, None], matrix @ taps, out=out[:, columns])
        return out.view(-1, *x.shape[1:])

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, Tensor, Tensor, None, None]:
        x, weight, table = ctx.saved_tensors
        padded, gradient = padded_cells(x, "padded", ctx.dtype), padded_cells(gradients[0], "gradient", ctx.dtype)
        dy = gradient.flatten(1)
        # A cell is its neighbour's neighbour by the opposite tap.
        back = weight.transpose(0, 1).flip(2).flatten(1).to(ctx.dtype)
        dw = weight.new_zeros(len(weight), weight[0].numel())
        dx = x.new_empty(len(x), x[0].numel()) if ctx.needs_input_grad[0] else None
        for columns, index in column_blocks(table, x.shape[2], ctx.dtype):
            dw += dy[:, columns] @ neighbours(padded, index).T
            if dx is not None and ctx.dtype == torch.float32:
                torch.mm(back, neighbours(gradient, index), out=dx[:, columns])
            elif dx is not None:
                dx[:, columns] = back @ neighbours(gradient, index)
        if dx is not None:
            dx = dx.view(x.shape)
        return dx, dw.view(weight.shape), gradients[0].flatten(1).sum(dim=1), None, None


def _pointwise(layer: nn.Conv2d, x: Tensor) -> Tensor:
    """A 1x1 convolution: [C, N, B] to [C', N, B]."""
    assert layer.bias is not None
    return torch.addmm(layer.bias[:, None], layer.weight.flatten(1), x.flatten(1)).view(-1, *x.shape[1:])


def linear(layer: nn.Linear, x: Tensor) -> Tensor:
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


def pool(x: Tensor) -> Tensor:
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
            y = F.relu(y + linear(block.pooled, pool(y))[:, None])
        x = x + conv(block.second, y)
    return head_features(network, F.relu(x))


def head_features(network: Network, x: Tensor) -> Features:
    """What the heads look at, of the tower's last activations [C, N, B], rectified."""
    p = F.relu(_pointwise(network.policy_cells, x))
    pooled = pool(p)
    p = F.relu(p + linear(network.policy_pooled, pooled)[:, None])
    v = F.relu(_pointwise(network.value_cells, x))
    return Features(x, p, pooled, F.relu(linear(network.value_hidden, pool(v))))


def heads_of_cells(network: Network, features: Features) -> tuple[Tensor, Tensor, Tensor]:
    """policy_cells [B, N], policy_global [B, 2] and value_logit [B], as `Network.forward` gives them."""
    return (
        _pointwise(network.policy_out, features.policy)[0].T,
        linear(network.policy_global, features.pooled).T,
        linear(network.value_out, features.value)[0],
    )


def extras_of_cells(heads: AuxiliaryHeads, features: Features) -> Extras:
    """What the auxiliary heads say, as `AuxiliaryHeads.forward` gives it."""
    return Extras(
        _pointwise(heads.policies, features.policy).permute(2, 0, 1),
        linear(heads.policies_global, features.pooled).T.reshape(-1, 2, 2),
        _pointwise(heads.stones, features.tower).permute(2, 0, 1),
        linear(heads.scalars, features.value).T,
    )
