"""Where games come from: this process, or (workers.py) a cluster. The loop does not know which."""

from __future__ import annotations

import resource
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor

from training.config import Config
from training.evaluators import evaluator_of
from training.mixing import MixedPlay
from training.trajectory import Trajectory


@dataclass(frozen=True)
class SourceFigures:
    """What a source says of itself.

    Attributes:
        plies: played so far, of finished games or not. evaluations: positions judged for them.
        games_dropped: at the ply cap so far. duplicates: games that came twice and were left out.
        workers_wanted, workers_alive, restarts: none wanted means all happens in this process.
        queue: reports under way.
        worker_bytes: memory of all workers.
    """

    plies: int
    evaluations: int
    games_dropped: int
    duplicates: int = 0
    workers_wanted: int = 0
    workers_alive: int = 0
    restarts: int = 0
    queue: int = 0
    worker_bytes: int = 0


def resident_bytes() -> int:
    """Resident memory of this process now, or its peak where the system does not tell."""
    try:
        return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()
    except (OSError, IndexError, ValueError):
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


class GameSource(Protocol):
    """Makes games with the newest weights."""

    def figures(self) -> SourceFigures:
        """How it is doing."""
        ...

    def publish(self, weights: Mapping[str, Tensor], version: int) -> None:
        """Play from now on with these weights: tensors of a CPU, by name."""
        ...

    def collect(self) -> list[Trajectory]:
        """Games finished since the last call; may wait a moment for the first."""
        ...

    def close(self) -> None:
        """Stop making games."""
        ...


class LocalSource:
    """Games made in this process, in turn with learning: bit-equal from run to run; a `GameSource`.

    Args:
        config: of the run.
        rng: draws the keys of the games.
        device: where positions are judged.
        threads: CPU threads of the evaluator.
    """

    def __init__(self, config: Config, rng: np.random.Generator, device: torch.device, threads: int) -> None:
        self._config, self._rng, self._device, self._threads = config, rng, device, threads
        self._selfplay: MixedPlay | None = None
        self._plies = 0

    def figures(self) -> SourceFigures:
        """See `GameSource.figures`."""
        if self._selfplay is None:
            return SourceFigures(0, 0, 0)
        return SourceFigures(self._plies, self._selfplay.evaluations, self._selfplay.games_dropped)

    def publish(self, weights: Mapping[str, Tensor], version: int) -> None:
        """See `GameSource.publish`."""
        evaluator = evaluator_of(self._config, weights, self._device, self._threads)
        if self._selfplay is None:
            self._selfplay = MixedPlay(self._config, evaluator, self._rng, self._device.type == "cuda")
        self._selfplay.use(evaluator, version)

    def collect(self) -> list[Trajectory]:
        """See `GameSource.collect`."""
        c = self._config.selfplay
        self._plies += c.plies_per_iteration * c.batch_size
        return self._games.play(c.plies_per_iteration)

    def close(self) -> None:
        """See `GameSource.close`."""

    @property
    def _games(self) -> MixedPlay:
        assert self._selfplay is not None, "weights are published before games are collected"
        return self._selfplay

    def state(self) -> dict[str, Any]:
        """The unfinished games; see `MixedPlay.state`."""
        return self._games.state()

    def load_state(self, state: dict[str, Any]) -> None:
        """Go on with unfinished games, once weights have been published."""
        self._games.load_state(state)
