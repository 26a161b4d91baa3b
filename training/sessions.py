"""How a run was made: a run may be gone on with by other settings or another source, and its directory says so."""

from __future__ import annotations

import itertools
import json
import shlex
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from lifeline.files import write_atomic
from training.config import Config

SESSIONS_FILE = "sessions.json"


@dataclass(frozen=True)
class Stretch:
    """Sessions one after the other that were made alike.

    Attributes:
        iteration: after which the first of them began.
        commit: of the source, as `source_commit` tells it; None where it is not known.
        config: all settings, as JSON values, those given for one session alone included.
    """

    iteration: int
    commit: str | None
    config: dict[str, Any]


def source_commit() -> str | None:
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


def begin_session(folder: Path, iteration: int, config: Config) -> int:
    """Count a start of the run, and note how it goes on if that has changed.

    Args:
        iteration: iterations behind it.
        config: of this session.
    Returns:
        0 for the first start of a run. No two starts get the same number.
    """
    count, made = read_sessions(folder)
    new = Stretch(iteration, source_commit(), config.model_dump(mode="json"))
    made = [stretch for stretch in made if stretch.iteration < iteration]  # others have come to nothing
    if not made or (made[-1].commit, made[-1].config) != (new.commit, new.config):
        made.append(new)
    text = json.dumps({"count": count + 1, "made": [asdict(stretch) for stretch in made]}, indent=1)
    write_atomic(folder / SESSIONS_FILE, text.encode())
    return count


def read_sessions(folder: Path) -> tuple[int, list[Stretch]]:
    """How often a run was started, and how it was made, the oldest stretch first; none of it if that is damaged."""
    try:
        values = json.loads((folder / SESSIONS_FILE).read_text())
        made = [Stretch(**entry) for entry in values["made"]]
        if all(_is_whole(stretch) for stretch in made):
            return int(values["count"]), made
    except (OSError, ValueError, TypeError, KeyError, RecursionError):
        pass
    return 0, []


def _is_whole(stretch: Stretch) -> bool:
    commit = stretch.commit
    return isinstance(stretch.iteration, int) and isinstance(stretch.config, dict) and isinstance(commit, str | None)


def resumptions(made: Sequence[Stretch], run: str) -> list[dict[str, Any]]:
    """How a run was gone on with after its first stretch.

    Args:
        made: its stretches, the oldest first.
        run: what its directory is called in the commands.
    Returns:
        For each later stretch the `iteration` after which it began, its `commit`, and the `command` that goes on so.
    """
    out = []
    for before, after in itertools.pairwise(made):
        settings = [("--set", change) for change in _changes(before.config, after.config)]
        command = ["lifeline", "train", "--resume", run, *(part for pair in settings for part in pair)]
        out.append({"iteration": after.iteration, "commit": after.commit, "command": shlex.join(command)})
    return out


def _changes(before: Mapping[str, Any], after: Mapping[str, Any], section: str = "") -> Iterator[str]:
    """The settings in which two configurations differ, as `--set` takes them. JSON is YAML."""
    for name, value in after.items():
        old = before.get(name)
        if isinstance(value, dict) and isinstance(old, dict) and not section:
            yield from _changes(old, value, f"{name}.")
        elif old != value:
            yield f"{section}{name}={value if isinstance(value, str) else json.dumps(value)}"
