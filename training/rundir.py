"""A run's directory: what is in it, how it is begun and opened, and what it says of itself while it runs."""

from __future__ import annotations

import contextlib
import json
import os
import platform
import socket
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

from lifeline.errors import ConfigError, RunError
from lifeline.files import write_atomic
from lifeline.version import __version__
from training.config import Config, build_config, dump_config, load_config, read_yaml
from training.runs import CONFIG_FILE, RUN_FILE, STATE_FILE, SUMMARY_FILE

MODEL_FILE = "bot.onnx"
CURVE_FILE = "elo.png"
CHECKPOINTS = "checkpoints"
GAMES = "games"
MODELS = "models"
RATINGS_FILE = "ratings.jsonl"
SESSIONS_FILE = "sessions"


def create(
    config: Config, folder: Path, init_from: str | None = None, begun_with: Sequence[Mapping[str, Any]] = ()
) -> None:
    """Begin a run in a directory of its own: configuration, seed, commit, versions.

    Args:
        init_from: where its first weights come from, noted down.
        begun_with: how those were made; see `provenance.lineage`.

    Raises:
        RunError: the directory is in use or cannot be written.
    """
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise RunError(f"{folder} is in use already; name another with --run-dir, or go on with --resume {folder}")
    facts = {
        "created": time.strftime("%Y-%m-%dT%H:%M:%S%z"),
        "seed": config.seed,
        "commit": _commit(),
        "init_from": init_from,
        "begun_with": list(begun_with),
        "versions": {"lifeline": __version__, "torch": torch.__version__, "numpy": np.__version__},
        "machine": {"platform": platform.platform(), "cores": os.cpu_count()},
    }
    try:
        folder.mkdir(parents=True, exist_ok=True)
        # The configuration last: a directory that has it is a run.
        write_json(folder / RUN_FILE, facts)
        write_atomic(folder / CONFIG_FILE, dump_config(config).encode())
    except OSError as error:
        raise RunError(f"cannot write the run directory {folder}: {error.strerror or error}") from None


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
    """How a run was begun, as `create` noted it, and in how many sessions it was made; what is missing is left out."""
    try:
        facts = json.loads((folder / RUN_FILE).read_text())
    except (OSError, ValueError):
        facts = {}
    facts = facts if isinstance(facts, dict) else {}
    with contextlib.suppress(OSError, ValueError):
        facts["sessions"] = int((folder / SESSIONS_FILE).read_text()) + 1
    return facts


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


def next_session(folder: Path) -> int:
    """Count a start of the run: 0 for the first. No two starts get the same number."""
    path = folder / SESSIONS_FILE
    try:
        session = int(path.read_text()) + 1
    except (OSError, ValueError):
        session = 0
    write_atomic(path, str(session).encode())
    return session


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


def _commit() -> str | None:
    """The commit of the source this runs from, with a mark if it was edited; None outside a checkout."""
    try:
        out = subprocess.run(
            ["git", "describe", "--always", "--dirty", "--abbrev=40"],
            cwd=Path(__file__).parent,
            capture_output=True,
            text=True,
            timeout=10,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return out.stdout.strip() or None


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
    "next_session",
    "read_config",
    "read_facts",
    "write_json",
    "write_state",
]
