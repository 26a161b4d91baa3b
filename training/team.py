"""Several devices learn as one: the driver with one of them, a helper process with each other.

The driver draws a batch and hands each helper its share. All make the gradients of their shares at once,
DistributedDataParallel adds them up, and each takes the same step: the copies stay equal. A helper ends with its
driver, however that ends; one that dies ends the run.
"""

from __future__ import annotations

import atexit
import contextlib
import multiprocessing
import os
import signal
import socket
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from multiprocessing.connection import Connection, wait
from multiprocessing.context import SpawnContext

import numpy as np
import numpy.typing as npt
import torch
import torch.distributed as dist
from torch.distributed import TCPStore  # type: ignore[attr-defined]
from torch.nn.parallel import DistributedDataParallel

from lifeline.errors import RunError
from lifeline.rules import Rules
from training.config import LearnerConfig, NetworkConfig
from training.replica import Replica
from training.targets import Samples

# Seconds a helper may take to start: it imports torch and may have to compile kernels.
_START_SECONDS = 300
# Seconds the devices wait for each other in a step.
_STEP_SECONDS = 120
# Seconds for a helper to say why it dies, or to end when it is no longer needed.
_END_SECONDS = 5


@dataclass(frozen=True)
class _Share:
    """A helper's part of a step.

    Attributes:
        samples, symmetries: its part of the batch.
        policy_share: share of the whole batch's samples that teach a policy.
        step: steps taken before.
        rate: learning rate as a share of the config's.
    """

    samples: Samples
    symmetries: npt.NDArray[np.int64]
    policy_share: float
    step: int
    rate: float


@dataclass(frozen=True)
class _Place:
    """Where a device stands among those that learn together.

    Attributes:
        rank: its number; 0 is the driver's.
        size: how many there are.
        batch_size: samples in a batch of all.
    """

    rank: int
    size: int
    batch_size: int

    def join(self, replica: Replica, store: TCPStore) -> DistributedDataParallel:
        """Meet the others; all begin with the weights of rank 0."""
        on_gpu = replica.device.type == "cuda"
        if on_gpu:
            torch.cuda.set_device(replica.device)
        backend, timeout = "nccl" if on_gpu else "gloo", timedelta(seconds=_STEP_SECONDS)
        dist.init_process_group(backend, store=store, rank=self.rank, world_size=self.size, timeout=timeout)
        return DistributedDataParallel(replica.judge, device_ids=[replica.device] if on_gpu else None)

    def gradients(self, replica: Replica, joint: DistributedDataParallel, share: _Share) -> npt.NDArray[np.float64]:
        """Leave the whole batch's gradients in the parameters' `grad`; returns its figures, see `replica.FIGURES`."""
        for parameter in replica.parameters:
            parameter.grad = None
        loss, figures = replica.loss(share.samples, share.symmetries, share.policy_share, joint)
        weight = len(share.symmetries) / self.batch_size
        # DistributedDataParallel takes the mean over the devices. What is wanted is the sum of weighted shares.
        (self.size * weight * loss).backward()  # type: ignore[no-untyped-call]
        sums = weight * figures.double()
        dist.all_reduce(sums)
        return np.asarray(sums.cpu().numpy())


class _Helper:
    """A helper process as its driver sees it."""

    def __init__(
        self,
        context: SpawnContext,
        place: _Place,
        port: int,
        rules: Sequence[Rules],
        network: NetworkConfig,
        config: LearnerConfig,
        device: torch.device,
        dtype: torch.dtype,
    ) -> None:
        self._name = f"learner process {place.rank} on {device}"
        self.pipe, theirs = context.Pipe()
        arguments = (theirs, place, port, rules, network, config, device, dtype)
        self.process = context.Process(target=_help, args=arguments, daemon=True)
        self.process.start()
        theirs.close()  # so that the pipe ends when the helper does

    def wait_until_ready(self) -> None:
        """Wait until it has started.

        Raises:
            RunError: it has not.
        """
        if not self.pipe.poll(_START_SECONDS):
            raise RunError(f"{self._name} did not start within {_START_SECONDS} seconds")
        word = self._word()
        if word is not None:
            raise RunError(f"{self._name}: {word}")

    def trouble(self) -> str | None:
        """Why it can no longer help, None if it can."""
        if self.process.is_alive() and not self.pipe.poll():
            return None
        return f"{self._name}: {self._word()}"

    def _word(self) -> str | None:
        """What it said, or how it died."""
        with contextlib.suppress(EOFError, OSError):
            word: str | None = self.pipe.recv()
            return word
        self.process.join(_END_SECONDS)
        code = self.process.exitcode
        return f"killed by {signal.Signals(-code).name}" if code and code < 0 else f"ended with exit code {code}"


class Team:
    """A replica in this process and helpers with one each, which take every step together.

    One at a time in a process: torch keeps one group of processes.

    Args:
        replica: the driver's.
        rules, network, config: what it was made of.
        others: the helpers' devices, at least one, all of the same kind as the driver's; on a CPU each helper is one
            thread.

    Raises:
        RunError: the helpers cannot start.
    """

    def __init__(
        self,
        replica: Replica,
        rules: Sequence[Rules],
        network: NetworkConfig,
        config: LearnerConfig,
        others: Sequence[torch.device],
    ) -> None:
        if dist.is_initialized():
            raise RunError("another learner of several devices is at work in this process")
        self._replica = replica
        size = len(others) + 1
        self._shares = np.array_split(np.arange(config.batch_size), size)
        self._place = _Place(0, size, config.batch_size)
        self._helpers: list[_Helper] = []
        self._together = False
        # NCCL would end the process when a helper is gone; so it raises an error, which can be told in one line.
        os.environ.setdefault("TORCH_NCCL_BLOCKING_WAIT", "1")
        replica.warm_up()  # compiled once here, so that the helpers find the kernels in the cache
        listener = socket.create_server(("127.0.0.1", 0))
        port = listener.getsockname()[1]
        timeout = timedelta(seconds=_STEP_SECONDS)
        store = TCPStore(
            "127.0.0.1", port, size, True, timeout, wait_for_workers=False, master_listen_fd=listener.detach()
        )
        # Never forked: threads live here. Ended before multiprocessing would do it, by a signal that they ignore.
        context = multiprocessing.get_context("spawn")
        atexit.register(self.close)
        try:
            for rank, device in enumerate(others, 1):
                place = _Place(rank, size, config.batch_size)
                self._helpers.append(_Helper(context, place, port, rules, network, config, device, replica.dtype))
            for helper in self._helpers:
                helper.wait_until_ready()
            try:
                self._joint = self._place.join(replica, store)
            except (RuntimeError, ValueError) as error:
                raise self._trouble(error) from error
        except BaseException:
            self.close()
            raise
        self._together = True

    def gradients(
        self, samples: Samples, symmetries: npt.NDArray[np.int64], step: int, rate: float
    ) -> npt.NDArray[np.float64]:
        """Leave the batch's gradients in the parameters' `grad`; returns its figures, see `replica.FIGURES`.

        The helpers then take the step by themselves, as the driver must.

        Raises:
            RunError: a helper is gone.
        """
        policy_share = samples.policy_share
        shares = [_Share(samples.take(rows), symmetries[rows], policy_share, step, rate) for rows in self._shares]
        self._together = False
        try:
            for helper, share in zip(self._helpers, shares[1:], strict=True):
                helper.pipe.send(share)
            figures = self._place.gradients(self._replica, self._joint, shares[0])
        except (RuntimeError, OSError) as error:
            raise self._trouble(error) from error
        self._together = True
        return figures

    def load(self) -> None:
        """Bring the helpers' weights and moments to those of the driver.

        Raises:
            RunError: a helper is gone.
        """
        # As arrays: tensors would be put into shared memory.
        state = {name: tensor.cpu().numpy() for name, tensor in self._replica.state().items()}
        try:
            for helper in self._helpers:
                helper.pipe.send(state)
        except OSError as error:
            raise self._trouble(error) from error

    def _trouble(self, error: Exception) -> RunError:
        """Why the devices cannot go on together, in one line."""
        wait([h.process.sentinel for h in self._helpers], timeout=_END_SECONDS)
        # One that was killed comes first: the others only tell that they miss it.
        for helper in sorted(self._helpers, key=lambda h: h.process.exitcode or 0):
            trouble = helper.trouble()
            if trouble is not None:
                return RunError(trouble)
        return RunError(f"the learner's devices cannot take a step together: {_first_line(error)}")

    def close(self) -> None:
        """End the helpers: politely between two steps, at once within one."""
        atexit.unregister(self.close)
        for helper in self._helpers:
            if not self._together:
                helper.process.kill()
            helper.pipe.close()
        if self._helpers and dist.is_initialized():
            dist.destroy_process_group()
        for helper in self._helpers:
            helper.process.join(_END_SECONDS)
            helper.process.kill()
            helper.process.join()
        self._helpers = []


def _first_line(error: BaseException) -> str:
    lines = str(error).strip().splitlines()
    return lines[0][:200] if lines else type(error).__name__


def _help(
    pipe: Connection,
    place: _Place,
    port: int,
    rules: Sequence[Rules],
    network: NetworkConfig,
    config: LearnerConfig,
    device: torch.device,
    dtype: torch.dtype,
) -> None:
    """What a helper process does: shares of batches as they come, until the driver closes the pipe."""
    for number in (signal.SIGINT, signal.SIGTERM):  # a terminal sends them to all; they are the driver's to answer
        signal.signal(number, signal.SIG_IGN)
    threading.Thread(target=_end_with_driver, daemon=True).start()
    torch.set_num_threads(1)
    try:
        replica = Replica(rules, network, config, 0, device, dtype)
        replica.warm_up()
        pipe.send(None)
        joint = place.join(replica, TCPStore("127.0.0.1", port, place.size, False))
        while True:
            order = pipe.recv()
            if isinstance(order, _Share):
                policy, value = (float(x) for x in place.gradients(replica, joint, order)[:2])
                with contextlib.suppress(RunError):  # not finite: the driver finds the same, and decides
                    replica.update(order.step, policy, value, order.rate)
            else:
                replica.load_state({name: torch.from_numpy(array) for name, array in order.items()})
    except EOFError:
        dist.destroy_process_group()
    except Exception as error:
        with contextlib.suppress(OSError):
            pipe.send(_first_line(error))


def _end_with_driver() -> None:
    """End when the driver is gone, even in the midst of a step."""
    driver = multiprocessing.parent_process()
    assert driver is not None
    driver.join()
    os._exit(1)
