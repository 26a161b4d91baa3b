"""The policy/value network: a residual tower of hex convolutions, for any board size with one set of weights.

In:  planes float32 [B, C, H, W], plane 0 the board mask.
Out: policy_grid [B, H, W] and policy_global [B, 2] (swap, spend komi), unnormalised log-probabilities,
     value_logit [B], the log-odds that the player to move wins.

Activations are masked to the board after every layer and pooled over its cells only, so that what lies off the board,
and how much of it, cannot matter. There is no normalisation layer: each block starts as the identity instead.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple, cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from lifeline.errors import ModelError
from lifeline.observation import NUM_PLAIN_PLANES, NUM_PLANES, NUM_TACTICAL_PLANES
from training.config import NetworkConfig


class HexConv(nn.Module):
    """A convolution over a cell and its six neighbours: 3x3 on the axial grid with two opposite corners at zero.

    The weights are kept as [out, in, 7], row by row through the hexagon; the corners stand at both ends of the
    flattened 3x3 kernel, so padding by one on either side makes it.
    """

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(outputs, inputs, 7))
        self.bias = nn.Parameter(torch.zeros(outputs))
        nn.init.kaiming_normal_(self.weight, nonlinearity="relu")

    def forward(self, x: Tensor) -> Tensor:
        """[B, in, H, W] to [B, out, H, W]; what is written off the board is the caller's to mask."""
        outputs, inputs, _ = self.weight.shape
        return F.conv2d(x, F.pad(self.weight, (1, 1)).view(outputs, inputs, 3, 3), self.bias, padding=1)


def pool(x: Tensor, mask: Tensor, cells: Tensor) -> Tensor:
    """Mean and maximum over the cells of the board: [B, C, H, W] masked and non-negative to [B, 2 C]."""
    return torch.cat([x.sum(dim=(2, 3)) / cells, x.amax(dim=(2, 3))], dim=1)


class Block(nn.Module):
    """A residual block; with `pooled` its middle layer also sees the whole board."""

    def __init__(self, channels: int, pooled: bool) -> None:
        super().__init__()
        self.first = HexConv(channels, channels)
        self.second = HexConv(channels, channels)
        nn.init.zeros_(self.second.weight)
        self.pooled = nn.Linear(2 * channels, channels) if pooled else None

    def forward(self, x: Tensor, mask: Tensor, cells: Tensor) -> Tensor:
        """[B, channels, H, W] to the same, masked."""
        y = F.relu(self.first(F.relu(x))) * mask
        if self.pooled is not None:
            y = F.relu(y + self.pooled(pool(y, mask, cells))[:, :, None, None]) * mask
        return cast(Tensor, x + self.second(y) * mask)


def planes_of(config: NetworkConfig) -> tuple[int, ...]:
    """Which of the planes a network sees, ascending."""
    seen = list(range(NUM_PLAIN_PLANES))
    if config.tactical_planes:
        seen += range(NUM_PLAIN_PLANES, NUM_TACTICAL_PLANES)
    if config.region_planes:
        seen += range(NUM_TACTICAL_PLANES, NUM_PLANES)
    return tuple(seen)


class Features(NamedTuple):
    """What the heads look at. P: the places of the policy, grid or cells; the order of axes is that of the layout.

    Attributes:
        tower: the tower's last activations, by place.
        policy: those of the policy head, by place; pooled: the same over the board.
        value: the value head's hidden layer.
    """

    tower: Tensor
    policy: Tensor
    pooled: Tensor
    value: Tensor


class Network(nn.Module):
    """See the module's text."""

    def __init__(self, config: NetworkConfig) -> None:
        super().__init__()
        self.config = config
        c, h = config.channels, config.head_channels
        self.stem = HexConv(len(planes_of(config)), c)
        self.blocks = nn.ModuleList(Block(c, pooled=(i + 1) % config.pool_every == 0) for i in range(config.blocks))
        self.policy_cells = nn.Conv2d(c, h, 1)
        self.policy_pooled = nn.Linear(2 * h, h)
        self.policy_out = nn.Conv2d(h, 1, 1)
        self.policy_global = nn.Linear(2 * h, 2)
        self.value_cells = nn.Conv2d(c, h, 1)
        self.value_hidden = nn.Linear(2 * h, config.value_hidden)
        self.value_out = nn.Linear(config.value_hidden, 1)

    def seen(self, planes: Tensor, axis: int) -> Tensor:
        """Those planes that it sees, of some along an axis."""
        first = NUM_TACTICAL_PLANES if self.config.tactical_planes else NUM_PLAIN_PLANES
        plain = planes.narrow(axis, 0, first)
        if not self.config.region_planes:
            return plain
        return torch.cat([plain, planes.narrow(axis, NUM_TACTICAL_PLANES, NUM_PLANES - NUM_TACTICAL_PLANES)], axis)

    def features(self, planes: Tensor) -> Features:
        """Planes float32 [B, C, H, W] to what the heads look at, over the grid."""
        mask = planes[:, :1]
        cells = mask.sum(dim=(2, 3))
        x = self.stem(self.seen(planes, 1)) * mask
        for block in self.blocks:
            x = block(x, mask, cells)
        x = F.relu(x)
        p = F.relu(self.policy_cells(x)) * mask
        pooled = pool(p, mask, cells)
        p = F.relu(p + self.policy_pooled(pooled)[:, :, None, None]) * mask
        v = F.relu(self.value_cells(x)) * mask
        return Features(x, p, pooled, F.relu(self.value_hidden(pool(v, mask, cells))))

    def heads(self, features: Features, mask: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Features over the grid to (policy_grid, policy_global, value_logit)."""
        policy_grid = (self.policy_out(features.policy) * mask)[:, 0]
        return policy_grid, self.policy_global(features.pooled), self.value_out(features.value)[:, 0]

    def forward(self, planes: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Planes to (policy_grid, policy_global, value_logit)."""
        return self.heads(self.features(planes), planes[:, :1])


def network_with(config: NetworkConfig, weights: Mapping[str, Tensor]) -> Network:
    """A network with given weights, which are copied.

    Raises:
        ModelError: they are not those of such a network.
    """
    network = Network(config).eval()
    try:
        network.load_state_dict(dict(weights))
    except RuntimeError:
        raise ModelError("these weights are not those of the run's network") from None
    return network


class Exportable(nn.Module):
    """A network with the public signature: the value in [-1, 1] in place of its log-odds."""

    def __init__(self, network: Network) -> None:
        super().__init__()
        self.network = network

    def forward(self, planes: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Planes to (policy_grid, policy_global, value)."""
        policy_grid, policy_global, value_logit = self.network(planes)
        return policy_grid, policy_global, torch.tanh(value_logit / 2)
