"""Checkpoints: folders that are there whole or not at all, versioned, and verified before anything in them is used.

A checkpoint holds safetensors (data only) and JSON. `manifest.json` is its table of contents, with the SHA-256 sum of
every other file; it also says which of them are needed to go on training and may be shed once only the weights count.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import safetensors.numpy
import safetensors.torch
from torch import Tensor

from lifeline.errors import CheckpointError
from lifeline.files import sync_folder, write_atomic
from lifeline.observation import OBSERVATION_VERSION
from lifeline.version import __version__

CHECKPOINT_FORMAT = 1
MANIFEST = "manifest.json"
WEIGHTS = "weights.safetensors"
LEARNER = "learner.safetensors"
_NAME = re.compile(r"iteration-(\d{8})")

Arrays = dict[str, npt.NDArray[Any]]


@dataclass(frozen=True)
class Checkpoint:
    """A checkpoint on disk, verified.

    Attributes:
        path: its folder.
        manifest: its table of contents.
    """

    path: Path
    manifest: dict[str, Any]

    @property
    def iteration(self) -> int:
        """Iterations of training behind it."""
        return int(self.manifest["iteration"])

    @property
    def counters(self) -> dict[str, Any]:
        """What the loop counts, and the states of all generators."""
        return dict(self.manifest["counters"])

    @property
    def is_whole(self) -> bool:
        """Whether training can go on from it; else it has only the weights."""
        return LEARNER in self.manifest["files"]

    def weights(self) -> dict[str, Tensor]:
        """The averaged weights, by name."""
        return self._load(WEIGHTS)

    def learner_state(self) -> dict[str, Tensor]:
        """What `Learner.load_state` takes."""
        return self._load(LEARNER)

    def arrays(self, name: str) -> Arrays:
        """The arrays saved under a name."""
        file = f"{name}.safetensors"
        with self._named(file):
            return dict(safetensors.numpy.load(self._read(file)))

    def _load(self, file: str) -> dict[str, Tensor]:
        with self._named(file):
            return dict(safetensors.torch.load(self._read(file)))

    @contextlib.contextmanager
    def _named(self, file: str) -> Iterator[None]:
        """What safetensors complains of is said of the file."""
        try:
            yield
        except safetensors.SafetensorError as error:
            raise CheckpointError(f"{self.path / file} is damaged: {error}") from None

    def _read(self, file: str) -> bytes:
        if file not in self.manifest["files"]:
            raise CheckpointError(f"{self.path}: no {file}; this checkpoint was kept for its weights only")
        return _verified(self.path / file, self.manifest["files"][file])


def _verified(path: Path, digest: str) -> bytes:
    try:
        data = path.read_bytes()
    except OSError as error:
        raise CheckpointError(f"cannot read {path}: {error.strerror or error}") from None
    if hashlib.sha256(data).hexdigest() != digest:
        raise CheckpointError(f"{path} is damaged: its SHA-256 sum is not the one in {MANIFEST}")
    return data


def save(
    folder: Path,
    iteration: int,
    network: dict[str, Any],
    weights: dict[str, Tensor],
    learner: dict[str, Tensor],
    arrays: dict[str, Arrays],
    counters: dict[str, Any],
) -> Checkpoint:
    """Write a checkpoint into the folder of all checkpoints; a kill at any moment leaves it whole or absent.

    Args:
        folder: where checkpoints go.
        iteration: iterations behind it.
        network: configuration of the network.
        weights: the averaged weights.
        learner: `Learner.state()`.
        arrays: more arrays, by name of the part they belong to.
        counters: JSON values.

    Raises:
        CheckpointError: it cannot be written; what was there before still is.
    """
    target = folder / f"iteration-{iteration:08d}"
    contents = {
        WEIGHTS: safetensors.torch.save(weights),
        LEARNER: safetensors.torch.save(learner),
        **{f"{name}.safetensors": _dump(values) for name, values in arrays.items()},
    }
    manifest = {
        "format": CHECKPOINT_FORMAT,
        "program": __version__,
        "observation_version": OBSERVATION_VERSION,
        "iteration": iteration,
        "network": network,
        "counters": counters,
        "files": {name: hashlib.sha256(data).hexdigest() for name, data in contents.items()},
    }
    temporary = folder / f".writing-{os.getpid()}-{target.name}"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        shutil.rmtree(temporary, ignore_errors=True)
        temporary.mkdir()
        for name, data in contents.items():
            write_atomic(temporary / name, data)
        write_atomic(temporary / MANIFEST, json.dumps(manifest, indent=1).encode())
        _remove(target)  # there only if written by a run that was killed before it could count it
        temporary.rename(target)
        sync_folder(folder)
    except OSError as error:
        shutil.rmtree(temporary, ignore_errors=True)
        raise CheckpointError(f"cannot write {target}: {error.strerror or error}") from None
    return Checkpoint(target, manifest)


def _dump(values: Arrays) -> bytes:
    return bytes(safetensors.numpy.save({k: np.ascontiguousarray(v) for k, v in values.items()}))


def load(path: Path) -> Checkpoint:
    """Open a checkpoint and verify every file of it.

    Raises:
        CheckpointError: missing, damaged, or of another version.
    """
    try:
        text = (path / MANIFEST).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "not a text"
        raise CheckpointError(f"{path} is no checkpoint: cannot read {MANIFEST}: {reason}") from None
    try:
        manifest = json.loads(text)
        version, files = manifest["format"], dict(manifest["files"])
        known = isinstance(manifest["iteration"], int) and isinstance(manifest["counters"], dict)
    except (ValueError, KeyError, TypeError, RecursionError):
        raise CheckpointError(f"{path / MANIFEST} is damaged") from None
    if version != CHECKPOINT_FORMAT:
        raise CheckpointError(f"{path} has format {version!r}; this version reads {CHECKPOINT_FORMAT}")
    if manifest.get("observation_version") != OBSERVATION_VERSION:
        raise CheckpointError(
            f"{path} has observation version {manifest.get('observation_version')!r}; "
            f"this version reads {OBSERVATION_VERSION}"
        )
    if not known or WEIGHTS not in files:
        raise CheckpointError(f"{path / MANIFEST} is damaged")
    for name, digest in files.items():
        if Path(name).name != name:
            raise CheckpointError(f"{path / MANIFEST} is damaged: {name[:40]!r} is no file name")
        _verified(path / name, digest)
    return Checkpoint(path, manifest)


def _remove(path: Path) -> None:
    """Remove a checkpoint; under its name it is there whole to the last."""
    if path.exists():
        shutil.rmtree(path.rename(path.with_name(f".removing-{path.name}")), ignore_errors=True)


def list_all(folder: Path) -> list[Path]:
    """All finished checkpoints in a folder, oldest first."""
    if not folder.is_dir():
        return []
    return sorted(p for p in folder.iterdir() if _NAME.fullmatch(p.name))


def newest_whole(folder: Path) -> Checkpoint:
    """The newest checkpoint that training can go on from.

    Raises:
        CheckpointError: there is none, or the newest one is damaged.
    """
    for path in reversed(list_all(folder)):
        checkpoint = load(path)
        if checkpoint.is_whole:
            return checkpoint
    raise CheckpointError(f"{folder} holds no checkpoint to go on from")


def find(path: Path) -> Checkpoint:
    """The checkpoint of a path: its own folder, or the newest of a run's directory that has weights.

    Raises:
        CheckpointError: there is none, or it is damaged.
    """
    if (path / MANIFEST).exists():
        return load(path)
    paths = list_all(path / "checkpoints")
    if not paths:
        raise CheckpointError(f"{path} is no checkpoint and holds none")
    return load(paths[-1])


def clean_up(folder: Path, keep_last: int, keep_every: int) -> None:
    """Keep the newest checkpoints whole, of every so many iterations the weights, and remove the rest."""
    for leftover in [*folder.glob(".writing-*"), *folder.glob(".removing-*")]:
        shutil.rmtree(leftover, ignore_errors=True)
    for path in list_all(folder)[:-keep_last]:
        if int(_NAME.fullmatch(path.name)[1]) % keep_every:  # type: ignore[index]
            _remove(path)
            continue
        with contextlib.suppress(OSError, ValueError):
            manifest = json.loads((path / MANIFEST).read_text(encoding="utf-8"))
            shed = [name for name in manifest["files"] if name != WEIGHTS]
            if not shed:
                continue
            # First the table of contents, then the files: at no moment does it name what is not there.
            manifest["files"] = {WEIGHTS: manifest["files"][WEIGHTS]}
            write_atomic(path / MANIFEST, json.dumps(manifest, indent=1).encode())
            for name in shed:
                (path / name).unlink(missing_ok=True)
