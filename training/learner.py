"""The learner: batches in, better weights out."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from lifeline.errors import CheckpointError
from lifeline.rules import Rules
from training.auxiliary import NAMES
from training.config import LearnerConfig, NetworkConfig
from training.replay import Replay
from training.replica import AUXILIARY, FIGURES, Replica
from training.targets import Samples
from training.team import Team


@dataclass(frozen=True)
class Losses:
    """Means over the steps of one call of `learn`. Entropies and losses in nats.

    Attributes:
        policy: cross-entropy of the policy against its target, of samples that have one.
        value: cross-entropy of the value against its target.
        target_entropy: entropy of the policy targets: the floor of `policy`.
        z: mean squared logarithm of what the policy is normalised by: great if it runs off.
        auxiliary: the auxiliary losses, by name; empty where there are none.
        grad_norm: norm of the gradient before clipping.
        steps: steps taken.
    """

    policy: float
    value: float
    target_entropy: float
    z: float
    auxiliary: dict[str, float]
    grad_norm: float
    steps: int


class _Threads:
    """Gradients of a batch on one device; on a CPU each thread makes those of a share of the batch."""

    def __init__(self, replica: Replica, batch_size: int, threads: int) -> None:
        count = min(threads, batch_size) if replica.device.type == "cpu" else 1
        self._replica, self._batch_size = replica, batch_size
        self._shares = np.array_split(np.arange(batch_size), count)
        # Said in each thread: else the first step of a new one adds up on several, in another order than all later
        # ones, and a run that goes on would not have the same bits.
        self._pool = ThreadPoolExecutor(count, initializer=torch.set_num_threads, initargs=(1,))

    def gradients(
        self, samples: Samples, symmetries: npt.NDArray[np.int64], step: int, rate: float
    ) -> npt.NDArray[np.float64]:
        """Leave the batch's gradients in the parameters' `grad`; returns its figures, see `replica.FIGURES`."""
        policy_share = samples.policy_share
        shares = [(samples.take(rows), symmetries[rows], policy_share) for rows in self._shares]
        gradients, sums = [], np.zeros(len(FIGURES))
        for part, figures in self._pool.map(lambda share: self._share(*share), shares):
            gradients.append(part)
            sums += figures
        # Added in a fixed order: the result does not hang on which share was done first. Copied into the parameter's
        # own memory layout: gradients come as views, and the fused optimiser reads memory, not strides.
        for i, parameter in enumerate(self._replica.parameters):
            total = sum((g[i] for g in gradients[1:]), start=gradients[0][i])
            parameter.grad = torch.empty_like(parameter).copy_(total)
        return sums

    def _share(
        self, samples: Samples, symmetries: npt.NDArray[np.int64], policy_share: float
    ) -> tuple[tuple[Tensor, ...], npt.NDArray[np.float64]]:
        """Gradients of one share of a batch, and its part in the batch's figures."""
        loss, figures = self._replica.loss(samples, symmetries, policy_share)
        weight = len(symmetries) / self._batch_size
        return torch.autograd.grad(weight * loss, self._replica.parameters), weight * figures.double().cpu().numpy()

    def load(self) -> None:
        """Nothing to do when weights are loaded: there is one copy of them."""

    def close(self) -> None:
        """End the threads."""
        self._pool.shutdown()


class Learner:
    """Trains a network from a replay buffer, and keeps the running average of its weights, which is what plays.

    Args:
        rules: what is played, one for each size of board.
        network: size of the network.
        config: how it is trained.
        rng: draws samples and symmetries.
        seed: of the first weights.
        device: where it runs.
        threads: on a CPU, shares of a batch whose gradients are made at once, each by one thread. They meet once a
            step; threads inside torch meet at every layer, each time waiting for a core if the machine is busy, which
            has been seen to cost a factor of forty (docs/log.md).
        others: more devices of the same kind, which learn together with the first, a process each; on a CPU each of
            them, the first included, is then one thread.
        dtype: what it multiplies in, see `Replica`.

    Raises:
        RunError: the processes of the other devices cannot start.
    """

    def __init__(
        self,
        rules: Sequence[Rules],
        network: NetworkConfig,
        config: LearnerConfig,
        rng: np.random.Generator,
        seed: int,
        device: torch.device,
        threads: int = 1,
        others: Sequence[torch.device] = (),
        dtype: torch.dtype = torch.float32,
    ) -> None:
        self._config, self._rng = config, rng
        self._replica = Replica(rules, network, config, seed, device, dtype)
        self._average = {n: p.detach().clone() for n, p in self._trained() if not n.startswith(AUXILIARY)}
        self._team: Team | _Threads
        if others:
            self._team = Team(self._replica, rules, network, config, others)
        else:
            self._team = _Threads(self._replica, config.batch_size, threads)
        self.steps = 0

    def _trained(self) -> Iterable[tuple[str, Tensor]]:
        """The parameters by name: the network's, which are averaged and play, then those of the auxiliary heads."""
        return zip(self._replica.names, self._replica.parameters, strict=True)

    def learn(self, replay: Replay, steps: int, rate: float = 1.0) -> Losses:
        """Take so many steps, at least one.

        Args:
            rate: the learning rate as a share of the config's.

        Raises:
            RunError: a loss or gradient is not finite, the weights being those before that step; or another device's
                process is gone.
        """
        sums = np.zeros(len(FIGURES) + 1)
        for _ in range(steps):
            sums += self._step(replay, rate)
        *means, norm = (float(s) for s in sums / steps)
        figures = dict(zip(FIGURES, means, strict=True))
        used = {name: figures[name] for name in NAMES if getattr(self._config, f"{name}_weight") > 0}
        return Losses(figures["policy"], figures["value"], figures["target_entropy"], figures["z"], used, norm, steps)

    def _step(self, replay: Replay, rate: float) -> npt.NDArray[np.float64]:
        c = self._config
        samples = replay.draw(c.batch_size, self._rng, c.horizon if c.auxiliary else 0)
        symmetries = self._rng.integers(0, 12, size=c.batch_size)
        figures = self._team.gradients(samples, symmetries, self.steps, rate)
        norm = self._replica.update(self.steps, float(figures[0]), float(figures[1]), rate)
        self.steps += 1
        # While young, the average forgets fast, so that it is not held back by the first random weights.
        decay = min(c.average_decay, self.steps / (self.steps + 10))
        with torch.no_grad():
            newest = [p for name, p in self._trained() if name in self._average]
            torch._foreach_lerp_(list(self._average.values()), newest, 1 - decay)
        return np.append(figures, norm)

    def average_weights(self) -> dict[str, Tensor]:
        """The averaged weights of the network by name: what plays."""
        return dict(self._average)

    def start_from(self, weights: Mapping[str, Tensor]) -> None:
        """Begin with these weights in place of random ones; auxiliary heads begin anew.

        Raises:
            CheckpointError: they are not those of such a network.
        """
        named = [(name, parameter) for name, parameter in self._trained() if name in self._average]
        for name, parameter in named:
            if name not in weights or weights[name].shape != parameter.shape:
                raise CheckpointError(f"the weights do not fit this network: {name}")
            if not self._replica.tie.holds(name, weights[name].to(parameter.device)):
                raise CheckpointError(f"the weights do not have this network's symmetries: {name}")
        with torch.no_grad():
            for name, parameter in named:
                parameter.copy_(weights[name])
            self._replica.tie_weights()
            for name, parameter in named:
                self._average[name].copy_(parameter)
        self._team.load()

    def state(self) -> dict[str, Tensor]:
        """All that is needed to go on, by name, on the CPU: weights, their average, the optimiser's moments."""
        out = self._replica.state() | {f"average.{name}": t for name, t in self._average.items()}
        return {name: tensor.cpu().contiguous() for name, tensor in out.items()}

    def load_state(self, state: dict[str, Tensor], steps: int) -> None:
        """Go on from what `state` gave after so many steps."""
        self._replica.load_state(state)
        with torch.no_grad():
            for name, average in self._average.items():
                average.copy_(state[f"average.{name}"])
        self._team.load()
        self.steps = steps

    def close(self) -> None:
        """End its threads and processes. The weights stay."""
        self._team.close()


def rate_at(config: LearnerConfig, done: float) -> float:
    """The learning rate as a share of the config's when so large a share of a session, in [0, 1], is done."""
    share = config.anneal_share
    into = (done - 1 + share) / share if share else 0.0
    return 1 - min(1.0, max(0.0, into)) * (1 - config.final_rate_share)
