"""A network under training with its optimiser: what each device of a learner holds."""

from __future__ import annotations

import math
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
from training.cells import forward_cells, neighbour_table
from training.config import LearnerConfig, NetworkConfig
from training.network import Network
from training.samples import batch_of
from training.targets import Samples

Outputs = tuple[Tensor, Tensor, Tensor]


class Judge(nn.Module):
    """The network over places. GPUs convolve over the grid, fastest with channels last; CPUs work over the cells."""

    def __init__(self, network: Network, board: Board, on_grid: bool) -> None:
        super().__init__()
        self.network, self._grid_shape = network, board.grid_shape
        self._neighbours = None if on_grid else neighbour_table(board)

    def forward(self, planes: Tensor) -> Outputs:
        """Planes float32 [B, C, P] to policy by place [B, ...], policy_global [B, 2] and value_logit [B]."""
        if self._neighbours is not None:
            return forward_cells(self.network, planes.permute(1, 2, 0).contiguous(), self._neighbours)
        planes = planes.view(*planes.shape[:2], *self._grid_shape)
        outputs: Outputs = self.network(planes.contiguous(memory_format=torch.channels_last))
        return outputs


class Replica:
    """One copy of the network being trained. Copies given the same gradients stay equal.

    Args:
        rules: what is played.
        network: size of the network.
        config: how it is trained.
        seed: of the first weights.
        device: where it stands.

    Attributes:
        network, parameters, names: what is trained; names are those of the parameters, in order.
        judge: the network over places.
    """

    def __init__(
        self, rules: Rules, network: NetworkConfig, config: LearnerConfig, seed: int, device: torch.device
    ) -> None:
        self._rules, self._config, self.device = rules, config, device
        self._on_grid = device.type != "cpu"
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            built = Network(network)
        self.network = built.to(device)
        if self._on_grid:
            self.network.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
        self.judge = Judge(self.network, rules.board, self._on_grid)
        self.names = [name for name, _ in self.network.named_parameters()]
        self.parameters: list[Tensor] = list(self.network.parameters())
        decayed = [p for p in self.parameters if p.ndim > 1]
        plain = [p for p in self.parameters if p.ndim <= 1]
        self._optimizer = torch.optim.AdamW(
            [{"params": decayed, "weight_decay": config.weight_decay}, {"params": plain, "weight_decay": 0.0}],
            lr=config.learning_rate,
            fused=True,
        )

    def warm_up(self) -> None:
        """Have the kernels compiled that a step needs."""
        start = BatchEnv(self._rules, 1).gather()
        policy, value = np.zeros((1, self._rules.num_actions), np.float16), np.zeros(1, np.float32)
        zero = np.zeros(1, np.int64)
        batch_of(Samples(start, policy, value, zero), self._rules, zero, on_grid=self._on_grid)

    def loss(
        self,
        samples: Samples,
        symmetries: npt.NDArray[np.int64],
        policy_share: float = 1.0,
        judge: nn.Module | None = None,
    ) -> tuple[Tensor, list[Tensor]]:
        """The mean loss of some samples, to be differentiated; and their mean policy loss, value loss and entropy.

        Policy loss and entropy are means over the samples that teach a policy, if `policy_share` is that of these
        samples. If they are a share of a batch and it is that of the batch, the weighted sum over all shares is the
        mean over the batch, however unevenly such samples lie in it.

        Args:
            samples: B of them, at least one.
            symmetries: int64 [B], which of the 12 each is seen through.
            policy_share: share of samples that teach a policy.
            judge: called in place of `self.judge`.
        """
        batch = batch_of(samples, self._rules, symmetries, on_grid=self._on_grid)
        target, legal = self._tensor(batch.policy), self._tensor(batch.legal)
        outputs = (judge or self.judge)(self._tensor(batch.planes))
        policy_loss, value_loss = losses_of(outputs, target, legal, self._tensor(batch.value))
        entropy = -(target * target.clamp_min(1e-30).log()).sum(dim=1).mean()
        if policy_share > 0:  # else there is no policy loss in the batch, and nothing to scale
            policy_loss, entropy = policy_loss / policy_share, entropy / policy_share
        loss = policy_loss + self._config.value_weight * value_loss
        return loss, [policy_loss.detach(), value_loss.detach(), entropy]

    def _tensor(self, array: np.ndarray[Any, Any]) -> Tensor:
        return torch.from_numpy(array).to(self.device)

    def update(self, step: int, policy: float, value: float) -> float:
        """Take one step along the gradients that lie in `grad` of the parameters.

        Args:
            step: steps taken before.
            policy, value: losses of the batch they were made of.
        Returns:
            The norm of the gradient before clipping.
        Raises:
            RunError: a loss or gradient is not finite; the weights are those before.
        """
        c = self._config
        norm = float(torch.nn.utils.clip_grad_norm_(self.parameters, c.max_grad_norm))
        if not (math.isfinite(policy + value) and math.isfinite(norm)):
            raise RunError(
                f"the loss is not finite at learner step {step + 1} (policy {policy}, value {value}, gradient {norm})"
            )
        for group in self._optimizer.param_groups:
            group["lr"] = c.learning_rate * min(1.0, (step + 1) / max(1, c.warmup_steps))
        self._optimizer.step()
        return norm

    def state(self) -> dict[str, Tensor]:
        """Weights and the optimiser's moments, by name, where they stand."""
        out = {}
        for name, parameter in zip(self.names, self.parameters, strict=True):
            out[f"weights.{name}"] = parameter.detach()
            for key, value in self._optimizer.state[parameter].items():
                out[f"optimizer.{key}.{name}"] = value
        return out

    def load_state(self, state: dict[str, Tensor]) -> None:
        """Go on from what `state` gave, on whatever device that was."""
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


def losses_of(outputs: Outputs, policy: Tensor, legal: Tensor, value: Tensor) -> tuple[Tensor, Tensor]:
    """Mean policy and value losses of a batch, in nats; where a policy target is all zero the policy loss is 0.

    Args:
        outputs: of the network: policy by place [B, ...], policy_global [B, 2], value_logit [B].
        policy: float32 [B, P + 2] targets over places and global actions; legal: bool [B, P + 2].
        value: float32 [B] in [0, 1].
    """
    policy_places, policy_global, value_logit = outputs
    logits = torch.cat([policy_places.flatten(1), policy_global], dim=1).masked_fill(~legal, -1e9)
    policy_loss = -(policy * F.log_softmax(logits, dim=1)).sum(dim=1).mean()
    return policy_loss, F.binary_cross_entropy_with_logits(value_logit, value)
