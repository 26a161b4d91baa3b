"""The runs in a folder: what they are, how far they came, and whether they still go on."""

from __future__ import annotations

import json
import os
import socket
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from lifeline.errors import ConfigError, RunError
from training.config import read_yaml

CONFIG_FILE = "config.yaml"
RUN_FILE = "run.json"
STATE_FILE = "state.json"
SUMMARY_FILE = "summary.json"

_GOING = ("training", "evaluating")
_ENDED = ("finished", "stopped")
# No file of a run that is read here comes near; a larger one is damaged.
_MAX_JSON = 4_000_000
_STYLES = {"running": "green", "interrupted": "yellow", "unknown": "yellow", "damaged": "red"}


@dataclass(frozen=True)
class RunInfo:
    """One run.

    Attributes:
        name: of its directory.
        folder: its directory.
        state: "running", "finished" (it came to the end its configuration sets), "stopped" (by a signal; it was saved),
            "interrupted" (its process is gone without having said so), "unknown" (it cannot be told from here) or
            "damaged" (a file of it cannot be read).
        reason: why it is unknown or damaged, empty otherwise.
        base: cells a side of the board.
        iterations, games: how many so far.
        elo: of its newest model, against random play = 0.
        minutes: of training, over all times it was gone on with.
        updated: when it last wrote anything of itself, in seconds since 1970.
    What is not known is None.
    """

    name: str
    folder: Path
    state: str
    reason: str = ""
    base: int | None = None
    iterations: int | None = None
    games: int | None = None
    elo: float | None = None
    minutes: float | None = None
    updated: float | None = None


class _Damage(Exception):
    """A file of a run that cannot be read; the message says which and why."""


def list_runs(folder: Path) -> list[RunInfo]:
    """The runs in a folder, those last heard of first; or the one run, if the folder is a run's own.

    Directories whose names begin with a dot are no runs. Nothing is written, and no file is trusted to be whole.

    Raises:
        RunError: the folder is not there or cannot be read.
    """
    if not folder.exists():
        raise RunError(f"there is no folder {folder}; lifeline train configs/base3.yaml makes a run in runs/")
    if not folder.is_dir():
        raise RunError(f"{folder} is no folder of runs but a file")
    if (folder / CONFIG_FILE).is_file():
        return [_read_run(folder)]
    try:
        inside = [path for path in folder.iterdir() if path.is_dir() and not path.name.startswith(".")]
    except OSError as error:
        raise RunError(f"cannot read {folder}: {error.strerror or error}") from None
    return sorted((_read_run(path) for path in inside), key=lambda run: (-(run.updated or 0.0), run.name))


def runs_table(console: Console, infos: Sequence[RunInfo], now: float | None = None) -> None:
    """Print runs as a table, or a line saying that there are none, and below it what is wrong with which.

    Args:
        console: where to write.
        infos: the runs in the order wanted.
        now: seconds since 1970, to which the last updates are compared; the present if None.
    """
    if not infos:
        console.print("no runs here yet; lifeline train configs/base3.yaml makes one in runs/")
        return
    now = time.time() if now is None else now
    # Narrow gaps leave 80 columns room for a run's usual name beside all the numbers.
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, padding=(0, 0))
    table.add_column("run", overflow="fold", min_width=12)
    table.add_column("state", no_wrap=True)
    for name in ("base", "iterations", "games", "Elo", "minutes"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("updated", no_wrap=True)
    for run in infos:
        table.add_row(
            Text(run.name),
            Text(run.state, _STYLES.get(run.state, "")),
            _number(run.base),
            _number(run.iterations),
            _number(run.games),
            "-" if run.elo is None else f"{run.elo:z.0f}",
            _number(run.minutes, 1),
            age_text(now - run.updated) if run.updated is not None else "-",
        )
    console.print(table)
    for run in infos:
        if run.reason:
            console.print(Text(f"{run.name}: {run.reason}"), soft_wrap=True)


def age_text(seconds: float) -> str:
    """How long ago, as in "12 min ago"; a clock that runs ahead of ours counts as now."""
    if seconds < 10:
        return "now"
    for name, unit, many in (("s", 1, 90), ("min", 60, 90), ("h", 3600, 48)):
        if seconds < many * unit:
            return f"{seconds / unit:.0f} {name} ago"
    return f"{seconds / 86400:.0f} d ago"


def _read_run(folder: Path) -> RunInfo:
    """All that can be said of a run, whatever its files look like."""
    updated = _newest(folder)
    try:
        base = _base(folder)
        facts = _read_json(folder / RUN_FILE)
        if facts is None:
            raise _Damage(f"there is no {RUN_FILE}")
        state, summary = _read_json(folder / STATE_FILE), _read_json(folder / SUMMARY_FILE)
        status, reason = _state(state, summary)
        s, end = state or {}, summary or {}
        seconds = _field(s, STATE_FILE, "seconds", _field(end, SUMMARY_FILE, "training_seconds"))
        iterations = _field(s, STATE_FILE, "iteration", _field(end, SUMMARY_FILE, "iterations"))
        games = _field(s, STATE_FILE, "games", _field(end, SUMMARY_FILE, "games"))
        return RunInfo(
            name=folder.absolute().name,
            folder=folder,
            state=status,
            reason=reason,
            base=base,
            iterations=None if iterations is None else int(iterations),
            games=None if games is None else int(games),
            elo=_field(s, STATE_FILE, "elo"),
            minutes=None if seconds is None else seconds / 60,
            updated=_field(s, STATE_FILE, "updated", updated),
        )
    except _Damage as damage:
        return RunInfo(folder.absolute().name, folder, "damaged", str(damage), updated=updated)


def _state(state: dict[str, Any] | None, summary: dict[str, Any] | None) -> tuple[str, str]:
    """The state of a run and, where it is unknown, why."""
    if state is None:
        if summary is not None:
            return ("stopped" if summary.get("stopped_by_signal") else "finished"), ""
        return "unknown", f"there is no {STATE_FILE} that says how far it is"
    status = state.get("status")
    if status in _ENDED:
        return str(status), ""
    if status not in _GOING:
        raise _Damage(f"{STATE_FILE}: status must be one of {', '.join(_GOING + _ENDED)}, not {str(status)[:40]!r}")
    pid, host, updated = state.get("pid"), state.get("host"), _field(state, STATE_FILE, "updated")
    if not isinstance(pid, int) or isinstance(pid, bool) or not 0 < pid < 2**31:
        raise _Damage(f"{STATE_FILE}: pid must be a process's number, not {str(pid)[:40]!r}")
    if host != socket.gethostname():
        return "unknown", f"it runs or ran on {str(host)[:80]}, whose processes cannot be seen from here"
    return ("running" if _is_alive(pid, updated) else "interrupted"), ""


def _is_alive(pid: int, updated: float | None) -> bool:
    """Whether a process of this machine is there, and is not a later one that got the number of one that is gone."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:  # it is there, and someone else's
        pass
    started = _start_of(pid)
    # Two seconds: the system's start time is rounded.
    return started is None or updated is None or started <= updated + 2


def _start_of(pid: int) -> float | None:
    """When a process started, in seconds since 1970; None where the system does not say."""
    with suppress(OSError, ValueError, IndexError):
        # The fields behind the program's name, which is in brackets and may hold any character: see proc(5).
        ticks = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19])
        uptime = float(Path("/proc/uptime").read_text().split()[0])
        return time.time() - uptime + ticks / os.sysconf("SC_CLK_TCK")
    return None


def _base(folder: Path) -> int | None:
    """Cells a side of the board, from a run's configuration.

    Only this one setting is looked at: runs of older versions, with other settings, are listed too.
    """
    path = folder / CONFIG_FILE
    if not path.is_file():
        raise _Damage(f"there is no {CONFIG_FILE}")
    try:
        values = read_yaml(path)
    except ConfigError as error:
        raise _Damage(str(error)) from None
    game = values.get("game", {}) if isinstance(values, dict) else None
    base = game.get("base") if isinstance(game, dict) else None
    if not isinstance(base, int) or isinstance(base, bool):
        raise _Damage(f"{CONFIG_FILE}: game.base must be a number, not {str(base)[:40]!r}")
    return base


def _read_json(path: Path) -> dict[str, Any] | None:
    """The mapping in a JSON file; None if there is no file."""
    try:
        if path.stat().st_size > _MAX_JSON:
            raise _Damage(f"{path.name}: larger than any file of its kind")
        values = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    except OSError as error:
        raise _Damage(f"{path.name}: {error.strerror or error}") from None
    except (ValueError, RecursionError):
        raise _Damage(f"{path.name}: not valid JSON") from None
    if not isinstance(values, dict):
        raise _Damage(f"{path.name}: not a mapping of keys to values")
    return values


def _field(values: dict[str, Any], name: str, key: str, otherwise: float | None = None) -> float | None:
    """A number of a mapping, or `otherwise` where it is missing or null."""
    value = values.get(key)
    if value is None:
        return otherwise
    if not isinstance(value, int | float) or isinstance(value, bool) or not abs(value) < 1e15:
        raise _Damage(f"{name}: {key} must be a number, not {str(value)[:40]!r}")
    return float(value)


def _newest(folder: Path) -> float | None:
    """When one of a run's files was last written, in seconds since 1970."""
    times = []
    for name in (CONFIG_FILE, RUN_FILE, STATE_FILE, SUMMARY_FILE):
        with suppress(OSError):
            times.append((folder / name).stat().st_mtime)
    return max(times, default=None)


def _number(value: float | None, digits: int = 0) -> str:
    return "-" if value is None else f"{value:z,.{digits}f}".replace(",", " ")
