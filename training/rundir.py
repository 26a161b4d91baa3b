"""A run's directory: what is in it, how it is begun and opened, and what it says of itself while it runs."""

from __future__ import annotations

import json
import os
import platform
import socket
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import torch

from lifeline.errors import ConfigError, RunError
from lifeline.files import hold, write_atomic
from lifeline.version import __version__
from training.config import Config, build_config, dump_config, load_config, read_yaml
from training.runs import CONFIG_FILE, RUN_FILE, STATE_FILE, SUMMARY_FILE
from training.sessions import SESSIONS_FILE, source_commit

MODEL_FILE = "bot.onnx"
CURVE_FILE = "elo.png"
CHECKPOINTS = "checkpoints"
GAMES = "games"
MODELS = "models"
RATINGS_FILE = "ratings.jsonl"
_LOCK_FILE = "lock"


def create(
    config: Config, folder: Path, init_from: str | None = None, begun_with: Sequence[Mapping[str, Any]] = ()
) -> BinaryIO:
    """Begin a run in a directory of its own: configuration, seed, commit, versions.

    Args:
        init_from: where its first weights come from, noted down.
        begun_with: how those were made; see `provenance.lineage`.
    Returns:
        The run's lock, see `lock`.

    Raises:
        RunError: the directory is in use or cannot be written.
    """
    in_use = RunError(f"{folder} is in use already; name another with --run-dir, or go on with --resume {folder}")
    if folder.exists() and (not folder.is_dir() or not _is_empty(folder)):
        raise in_use
    facts = {
        "created": time.strftime("%Y-%m-%dT%H:%M:%S%z"),
        "seed": config.seed,
        "commit": source_commit(),
        "init_from": init_from,
        "begun_with": list(begun_with),
        "versions": {"lifeline": __version__, "torch": torch.__version__, "numpy": np.__version__},
        "machine": {"platform": platform.platform(), "cores": os.cpu_count()},
    }
    try:
        folder.mkdir(parents=True, exist_ok=True)
        locked = _lock(folder)
        if not _is_empty(folder):  # another process was faster
            raise in_use
        # The configuration last: a directory that has it is a run.
        write_json(folder / RUN_FILE, facts)
        write_atomic(folder / CONFIG_FILE, dump_config(config).encode())
    except OSError as error:
        raise RunError(f"cannot write the run directory {folder}: {error.strerror or error}") from None
    return locked


def _is_empty(folder: Path) -> bool:
    """Whether nothing is in a folder, or nothing but a lock."""
    return all(path.name == _LOCK_FILE for path in folder.iterdir())


def lock(folder: Path) -> BinaryIO:
    """Keep other processes from training a run until what is returned is closed, where the system can.

    Raises:
        RunError: one trains it, or the directory holds no run or cannot be written.
    """
    read_config(folder)
    try:
        return _lock(folder)
    except OSError as error:
        raise RunError(f"cannot write the run directory {folder}: {error.strerror or error}") from None


def _lock(folder: Path) -> BinaryIO:
    try:
        return hold(folder / _LOCK_FILE)
    except BlockingIOError:
        raise RunError(f"{folder}: another process trains this run") from None


def read_config(folder: Path) -> Config:
    """The configuration of a run.

    Raises:
        RunError: the directory holds no run or cannot be written.
        ConfigError: its configuration is damaged.
    """
    if not (folder / CONFIG_FILE).is_file():
        raise RunError(f"{folder} holds no run to go on with: there is no {CONFIG_FILE}")
    if not os.access(folder, os.W_OK):
        raise RunError(f"cannot write the run directory {folder}")
    return build_config(read_yaml(folder / CONFIG_FILE), str(folder / CONFIG_FILE))


def read_facts(folder: Path) -> dict[str, Any]:
    """How a run was begun, as `create` noted it; empty if that is missing or damaged."""
    try:
        facts = json.loads((folder / RUN_FILE).read_text())
    except (OSError, ValueError):
        facts = {}
    return facts if isinstance(facts, dict) else {}


# What a run rests on from its first game to its last.
_FIXED = ("seed", "game", "network")


def change_config(folder: Path, overrides: tuple[str, ...]) -> Config:
    """Change settings of a run that is to go on, and keep the change in its directory.

    Args:
        overrides: settings such as "selfplay.batch_size=64".

    Raises:
        RunError: see `read_config`.
        ConfigError: a setting is wrong, or cannot change in a run that has begun.
    """
    before = read_config(folder)
    after = load_config(folder / CONFIG_FILE, overrides)
    for name in _FIXED:
        if getattr(before, name) != getattr(after, name):
            raise ConfigError(
                f"{name} cannot change in a run that has begun; begin a new one, with --init-from if need be"
            )
    if after != before:
        write_atomic(folder / CONFIG_FILE, dump_config(after).encode())
    return after


def write_json(path: Path, values: Any) -> None:
    """Write JSON, whole or not at all."""
    write_atomic(path, json.dumps(values, indent=1).encode())


def write_state(
    folder: Path, status: str, iteration: int, games: int, samples: int, seconds: float, elo: float | None
) -> None:
    """Say where the run is, for `lifeline runs`."""
    state = {
        "pid": os.getpid(),
        "host": socket.gethostname(),
        "status": status,
        "iteration": iteration,
        "games": games,
        "samples": samples,
        "seconds": seconds,
        "updated": time.time(),
        "elo": elo,
    }
    write_json(folder / STATE_FILE, state)


__all__ = [
    "CHECKPOINTS",
    "CONFIG_FILE",
    "CURVE_FILE",
    "GAMES",
    "MODELS",
    "MODEL_FILE",
    "RATINGS_FILE",
    "RUN_FILE",
    "SESSIONS_FILE",
    "STATE_FILE",
    "SUMMARY_FILE",
    "change_config",
    "create",
    "lock",
    "read_config",
    "read_facts",
    "write_json",
    "write_state",
]
