"""The learner: batches in, better weights out."""

from __future__ import annotations

import math
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
import torch.nn.functional as F
from torch import Tensor

from lifeline.errors import CheckpointError, RunError
from lifeline.rules import Rules
from training.cells import forward_cells, neighbour_table
from training.config import LearnerConfig, NetworkConfig
from training.network import Network
from training.replay import ReplayBuffer
from training.samples import batch_of
from training.targets import Samples


@dataclass(frozen=True)
class Losses:
    """Means over the steps of one call of `learn`. Entropies and losses in nats.

    Attributes:
        policy: cross-entropy of the policy against its target.
        value: cross-entropy of the value against its target.
        target_entropy: entropy of the policy targets: the floor of `policy`.
        grad_norm: norm of the gradient before clipping.
        steps: steps taken.
    """

    policy: float
    value: float
    target_entropy: float
    grad_norm: float
    steps: int


class Learner:
    """Trains a network from a replay buffer, and keeps the running average of its weights, which is what plays.

    Args:
        rules: what is played.
        network: size of the network.
        config: how it is trained.
        rng: draws samples and symmetries.
        seed: of the first weights.
        device: where it runs.
        threads: on a CPU, shares of a batch whose gradients are made at once, each by one thread. They meet once a
            step; threads inside torch meet at every layer, each time waiting for a core if the machine is busy, which
            has been seen to cost a factor of forty (docs/log.md).
    """

    def __init__(
        self,
        rules: Rules,
        network: NetworkConfig,
        config: LearnerConfig,
        rng: np.random.Generator,
        seed: int,
        device: torch.device,
        threads: int = 1,
    ) -> None:
        self._rules, self._config, self._rng, self.device = rules, config, rng, device
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            built = Network(network)
        # GPUs convolve over the grid, fastest with channels last; CPUs work over the cells.
        self._neighbours = neighbour_table(rules.board) if device.type == "cpu" else None
        self.network = built.to(device=device, memory_format=torch.channels_last)  # type: ignore[call-overload]
        self._names = [name for name, _ in self.network.named_parameters()]
        self._parameters = list(self.network.parameters())
        self._average = [p.detach().clone() for p in self._parameters]
        decayed = [p for p in self._parameters if p.ndim > 1]
        plain = [p for p in self._parameters if p.ndim <= 1]
        self._optimizer = torch.optim.AdamW(
            [{"params": decayed, "weight_decay": config.weight_decay}, {"params": plain, "weight_decay": 0.0}],
            lr=config.learning_rate,
            fused=True,
        )
        count = min(threads, config.batch_size) if device.type == "cpu" else 1
        self._shares = np.array_split(np.arange(config.batch_size), count)
        self._pool = ThreadPoolExecutor(count)
        self.steps = 0

    def learn(self, replay: ReplayBuffer, steps: int) -> Losses:
        """Take so many steps, at least one.

        Raises:
            RunError: a loss or gradient is not finite; the weights are those before that step.
        """
        sums = np.zeros(4)
        for _ in range(steps):
            sums += self._step(replay)
        policy, value, entropy, norm = (float(s) for s in sums / steps)
        return Losses(policy, value, entropy, norm, steps)

    def _step(self, replay: ReplayBuffer) -> npt.NDArray[np.float64]:
        c = self._config
        samples = replay.draw(c.batch_size, self._rng)
        symmetries = self._rng.integers(0, 12, size=c.batch_size)
        shares = [(samples.take(rows), symmetries[rows]) for rows in self._shares]
        gradients, sums = [], np.zeros(3)
        for part, figures in self._pool.map(lambda share: self._gradients(*share), shares):
            gradients.append(part)
            sums += figures
        # Added in a fixed order: the result does not hang on which share was done first. Copied into the parameter's
        # own memory layout: gradients come as views, and the fused optimiser reads memory, not strides.
        for i, parameter in enumerate(self._parameters):
            total = sum((g[i] for g in gradients[1:]), start=gradients[0][i])
            parameter.grad = torch.empty_like(parameter).copy_(total)
        norm = float(torch.nn.utils.clip_grad_norm_(self._parameters, c.max_grad_norm))
        policy, value, entropy = (float(s) for s in sums)
        if not (math.isfinite(policy + value) and math.isfinite(norm)):
            raise RunError(
                f"the loss is not finite at learner step {self.steps + 1} "
                f"(policy {policy}, value {value}, gradient {norm})"
            )
        for group in self._optimizer.param_groups:
            group["lr"] = c.learning_rate * min(1.0, (self.steps + 1) / max(1, c.warmup_steps))
        self._optimizer.step()
        self.steps += 1
        # While young, the average forgets fast, so that it is not held back by the first random weights.
        decay = min(c.average_decay, self.steps / (self.steps + 10))
        with torch.no_grad():
            torch._foreach_lerp_(self._average, self._parameters, 1 - decay)
        return np.array([policy, value, entropy, norm])

    def _gradients(self, samples: Samples, symmetries: npt.NDArray[np.int64]) -> tuple[tuple[Tensor, ...], list[float]]:
        """Gradients of one share of a batch, and its part in the batch's policy loss, value loss and entropy."""
        batch = batch_of(samples, self._rules, symmetries, on_grid=self._neighbours is None)
        planes = self._tensor(batch.planes)
        target, legal = self._tensor(batch.policy), self._tensor(batch.legal)
        if self._neighbours is None:
            planes = planes.view(*planes.shape[:2], *self._rules.board.grid_shape)
            outputs = self.network(planes.contiguous(memory_format=torch.channels_last))
        else:
            outputs = forward_cells(self.network, planes.permute(1, 2, 0).contiguous(), self._neighbours)
        policy_loss, value_loss = losses_of(outputs, target, legal, self._tensor(batch.value))
        weight = len(symmetries) / self._config.batch_size
        loss = weight * (policy_loss + self._config.value_weight * value_loss)
        gradients = torch.autograd.grad(loss, self._parameters)
        entropy = -(target * target.clamp_min(1e-30).log()).sum(dim=1).mean()
        return gradients, [weight * float(x.detach()) for x in (policy_loss, value_loss, entropy)]

    def _tensor(self, array: np.ndarray[Any, Any]) -> Tensor:
        return torch.from_numpy(array).to(self.device)

    def average_weights(self) -> dict[str, Tensor]:
        """The averaged weights by name: what plays."""
        return dict(zip(self._names, self._average, strict=True))

    def start_from(self, weights: Mapping[str, Tensor]) -> None:
        """Begin with these weights in place of random ones.

        Raises:
            CheckpointError: they are not those of such a network.
        """
        with torch.no_grad():
            for name, parameter, average in zip(self._names, self._parameters, self._average, strict=True):
                if name not in weights or weights[name].shape != parameter.shape:
                    raise CheckpointError(f"the weights do not fit this network: {name}")
                parameter.copy_(weights[name])
                average.copy_(weights[name])

    def state(self) -> dict[str, Tensor]:
        """All that is needed to go on, by name, on the CPU: weights, their average, the optimiser's moments."""
        out = {}
        for name, parameter, average in zip(self._names, self._parameters, self._average, strict=True):
            out[f"weights.{name}"] = parameter.detach()
            out[f"average.{name}"] = average
            for key, value in self._optimizer.state[parameter].items():
                out[f"optimizer.{key}.{name}"] = value
        return {name: tensor.cpu().contiguous() for name, tensor in out.items()}

    def load_state(self, state: dict[str, Tensor], steps: int) -> None:
        """Go on from what `state` gave after so many steps."""
        with torch.no_grad():
            for name, parameter, average in zip(self._names, self._parameters, self._average, strict=True):
                parameter.copy_(state[f"weights.{name}"])
                average.copy_(state[f"average.{name}"])
        for name, parameter in zip(self._names, self._parameters, strict=True):
            moments = {
                key: state[f"optimizer.{key}.{name}"].clone()
                for key in ("step", "exp_avg", "exp_avg_sq")
                if f"optimizer.{key}.{name}" in state
            }
            for key in moments.keys() - {"step"}:
                moments[key] = torch.empty_like(parameter).copy_(moments[key])  # in the parameter's memory format
            if moments:
                self._optimizer.state[parameter] = moments
        self.steps = steps


def losses_of(
    outputs: tuple[Tensor, Tensor, Tensor], policy: Tensor, legal: Tensor, value: Tensor
) -> tuple[Tensor, Tensor]:
    """Mean policy and value losses of a batch, in nats.

    Args:
        outputs: of the network: policy by place [B, ...], policy_global [B, 2], value_logit [B].
        policy: float32 [B, P + 2] targets over places and global actions; legal: bool [B, P + 2].
        value: float32 [B] in [0, 1].
    """
    policy_places, policy_global, value_logit = outputs
    logits = torch.cat([policy_places.flatten(1), policy_global], dim=1).masked_fill(~legal, -1e9)
    policy_loss = -(policy * F.log_softmax(logits, dim=1)).sum(dim=1).mean()
    return policy_loss, F.binary_cross_entropy_with_logits(value_logit, value)
