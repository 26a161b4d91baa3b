"""What a person sees of a tournament: its progress while it is played, its table at the end."""

from __future__ import annotations

from pathlib import Path
from types import TracebackType

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
from rich.progress import Progress as Bar

from training.console import clock_text
from training.report import standings_table
from training.standings import Standings
from training.tournament_run import PICTURE_FILE, REPORT_FILE, STANDINGS_FILE, Progress

# Where there is no terminal, a line so often.
_SECONDS = 30.0


class Live:
    """A bar in a terminal, a line now and then elsewhere; to be used in a `with` block."""

    def __init__(self, console: Console | None = None) -> None:
        self._console = console or Console(highlight=False)
        self._bar = Bar(
            BarColumn(bar_width=30),
            MofNCompleteColumn(),
            TextColumn("games"),
            TextColumn("{task.description}"),
            TimeElapsedColumn(),
            console=self._console,
            disable=not self._console.is_terminal,
        )
        self._task = self._bar.add_task("", total=None)
        self._told = 0.0

    def __enter__(self) -> Live:
        self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._bar.stop()

    def update(self, now: Progress) -> None:
        """Show how far it is."""
        line = describe(now)
        self._bar.update(self._task, completed=now.done, total=now.total, description=line)
        if not self._console.is_terminal and (now.seconds >= self._told + _SECONDS or now.done == now.total):
            self._told = now.seconds
            self._console.print(f"{now.done} of {now.total} games{', ' if line else ''}{line}", soft_wrap=True)


def describe(now: Progress) -> str:
    """Score, test and time left, as far as there are any."""
    parts = []
    if now.wins is not None and now.done:
        parts.append(f"{now.wins}-{now.done - now.wins}")
    if now.sprt is not None:
        parts.append(f"LLR {now.sprt.llr:.2f} ({now.sprt.lower:.2f} to {now.sprt.upper:.2f})")
    if now.played:
        rate = now.played / max(now.seconds, 1e-9)
        left = f"{'at most ' if now.sprt is not None else ''}{clock_text((now.total - now.done) / rate)} left"
        parts += [f"{60 * rate:.3g} a minute", *([left] if now.done < now.total else [])]
    return ", ".join(parts)


def show(found: Standings | None, folder: Path, console: Console | None = None) -> None:
    """Show the table, and where the report lies."""
    console = console or Console(highlight=False)
    if not console.is_terminal:  # a file or pipe has no edge to wrap at
        console.width = max(console.width, 30 + 16 * (0 if found is None else len(found.players)))
    if found is None:
        console.print("no pair of games has been played to its end yet")
        return
    console.print(standings_table(found))
    for name, what in ((REPORT_FILE, "the games, as boards"), (STANDINGS_FILE, ""), (PICTURE_FILE, "")):
        console.print(f"{folder / name}{': ' if what else ''}{what}", soft_wrap=True)
