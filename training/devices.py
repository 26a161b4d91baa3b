"""Which devices learn, in which numbers, and which are left to the workers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from lifeline.errors import RunError
from training.config import Config


@dataclass(frozen=True)
class Placement:
    """The devices of a run.

    Attributes:
        learners: those that learn together. The first is the driver's own, on which it also evaluates when there are no
            workers.
        worker_gpus: GPUs of this machine, from the first one up, that are the workers' alone; None = all there are,
            shared with the learner.
    """

    learners: tuple[torch.device, ...]
    worker_gpus: int | None = None


def count_gpus() -> int:
    """CUDA devices of this machine that torch can use."""
    return torch.cuda.device_count() if torch.cuda.is_available() else 0


def place(config: Config, gpus: int) -> Placement:
    """Choose the devices of a run.

    Args:
        config: of the run.
        gpus: of this machine.

    Raises:
        RunError: the config asks for devices that are not there.
    """
    asked = config.learner_devices
    if config.device == "cpu" or (config.device == "auto" and not gpus):
        return Placement((torch.device("cpu"),) * (1 if asked == "auto" else asked))
    if not gpus:
        raise RunError("device: cuda is asked for, but torch finds no CUDA device here")
    beside = config.workers != 0 and config.worker_gpus > 0
    usual = 1 if beside else min(gpus, config.learner.batch_size)
    wanted = usual if asked == "auto" else asked
    if wanted > gpus:
        raise RunError(f"learner_devices: {wanted} are asked for, but torch finds {gpus} CUDA devices here")
    # The last ones: Ray, told of fewer GPUs than there are, gives out the first.
    learners = tuple(torch.device("cuda", index) for index in range(gpus - wanted, gpus))
    return Placement(learners, gpus - wanted if beside and wanted < gpus else None)


def number_type(config: Config, device: torch.device) -> torch.dtype:
    """What a device multiplies in: bfloat16 or float32, as the config says or the device does it faster.

    On a processor that has no instruction for it, bfloat16 is slower than float32. Older versions of torch do not say
    which have one.
    """
    if config.precision != "auto":
        return torch.bfloat16 if config.precision == "bfloat16" else torch.float32
    if device.type == "cuda":
        return torch.bfloat16
    can: dict[str, bool] = getattr(torch.cpu, "get_capabilities", dict)()
    fast = can.get("avx512_bf16") or can.get("amx_bf16")
    return torch.bfloat16 if fast else torch.float32


def describe_devices(devices: Sequence[torch.device], dtype: torch.dtype) -> str:
    """Devices in words with what they multiply in, such as "cpu, float32" or "4 x NVIDIA H200, bfloat16"."""
    first = devices[0]
    name = torch.cuda.get_device_name(first) if first.type == "cuda" else first.type
    return f"{name if len(devices) == 1 else f'{len(devices)} x {name}'}, {str(dtype).removeprefix('torch.')}"
