"""Finished games on disk: the memory of a run that outlives its process. From the newest the window is rebuilt."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import safetensors.numpy
from safetensors import SafetensorError

from lifeline.errors import CheckpointError
from lifeline.files import write_atomic
from training.trajectory import Trajectory, by_size, pack, unpack, without_drills

_NAME = re.compile(r"games-(\d{12})-(\d{8})-(\d{6})-([0-9a-f]{16})\.safetensors")


@dataclass(frozen=True)
class Shard:
    """One file of games. Its name says which samples of the run it holds, how many games that were played, and the
    sum of its bytes."""

    path: Path
    first_sample: int
    samples: int
    games: int
    digest: str

    @property
    def end(self) -> int:
        """Number of the first sample behind it."""
        return self.first_sample + self.samples

    def read(self) -> list[Trajectory]:
        """Its games.

        Raises:
            CheckpointError: it cannot be read or is damaged.
        """
        try:
            data = self.path.read_bytes()
        except OSError as error:
            raise CheckpointError(f"cannot read {self.path}: {error.strerror or error}") from None
        if hashlib.sha256(data).hexdigest()[:16] != self.digest:
            raise CheckpointError(f"{self.path} is damaged: its SHA-256 sum is not the one in its name")
        try:
            return unpack(safetensors.numpy.load(data))
        except KeyError as error:
            raise CheckpointError(f"{self.path} was written by another version of this program: no {error}") from None
        except (SafetensorError, ValueError) as error:
            raise CheckpointError(f"{self.path} holds no games: {error}") from None


class ShardStore:
    """The finished games of a run, in the order they came in.

    Args:
        folder: where the files go; made when the first one is written.
        max_bytes: of all files together; the oldest go first.
    """

    def __init__(self, folder: Path, max_bytes: float) -> None:
        self._folder, self._max_bytes = folder, max_bytes
        self._buffer: list[Trajectory] = []
        names = sorted(p.name for p in folder.iterdir()) if folder.is_dir() else []
        found = [(name, match) for name in names if (match := _NAME.fullmatch(name))]
        self.shards = [Shard(folder / n, int(m[1]), int(m[2]), int(m[3]), m[4]) for n, m in found]

    @property
    def total(self) -> int:
        """Samples of the run up to the last one on disk."""
        return self.shards[-1].end if self.shards else 0

    @property
    def bytes(self) -> int:
        """Bytes of all files."""
        return sum(s.path.stat().st_size for s in self.shards if s.path.exists())

    def append(self, games: Sequence[Trajectory]) -> None:
        """Take games in; they are on disk after the next `flush`."""
        self._buffer += games

    def flush(self, keep_samples: int) -> None:
        """Write what came in since the last flush, and remove what is no longer needed and over the limit.

        Args:
            keep_samples: the newest samples that stay whatever the limit.

        Raises:
            CheckpointError: the folder cannot be written.
        """
        for games in by_size(self._buffer):
            self._write(games)
        self._buffer = []
        self._prune(keep_samples)

    def _write(self, games: list[Trajectory]) -> None:
        """Write games of one size of board."""
        data = safetensors.numpy.save(pack(games))
        digest = hashlib.sha256(data).hexdigest()[:16]
        first, samples, played = self.total, sum(len(g) for g in games), len(without_drills(games))
        path = self._folder / f"games-{first:012d}-{samples:08d}-{played:06d}-{digest}.safetensors"
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            write_atomic(path, data)
        except OSError as error:
            raise CheckpointError(f"cannot write {path}: {error.strerror or error}") from None
        self.shards.append(Shard(path, first, samples, played, digest))

    def _prune(self, keep_samples: int) -> None:
        size = self.bytes
        while len(self.shards) > 1 and size > self._max_bytes and self.shards[0].end <= self.total - keep_samples:
            oldest = self.shards.pop(0)
            size -= oldest.path.stat().st_size
            oldest.path.unlink(missing_ok=True)

    def truncate(self, total: int) -> None:
        """Forget all samples from number `total` on: a run that goes on from before them makes them again."""
        while self.shards and self.shards[-1].first_sample >= total:
            self.shards.pop().path.unlink(missing_ok=True)
        if self.total != total:
            raise CheckpointError(f"{self._folder} ends at sample {self.total}; the checkpoint was made at {total}")

    def newest_first(self) -> Iterator[list[Trajectory]]:
        """The games of one shard after the other, the newest shard first; all games of a shard are of one size."""
        for shard in reversed(self.shards):
            yield shard.read()
