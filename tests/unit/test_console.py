"""A person sees where a run is: plain lines in a file, a panel on a terminal, never more often than can be read."""

import io
import logging
import re
from dataclasses import replace

import pytest
from rich.console import Console

from training.console import LiveConsole, MessageHandler, Status, final_table, status_line, status_panel

STATUS = Status(
    iteration=120,
    games=13_700,
    samples=210_345,
    learner_steps=3_200,
    elapsed=130.0,
    seconds_left=199.0,
    games_per_second=41.2,
    evaluations_per_second=31_022.0,
    samples_learnt_per_second=9_034.0,
    losses={"loss/policy": 1.2345, "loss/value": 0.4567, "loss/policy_target_entropy": 1.1},
    workers_alive=3,
    workers_wanted=4,
    restarts=1,
    queue=8,
    buffer_age=12.3,
    memory_mb=812.0,
    ratings=(("iteration-40", 512.0, 450.0, 575.0), ("iteration-80", 800.0, 700.0, 910.0)),
    warnings=("a worker died: [bold]not markup[/]",),
)
BARE = replace(STATUS, seconds_left=None, losses={}, workers_wanted=0, workers_alive=0, ratings=(), warnings=())


class Clock:
    """A clock that the test moves."""

    def __init__(self):
        self.now = 100.0

    def __call__(self):
        return self.now


def plain_console():
    return Console(file=io.StringIO(), force_terminal=False)


def terminal(width):
    return Console(file=io.StringIO(), force_terminal=True, width=width, height=40, color_system="standard")


def written(console):
    return console.file.getvalue()


def shown(status, width):
    """The lines of a panel without colours."""
    console = Console(file=io.StringIO(), width=width, color_system=None)
    console.print(status_panel(status))
    return written(console).splitlines()


def test_a_plain_line_says_all_that_matters_on_one_line():
    console = plain_console()
    with LiveConsole(console, Clock()) as live:
        live.update(STATUS)
    line = written(console)
    assert re.fullmatch(r"\d\d:\d\d:\d\d  iteration 120  games 13700  .*\n", line)
    for part in ("steps 3200", "31022 evaluations/s", "policy 1.234  value 0.457", "workers 3/4", "3:19 left"):
        assert part in line
    assert "Elo 800 (700 to 910)" in line
    assert "entropy" not in line
    assert len(line) > 80  # and is not broken there


def test_before_learning_starts_the_line_says_so():
    line = status_line(BARE)
    assert "waiting for samples" in line
    assert line.endswith("2.2 min")
    assert "Elo" not in line
    assert "workers" not in line


def test_plain_lines_come_every_ten_seconds():
    console, clock = plain_console(), Clock()
    with LiveConsole(console, clock) as live:
        for tenth in range(250):  # 25 seconds
            clock.now = 100 + tenth / 10
            live.update(STATUS)
    assert len(written(console).splitlines()) == 3


@pytest.mark.parametrize("terminal_type", ["xterm", "dumb"])
def test_what_is_no_terminal_gets_no_control_codes(terminal_type, monkeypatch):
    monkeypatch.setenv("TERM", terminal_type)
    console = plain_console() if terminal_type == "xterm" else terminal(80)
    with LiveConsole(console, Clock()) as live:
        live.update(STATUS)
        live.message("a message [with brackets] :smile:")
    final_table(console, {"iterations": 3})
    if terminal_type == "xterm":
        assert "\x1b" not in written(console)
    assert re.search(r"^\d\d:\d\d:\d\d  a message \[with brackets\] :smile:$", written(console), re.MULTILINE)
    assert "iteration 120" in written(console)


@pytest.mark.parametrize("width", [60, 80, 120, 200])
@pytest.mark.parametrize("status", [STATUS, BARE, replace(STATUS, seconds_left=0.0, elapsed=0.0)])
def test_the_panel_fits_the_terminal(status, width):
    lines = shown(status, width)
    assert all(len(line) <= width for line in lines)
    assert "iteration 120" in "\n".join(lines)


def test_the_panel_shows_progress_rates_workers_ratings_and_warnings():
    text = "\n".join(shown(STATUS, 80))
    for part in ("40 %  3:19 left", "13 700 games", "31 022 evaluations/s", "9 034 samples learnt/s", "3 of 4 alive"):
        assert part in text
    assert re.search(r"iteration-80 +800 +\(700 to 910\)", text)
    assert "a worker died: [bold]not markup[/]" in text


def test_the_panel_shows_how_often_resigning_would_have_been_wrong():
    line = "would have been wrong in 3 of 120 games played on"
    assert any(line in row for row in shown(replace(STATUS, resignations=(3, 120)), 80))
    assert not any("resigning" in row for row in shown(STATUS, 80))


def test_only_the_last_ratings_and_warnings_are_shown():
    many = tuple((f"iteration-{i}", float(i), float(i), float(i)) for i in range(10))
    text = "\n".join(shown(replace(STATUS, ratings=many, warnings=tuple(f"warning number {i}" for i in range(10))), 80))
    assert "iteration-9" in text
    assert "iteration-5" not in text
    assert "warning number 9" in text
    assert "warning number 6" not in text


def test_an_ascii_terminal_gets_ascii():
    file = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    console = Console(file=file, force_terminal=True, width=80)
    with LiveConsole(console, Clock()) as live:
        live.update(STATUS)
    file.flush()
    assert b"iteration 120" in file.buffer.getvalue()


@pytest.mark.parametrize("width", [80, 120])
def test_a_terminal_is_drawn_at_most_twice_a_second(width, monkeypatch):
    monkeypatch.setenv("TERM", "xterm")
    console, clock = terminal(width), Clock()
    with LiveConsole(console, clock) as live:
        for i in range(100):  # two seconds
            clock.now = 100 + i / 50
            live.update(replace(STATUS, iteration=1000 + i))
        drawn = re.findall(r"iteration 1 (\d\d\d)", written(console))
        assert [int(i) for i in drawn] == [0, 25, 50, 75]
        live.message("the message")
    assert "the message" in written(console)
    # What was held back last is what stays on the screen.
    assert re.findall(r"iteration 1 (\d\d\d)", written(console))[-1] == "099"


def test_log_records_become_messages():
    console = plain_console()
    with LiveConsole(console, Clock()) as live:
        record = logging.LogRecord("training", logging.WARNING, "", 0, "dropped %d games", (3,), None)
        MessageHandler(live).handle(record)
    assert written(console).endswith("WARNING  dropped 3 games\n")


def test_the_final_table_shows_ratings_and_matches():
    console = Console(file=io.StringIO(), width=80)
    rating = {"elo": 1234.4, "low": 1100.0, "high": -0.2, "games": 40}
    match = {"name": "bot", "opponent": "rollout:1000", "games": 200, "wins": 199, "low": 0.972, "high": 0.999}
    summary = {"iterations": 300, "games": 13_700, "samples": 210_000, "learner_steps": 3200, "training_seconds": 330.0}
    final_table(console, summary | {"ratings": {"iteration-[300]": rating}, "matches": [match]})
    text = written(console)
    for part in ("13 700", "5.5", "iteration-[300]", "1234", "1100 to 0", "199 of 200", "99.5 %", "97.2-99.9 %"):
        assert part in text


def test_the_final_table_leaves_out_what_there_is_not():
    console = Console(file=io.StringIO(), width=80)
    final_table(console, {"iterations": 0, "ratings": {}, "matches": []})
    assert "iterations" in written(console)
    assert "games won" not in written(console)
