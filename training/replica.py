"""A network under training with its optimiser: what each device of a learner holds."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from lifeline.board import Board
from lifeline.env import BatchEnv
from lifeline.errors import RunError
from lifeline.rules import Rules
from training.auxiliary import NAMES, AuxiliaryHeads, Extras, Targets, auxiliary_losses, z_loss_of
from training.cells import extras_of_cells, features_of_cells, heads_of_cells
from training.config import LearnerConfig, NetworkConfig
from training.equivariance import Tie
from training.neighbours import neighbour_table
from training.network import Network
from training.samples import batch_of
from training.targets import Later, Samples

Outputs = tuple[Tensor, Tensor, Tensor, Extras | None]
FIGURES = ("policy", "value", "target_entropy", "z", *NAMES)
"""What `Replica.loss` tells beside the loss: means over the batch."""
AUXILIARY = "auxiliary."
"""What the names of the auxiliary heads' parameters begin with."""


class Judge(nn.Module):
    """The network over places. GPUs convolve over the grid, fastest with channels last; CPUs work over the cells.

    Args:
        network: its tower and heads.
        auxiliary: heads that only learning uses, or None.
        boards: the sizes it is asked about.
        on_grid: places are those of the grid.
        dtype: what the factors of products over cells are rounded to.
    """

    def __init__(
        self,
        network: Network,
        auxiliary: AuxiliaryHeads | None,
        boards: Sequence[Board],
        on_grid: bool,
        dtype: torch.dtype,
    ) -> None:
        super().__init__()
        self.network, self.auxiliary, self._dtype = network, auxiliary, dtype
        self._shapes = {board.num_cells: board.grid_shape for board in boards}
        tables = {} if on_grid else {b.num_cells: neighbour_table(b.cell_to_grid, b.grid_shape) for b in boards}
        self._neighbours = tables

    def forward(self, planes: Tensor, num_cells: int) -> Outputs:
        """Planes float32 [B, C, P] of a board of N cells to what the network says by place."""
        if self._neighbours:
            features = features_of_cells(
                self.network, planes.permute(1, 2, 0).contiguous(), self._neighbours[num_cells], self._dtype
            )
            extras = None if self.auxiliary is None else extras_of_cells(self.auxiliary, features)
            return (*heads_of_cells(self.network, features), extras)
        planes = planes.view(*planes.shape[:2], *self._shapes[num_cells]).contiguous(memory_format=torch.channels_last)
        features = self.network.features(planes)
        extras = None if self.auxiliary is None else self.auxiliary(features)
        return (*self.network.heads(features, planes[:, :1]), extras)


class Replica:
    """One copy of the network being trained. Copies given the same gradients stay equal.

    Args:
        rules: what is played, one for each size of board.
        network: size of the network.
        config: how it is trained.
        seed: of the first weights.
        device: where it stands.
        dtype: float32, or bfloat16 for products of factors rounded to it; weights are float32 in any case.

    Attributes:
        network, parameters, names: what is trained; names are those of the parameters, in order, the network's first.
        judge: the network over places, with its auxiliary heads.
        tie: which of its weights are equal.
    """

    def __init__(
        self,
        rules: Sequence[Rules],
        network: NetworkConfig,
        config: LearnerConfig,
        seed: int,
        device: torch.device,
        dtype: torch.dtype = torch.float32,
    ) -> None:
        self._rules = {r.num_actions: r for r in rules}
        self._config, self.device, self.dtype = config, device, dtype
        self._on_grid = device.type != "cpu"
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            self.network = Network(network)
            auxiliary = AuxiliaryHeads(network) if config.auxiliary else None
        self.judge = Judge(self.network, auxiliary, [r.board for r in rules], self._on_grid, dtype)
        self.judge.to(device)
        if self._on_grid:
            self.judge.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
        named = [(name.removeprefix("network."), p) for name, p in self.judge.named_parameters()]
        self.names = [name for name, _ in named]
        self.parameters: list[Tensor] = [p for _, p in named]
        shapes = {name: p.shape for name, p in zip(self.names, self.parameters, strict=True)}
        self.tie = Tie(network.equivariance, shapes, device)
        self._tied = {n: p for n, p in zip(self.names, self.parameters, strict=True) if n in self.tie.names}
        self.tie_weights()
        decayed = [p for p in self.parameters if p.ndim > 1]
        plain = [p for p in self.parameters if p.ndim <= 1]
        self._optimizer = torch.optim.AdamW(
            [{"params": decayed, "weight_decay": config.weight_decay}, {"params": plain, "weight_decay": 0.0}],
            lr=config.learning_rate,
            fused=True,
        )

    def warm_up(self) -> None:
        """Have the kernels compiled that a step needs."""
        for rules in self._rules.values():
            start = BatchEnv(rules, 1).gather()
            policy, value = np.zeros((1, rules.num_actions), np.float16), np.zeros(1, np.float32)
            later = Later(policy, start, value, np.zeros(1, np.int32), np.ones(1, np.bool_))
            samples = replace(Samples.single(start, policy, value), later=later)
            batch_of(samples, rules, np.zeros(1, np.int64), on_grid=self._on_grid)

    def loss(
        self,
        samples: Samples,
        symmetries: npt.NDArray[np.int64],
        policy_share: float = 1.0,
        judge: nn.Module | None = None,
    ) -> tuple[Tensor, Tensor]:
        """The mean loss of some samples, to be differentiated; and their figures, those of `FIGURES`, float [9].

        Policy loss and entropy are means over the samples that teach a policy, if `policy_share` is that of these
        samples; all else is a mean over all. If they are a share of a batch and it is that of the batch, the weighted
        sum over all shares is the mean over the batch, however unevenly such samples lie in it.

        Args:
            samples: B of them, at least one, of one size of board; with how their games went on, where there are
                auxiliary losses.
            symmetries: int64 [B], which of the 12 each is seen through.
            policy_share: share of samples that teach a policy.
            judge: called in place of `self.judge`.
        """
        rules = self._rules[samples.policy_targets.shape[1]]
        batch = batch_of(samples, rules, symmetries, on_grid=self._on_grid)
        target, legal = self._tensor(batch.policy), self._tensor(batch.legal)
        planes = self._tensor(batch.planes)
        with torch.autocast(self.device.type, self.dtype, enabled=self._on_grid and self.dtype != torch.float32):
            outputs: Outputs = (judge or self.judge)(planes, rules.num_cells)
        policy_loss, value_loss, z_loss = losses_of(outputs, target, legal, self._tensor(batch.value))
        entropy = -(target * target.clamp_min(1e-30).log()).sum(dim=1).mean()
        if policy_share > 0:  # else there is no policy loss in the batch, and nothing to scale
            policy_loss, entropy = policy_loss / policy_share, entropy / policy_share
        loss = policy_loss + self._config.value_weight * value_loss + self._config.z_weight * z_loss
        others = torch.zeros(len(NAMES), device=self.device)
        extras, later = outputs[3], samples.later
        if extras is not None:
            assert later is not None, "auxiliary losses need to know how games went on"
            targets = Targets(
                planes[:, 0] > 0,
                self._tensor(batch.reply),
                self._tensor(batch.stones),
                self._tensor(later.values),
                self._tensor(later.plies_left.astype(np.float32) / rules.num_cells),
                self._tensor(later.known.astype(np.float32)),
            )
            # Halves of 16 bits are for the tower; losses are summed in full.
            full = Extras(*(part.float() for part in extras))
            extra, others = auxiliary_losses(full, targets, target, legal, self._config)
            loss = loss + extra
        figures = torch.cat(
            [torch.stack([policy_loss.detach(), value_loss.detach(), entropy, z_loss.detach()]), others]
        )
        return loss, figures

    def _tensor(self, array: np.ndarray[Any, Any]) -> Tensor:
        return torch.from_numpy(array).to(self.device)

    def update(self, step: int, policy: float, value: float, rate: float = 1.0) -> float:
        """Take one step along the gradients that lie in `grad` of the parameters, less what would break the tie.

        Args:
            step: steps taken before.
            policy, value: losses of the batch they were made of.
            rate: the learning rate as a share of the config's, before warming up.
        Returns:
            The norm of the gradient before clipping.
        Raises:
            RunError: a loss or gradient is not finite; the weights are those before.
        """
        c = self._config
        for name, parameter in self._tied.items():
            assert parameter.grad is not None
            parameter.grad.copy_(self.tie.average(name, parameter.grad))
        norm = float(torch.nn.utils.clip_grad_norm_(self.parameters, c.max_grad_norm))
        if not (math.isfinite(policy + value) and math.isfinite(norm)):
            raise RunError(
                f"the loss is not finite at learner step {step + 1} (policy {policy}, value {value}, gradient {norm})"
            )
        for group in self._optimizer.param_groups:
            group["lr"] = rate * c.learning_rate * min(1.0, (step + 1) / max(1, c.warmup_steps))
        self._optimizer.step()
        self.tie_weights()
        return norm

    def tie_weights(self) -> None:
        """Make those weights equal that are to be."""
        with torch.no_grad():
            for name, parameter in self._tied.items():
                parameter.copy_(self.tie.first(name, parameter))

    def state(self) -> dict[str, Tensor]:
        """Weights and the optimiser's moments, by name, where they stand."""
        out = {}
        for name, parameter in zip(self.names, self.parameters, strict=True):
            out[f"weights.{name}"] = parameter.detach()
            for key, value in self._optimizer.state[parameter].items():
                out[f"optimizer.{key}.{name}"] = value
        return out

    def load_state(self, state: dict[str, Tensor]) -> None:
        """Go on from what `state` gave, on whatever device that was.

        Raises:
            ValueError: the weights do not have the network's symmetries.
        """
        for name in self._tied:
            if not self.tie.holds(name, state[f"weights.{name}"].to(self.device)):
                raise ValueError(f"the weights do not have this network's symmetries: {name}")
        with torch.no_grad():
            for name, parameter in zip(self.names, self.parameters, strict=True):
                parameter.copy_(state[f"weights.{name}"])
        for name, parameter in zip(self.names, self.parameters, strict=True):
            moments = {
                key: state[f"optimizer.{key}.{name}"].to(self.device, copy=True)
                for key in ("step", "exp_avg", "exp_avg_sq")
                if f"optimizer.{key}.{name}" in state
            }
            for key in moments.keys() - {"step"}:
                moments[key] = torch.empty_like(parameter).copy_(moments[key])  # in the parameter's memory format
            self._optimizer.state[parameter] = moments  # empty before the first step


def losses_of(outputs: Outputs, policy: Tensor, legal: Tensor, value: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Mean policy, value and z-losses of a batch, in nats; where a policy target is all zero the policy loss is 0.

    Args:
        outputs: policy by place [B, ...], policy_global [B, 2], value_logit [B], and more that does not matter here.
        policy: float32 [B, P + 2] targets over places and global actions; legal: bool [B, P + 2].
        value: float32 [B] in [0, 1].
    """
    policy_places, policy_global, value_logit = (part.float() for part in outputs[:3])
    logits = torch.cat([policy_places.flatten(1), policy_global], dim=1).masked_fill(~legal, -1e9)
    policy_loss = -(policy * F.log_softmax(logits, dim=1)).sum(dim=1).mean()
    return policy_loss, F.binary_cross_entropy_with_logits(value_logit, value), z_loss_of(logits)
