"""Auxiliary heads and their losses: they make the tower learn more of each position, and are not exported.

Source of the kinds: KataGo (Wu 2019 and its later methods), but for the stones some plies later, which stand in for its
ownership: in Lifeline the loser ends without stones, so the final board says nothing that the value does not.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from training.config import LearnerConfig, NetworkConfig
from training.network import Features

NAMES = ("reply", "soft", "later", "short", "left")
_SOFTENING = 0.25
_MINUS_INFINITY = -1e9


class Extras(NamedTuple):
    """What the auxiliary heads say. P places.

    Attributes:
        policies: [B, 2, P], logits of the next ply's policy and of the softened one; policies_global: [B, 2, 2], the
            same of the global actions.
        stones: [B, 2, P], log-odds that the colour to place, and the other one, hold a place some plies later.
        scalars: [B, 2], log-odds of winning by the search some plies later, and the plies left.
    """

    policies: Tensor
    policies_global: Tensor
    stones: Tensor
    scalars: Tensor


class AuxiliaryHeads(nn.Module):
    """Small layers over what a network's own heads look at."""

    def __init__(self, config: NetworkConfig) -> None:
        super().__init__()
        h = config.head_channels
        self.policies = nn.Conv2d(h, 2, 1)
        self.policies_global = nn.Linear(2 * h, 4)
        self.stones = nn.Conv2d(config.channels, 2, 1)
        self.scalars = nn.Linear(config.value_hidden, 2)

    def forward(self, features: Features) -> Extras:
        """Of features over the grid."""
        return Extras(
            self.policies(features.policy).flatten(2),
            self.policies_global(features.pooled).view(-1, 2, 2),
            self.stones(features.tower).flatten(2),
            self.scalars(features.value),
        )


class Targets(NamedTuple):
    """What they are held against, beside the main targets.

    Attributes:
        board: bool [B, P], the places that are cells.
        reply: float32 [B, P + 2], the policy target of the next ply; zeros where there is none.
        stones: float32 [B, 2, P], where the colour to place now, and the other one, have stones some plies later.
        value: float32 [B] in [0, 1], what the search thought then, for the player to move now.
        left: float32 [B], plies left as a share of the cells.
        known: float32 [B], 1 where stones and plies left are to be foreseen, 0 where not.
    """

    board: Tensor
    reply: Tensor
    stones: Tensor
    value: Tensor
    left: Tensor
    known: Tensor


def auxiliary_losses(
    extras: Extras, targets: Targets, policy: Tensor, legal: Tensor, config: LearnerConfig
) -> tuple[Tensor, Tensor]:
    """The weighted sum of the auxiliary losses, with z-losses of their policies, and each of them alone.

    Args:
        policy: float32 [B, P + 2], the policy targets of these plies; legal: bool [B, P + 2].
    Returns:
        A scalar, and [5] in the order of `NAMES`, means over the batch in nats (the last: squared error).
    """
    logits = torch.cat([extras.policies, extras.policies_global], dim=2)
    everywhere = torch.cat([targets.board, torch.ones_like(legal[:, -2:])], dim=1)
    soft = policy.pow(_SOFTENING) * (policy.sum(dim=1, keepdim=True) > 0)
    soft = soft / soft.sum(dim=1, keepdim=True).clamp_min(1e-9)
    stones = F.binary_cross_entropy_with_logits(extras.stones, targets.stones, reduction="none").sum(dim=1)
    board = targets.board.float()
    reply_logits = logits[:, 0].masked_fill(~everywhere, _MINUS_INFINITY)
    soft_logits = logits[:, 1].masked_fill(~legal, _MINUS_INFINITY)
    losses = torch.stack(
        [
            _cross_entropy(reply_logits, targets.reply),
            _cross_entropy(soft_logits, soft),
            ((stones * board).sum(dim=1) / board.sum(dim=1) * targets.known).mean(),
            F.binary_cross_entropy_with_logits(extras.scalars[:, 0], targets.value),
            ((extras.scalars[:, 1] - targets.left).square() * targets.known).mean(),
        ]
    )
    weights = [config.reply_weight, config.soft_weight, config.later_weight, config.short_weight, config.left_weight]
    z_losses = (config.reply_weight > 0) * z_loss_of(reply_logits) + (config.soft_weight > 0) * z_loss_of(soft_logits)
    total = (losses * torch.tensor(weights, device=losses.device)).sum() + config.z_weight * z_losses
    return total, losses.detach()


def _cross_entropy(logits: Tensor, target: Tensor) -> Tensor:
    """Mean over the batch; 0 in rows whose target is all zero."""
    return -(target * F.log_softmax(logits, dim=1)).sum(dim=1).mean()


def z_loss_of(logits: Tensor) -> Tensor:
    """Mean of the squared logarithm of what a policy is normalised by, [B, A] to a scalar; 0 where that is 1.

    Source: Chowdhery et al. 2022 (PaLM), section 5.
    """
    return torch.logsumexp(logits, dim=1).square().mean()
