"""What a person sees of a running training: a live panel on a terminal, plain lines anywhere else."""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self

from rich import box
from rich.console import Console, Group, RenderableType
from rich.constrain import Constrain
from rich.live import Live
from rich.panel import Panel
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

LIVE_EVERY = 0.5
"""Seconds between two drawings of the live panel, at least."""
PLAIN_EVERY = 10.0
"""Seconds between two plain lines, at least."""

_SHOWN_RATINGS = 4
_SHOWN_WARNINGS = 3
_PANEL_WIDTH = 110  # wider than this the bar and the lines are no easier to read


@dataclass(frozen=True)
class Status:
    """Where a run is.

    Attributes:
        iteration, games, samples, learner_steps: how many so far, over the whole life of the run.
        elapsed: seconds since this process began to train.
        seconds_left: seconds until the run ends by itself; None where nothing says when.
        games_per_second, evaluations_per_second, samples_learnt_per_second: rates of late.
        losses: the last losses by name, with or without "loss/" before it; empty before learning starts.
        workers_alive, workers_wanted: self-play workers; none wanted means all happens in this process.
        restarts: workers started anew after a failure.
        queue: reports of workers not yet taken in.
        buffer_age: mean age of the window's samples, in iterations.
        memory_mb: memory of this process, in megabytes.
        ratings: (name, Elo, low, high) with the ends of the 95 % interval, the newest last.
        warnings: what has gone wrong of late, the newest last.
        resignations: of the last games played on after a player would have resigned, in how many that would have been
            wrong, and how many there were; None where nobody resigns.
    """

    iteration: int
    games: int
    samples: int
    learner_steps: int
    elapsed: float
    seconds_left: float | None
    games_per_second: float
    evaluations_per_second: float
    samples_learnt_per_second: float
    losses: dict[str, float]
    workers_alive: int
    workers_wanted: int
    restarts: int
    queue: int
    buffer_age: float
    memory_mb: float
    ratings: tuple[tuple[str, float, float, float], ...]
    warnings: tuple[str, ...]
    resignations: tuple[int, int] | None = None


class LiveConsole:
    """Shows a run while it trains: `with LiveConsole() as console: ... console.update(status)`.

    A terminal gets a panel that stays at the bottom and is drawn at most twice a second. Anything else (a file, a pipe,
    a terminal that knows no cursor) gets one plain line every ten seconds, without control codes.

    Args:
        console: where to write; standard output if None.
        clock: seconds that never run backwards, for the time between two drawings.
    """

    def __init__(self, console: Console | None = None, clock: Callable[[], float] = time.monotonic) -> None:
        self.console = console or Console()
        self._clock = clock
        self._is_live = self.console.is_terminal and not self.console.is_dumb_terminal
        self._live: Live | None = None
        self._next = -math.inf
        self._status: Status | None = None

    def __enter__(self) -> Self:
        if self._is_live:
            # Drawn by `update`, not by a thread of its own that would draw old figures between two updates.
            self._live = Live(console=self.console, auto_refresh=False)
            self._live.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        live, self._live = self._live, None
        if live is not None:
            if self._status is not None:
                live.update(status_panel(self._status))
            live.stop()

    def update(self, status: Status) -> None:
        """Show where the run is, unless something was shown a moment ago."""
        self._status = status
        now = self._clock()
        if now < self._next:
            return
        self._next = now + (PLAIN_EVERY if self._live is None else LIVE_EVERY)
        if self._live is None:
            self.message(status_line(status))
        else:
            self._live.update(status_panel(status), refresh=True)

    def message(self, line: str) -> None:
        """Print a line with the time before it, above the live panel where there is one."""
        # Not wrapped by us: long paths stay in one piece for whoever copies them.
        self.console.print(Text(f"{time.strftime('%H:%M:%S')}  {line}"), soft_wrap=True)


class MessageHandler(logging.Handler):
    """Shows log records as messages of a console, so that they do not tear a live panel apart.

    Args:
        console: where they are shown.
        level: records below it are not.
    """

    def __init__(self, console: LiveConsole, level: int = logging.WARNING) -> None:
        super().__init__(level)
        self._console = console

    def emit(self, record: logging.LogRecord) -> None:
        """Show one record."""
        self._console.message(f"{record.levelname}  {self.format(record)}")


def status_line(status: Status) -> str:
    """A status as one line of plain text."""
    parts = [
        f"iteration {status.iteration}",
        f"games {status.games}",
        f"samples {status.samples}",
        f"steps {status.learner_steps}",
        f"{status.games_per_second:.1f} games/s",
        f"{status.evaluations_per_second:.0f} evaluations/s",
        _losses(status),
    ]
    if status.workers_wanted:
        parts.append(f"workers {status.workers_alive}/{status.workers_wanted}")
    if status.ratings:
        _, elo, low, high = status.ratings[-1]
        parts.append(f"Elo {elo:z.0f} ({low:z.0f} to {high:z.0f})")
    return "  ".join([*parts, _left(status)])


def status_panel(status: Status) -> RenderableType:
    """A status as a panel, which fits terminals of 60 columns and more."""
    facts = Table.grid(padding=(0, 2))
    facts.add_column(style="bold", no_wrap=True, min_width=8)
    facts.add_column(ratio=1)
    s = status
    facts.add_row(
        "so far",
        _spaced(
            f"iteration {_count(s.iteration)}",
            f"{_count(s.games)} games",
            f"{_count(s.samples)} samples",
            f"{_count(s.learner_steps)} steps",
        ),
    )
    facts.add_row(
        "speed",
        _spaced(
            f"{s.games_per_second:.1f} games/s",
            f"{_count(s.evaluations_per_second)} evaluations/s",
            f"{_count(s.samples_learnt_per_second)} samples learnt/s",
        ),
    )
    facts.add_row("losses", _spaced(_losses(s)))
    facts.add_row("workers", _workers(s))
    facts.add_row(
        "memory", _spaced(f"{_count(s.memory_mb)} MB", f"window {s.buffer_age:.1f} iterations old on average")
    )
    if s.resignations:
        facts.add_row(
            "resigning", f"would have been wrong in {s.resignations[0]} of {s.resignations[1]} games played on"
        )
    if s.ratings:
        facts.add_row("Elo", _ratings_grid(s.ratings[-_SHOWN_RATINGS:]))
    for i, warning in enumerate(s.warnings[-_SHOWN_WARNINGS:]):
        facts.add_row("" if i else Text("warnings", "yellow"), Text(" ".join(warning.split()), "yellow"))
    return Constrain(Panel(Group(_progress(s), facts), title="training", title_align="left"), _PANEL_WIDTH)


def final_table(console: Console, summary: Mapping[str, Any]) -> None:
    """Print what a run came to.

    Args:
        console: where to write.
        summary: of the run, as in its summary.json: "iterations", "games", "samples", "learner_steps",
            "training_seconds"; "ratings", a mapping of names to mappings with the fields of `Rating`; "matches", a list
            of mappings with the fields of `MatchResult`. What is missing is left out.
    """
    facts = Table.grid(padding=(0, 2))
    facts.add_column(style="bold", no_wrap=True, min_width=8)
    facts.add_column(justify="right", no_wrap=True)
    for key, name in (("iterations", "iterations"), ("games", "games"), ("samples", "samples")):
        if key in summary:
            facts.add_row(name, _count(summary[key]))
    if "learner_steps" in summary:
        facts.add_row("learner steps", _count(summary["learner_steps"]))
    if "training_seconds" in summary:
        facts.add_row("minutes", f"{summary['training_seconds'] / 60:.1f}")
    console.print(Panel(facts, title="this run", title_align="left", expand=False))
    if summary.get("ratings"):
        console.print(_ratings_table(summary["ratings"]))
    if summary.get("matches"):
        console.print(_matches_table(summary["matches"]))


def _progress(status: Status) -> RenderableType:
    """The bar and how long still, or how long already where no end is known."""
    if status.seconds_left is None:
        return Text(f"{clock_text(status.elapsed)} so far, no end set")
    whole = status.elapsed + status.seconds_left
    done = min(1.0, max(0.0, status.elapsed / whole)) if whole > 0 else 1.0
    row = Table.grid(padding=(0, 2), expand=True)
    row.add_column(ratio=1)
    row.add_column(justify="right", no_wrap=True)
    row.add_row(ProgressBar(total=1.0, completed=done), f"{100 * done:.0f} %  {_left(status)}")
    return row


def _workers(status: Status) -> Text:
    if not status.workers_wanted:
        return Text("none: all in this process")
    alive = f"{status.workers_alive} of {status.workers_wanted} alive"
    style = "red" if status.workers_alive < status.workers_wanted else ""
    restarts = f"{status.restarts} restart{'' if status.restarts == 1 else 's'}"
    return Text.assemble((alive, style), f"   {restarts}   {status.queue} waiting in the queue")


def _ratings_grid(ratings: Sequence[tuple[str, float, float, float]]) -> Table:
    grid = Table.grid(padding=(0, 2))
    grid.add_column(no_wrap=True, overflow="ellipsis")
    grid.add_column(justify="right", no_wrap=True, min_width=4)
    grid.add_column(no_wrap=True)
    for name, elo, low, high in ratings:
        grid.add_row(Text(name), f"{elo:z.0f}", f"({low:z.0f} to {high:z.0f})")
    return grid


def _ratings_table(ratings: Mapping[str, Mapping[str, Any]]) -> Table:
    table = Table(title="ratings", title_justify="left", box=box.SIMPLE_HEAD)
    table.add_column("player", overflow="fold")
    table.add_column("Elo", justify="right", no_wrap=True)
    table.add_column("95 % interval", no_wrap=True)
    for name, rating in ratings.items():
        table.add_row(Text(name), f"{rating['elo']:z.0f}", f"{rating['low']:z.0f} to {rating['high']:z.0f}")
    return table


def _matches_table(matches: Sequence[Mapping[str, Any]]) -> Table:
    table = Table(title="matches", title_justify="left", box=box.SIMPLE_HEAD)
    table.add_column("against", overflow="fold")
    table.add_column("games won", justify="right", no_wrap=True)
    table.add_column("share", justify="right", no_wrap=True)
    table.add_column("95 % interval", justify="right", no_wrap=True)
    for m in matches:
        table.add_row(
            Text(str(m["opponent"])),
            f"{m['wins']} of {m['games']}",
            f"{100 * m['wins'] / m['games']:.1f} %",
            f"{100 * m['low']:.1f}-{100 * m['high']:.1f} %",
        )
    return table


def _losses(status: Status) -> str:
    # The entropy of the targets is no loss: it is what the policy loss cannot go below.
    named = ((k.removeprefix("loss/"), v) for k, v in status.losses.items() if "entropy" not in k)
    return "  ".join(f"{k} {v:.3f}" for k, v in named) or "waiting for samples"


def _left(status: Status) -> str:
    if status.seconds_left is None:
        return f"{status.elapsed / 60:.1f} min"
    return f"{clock_text(status.seconds_left)} left"


def clock_text(seconds: float) -> str:
    """Seconds as M:SS or H:MM:SS."""
    minutes, rest = divmod(max(0, int(seconds)), 60)
    return f"{minutes}:{rest:02d}" if minutes < 60 else f"{minutes // 60}:{minutes % 60:02d}:{rest:02d}"


def _count(number: float) -> str:
    """A number without a fraction, thousands set apart: 13 700."""
    return f"{number:,.0f}".replace(",", " ")


def _spaced(*parts: str) -> Text:
    """Parts side by side, as a Text: brackets in them are no markup."""
    return Text("   ".join(parts))
