"""The network's tower over cells without gradients, in float32: the function of `cells`, faster.

Activations keep their memory, and each block of columns goes through all of a layer while it is in the cache: the bias
comes with the product by a row of ones, the product is added to the residual where that lies, and what the next layer
reads is rectified at once.
"""

from __future__ import annotations

from typing import cast

import torch
from torch import Tensor

from training.cells import linear, pool
from training.neighbours import Scratch, column_blocks, neighbours
from training.network import Block, HexConv, Network

_scratch = Scratch()


class CellTower:
    """Runs a network's tower, in one or more threads.

    Args:
        network: on a CPU, float32; its weights must not change afterwards.
    """

    def __init__(self, network: Network) -> None:
        blocks = [cast(Block, module) for module in network.blocks]
        self._stem = _matrix(network.stem)
        self._blocks = [(_matrix(block.first), block.pooled, _matrix(block.second)) for block in blocks]

    @torch.no_grad()
    def run(self, planes: Tensor, table: Tensor) -> Tensor:
        """The tower's last activations.

        Args:
            planes: float32 [P, N, B], those planes that the network sees, at the board's cells.
            table: int64 [7, N], of `neighbour_table`.
        Returns:
            float32 [C, N, B], rectified, in memory that the thread's next call overwrites.
        """
        inputs, cells, batch = planes.shape
        channels = len(self._stem)
        seen, outer, inner = (
            _scratch.get(name, torch.float32, rows, cells + 1, batch)
            for name, rows in (("seen", inputs), ("outer", channels), ("inner", channels))
        )
        seen[:, :cells] = planes
        for padded in (seen, outer, inner):
            padded[:, cells] = 0
        x = _scratch.get("x", torch.float32, channels, cells * batch)
        _convolve(self._stem, seen, table, x.zero_(), outer)
        y = inner[:, :cells]
        for first, pooled, second in self._blocks:
            _convolve(first, outer, table, None, inner)
            if pooled is not None:
                y.add_(linear(pooled, pool(y))[:, None]).relu_()
            _convolve(second, inner, table, x, outer)
        return outer[:, :cells]


def _matrix(layer: HexConv) -> Tensor:
    """Weights and bias of a convolution: [C', 7 C + 1]."""
    return torch.cat([layer.weight.flatten(1), layer.bias[:, None]], dim=1).detach()


def _convolve(matrix: Tensor, padded: Tensor, table: Tensor, x: Tensor | None, out: Tensor) -> None:
    """A convolution of `padded`, to which `x` is added and which is written there; rectified, to `out`.

    Args:
        matrix: [C', 7 C + 1].
        padded: [C, N + 1, B].
        table: [7, N].
        x: [C', N B], or None for zeros that need not be kept.
        out: [C', N + 1, B], of which the last cell is left as it is.
    """
    batch, rectified = padded.shape[2], out.flatten(1)
    for columns, index in column_blocks(table, batch, torch.float32):
        taps, target = neighbours(padded, index, ones=1), rectified[:, columns]
        if x is None:
            torch.mm(matrix, taps, out=target).relu_()
        else:
            torch.clamp_min(x[:, columns].addmm_(matrix, taps), 0, out=target)
