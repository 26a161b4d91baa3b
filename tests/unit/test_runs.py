"""`lifeline runs` says of every directory what it is, however damaged."""

import io
import json
import os
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest
from rich.console import Console

from lifeline.errors import RunError
from training.runs import RunInfo, age_text, list_runs, runs_table

STATE = {
    "pid": os.getpid(),
    "host": socket.gethostname(),
    "status": "training",
    "iteration": 12,
    "games": 345,
    "samples": 6789,
    "elo": 123.4,
}


def make_run(folder, state=None, summary=None):
    """A run's directory as the loop leaves it."""
    folder.mkdir(parents=True)
    (folder / "config.yaml").write_text("game:\n  base: 4\nfrom_an_older_version: 1\n")
    (folder / "run.json").write_text(json.dumps({"seed": 1}))
    if state is not None:
        (folder / "state.json").write_text(json.dumps({"updated": time.time()} | state))
    if summary is not None:
        (folder / "summary.json").write_text(json.dumps(summary))
    return folder


def only(folder):
    (run,) = list_runs(folder)
    return run


def text_of(infos, width=80, now=None):
    console = Console(file=io.StringIO(), width=width)
    runs_table(console, infos, now)
    return console.file.getvalue()


def gone_pid():
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    return process.pid


def test_a_running_run_is_running(tmp_path):
    make_run(tmp_path / "one", STATE)
    run = only(tmp_path)
    assert (run.name, run.state, run.base, run.iterations, run.games) == ("one", "running", 4, 12, 345)
    assert run.elo == 123.4
    assert time.time() - run.updated < 60


@pytest.mark.parametrize("status", ["training", "evaluating"])
def test_a_run_whose_process_is_gone_is_interrupted(tmp_path, status):
    make_run(tmp_path / "one", STATE | {"status": status, "pid": gone_pid()})
    assert only(tmp_path).state == "interrupted"


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="the system does not say when a process started")
def test_a_later_process_of_the_same_number_is_not_the_run(tmp_path):
    make_run(tmp_path / "one", STATE | {"updated": time.time() - 10 * 86400})
    assert only(tmp_path).state == "interrupted"


@pytest.mark.parametrize("status", ["finished", "stopped"])
def test_a_run_that_ended_says_how(tmp_path, status):
    make_run(tmp_path / "one", STATE | {"status": status, "pid": gone_pid()}, {"training_seconds": 90})
    run = only(tmp_path)
    assert (run.state, run.minutes) == (status, 1.5)


def test_a_run_on_another_machine_is_unknown(tmp_path):
    make_run(tmp_path / "one", STATE | {"host": "elsewhere"})
    run = only(tmp_path)
    assert run.state == "unknown"
    assert "elsewhere" in run.reason


@pytest.mark.parametrize(("stopped", "state"), [(False, "finished"), (True, "stopped")])
def test_a_run_without_state_is_judged_by_its_summary(tmp_path, stopped, state):
    summary = {"iterations": 7, "games": 8, "training_seconds": 120.0, "stopped_by_signal": stopped}
    make_run(tmp_path / "one", None, summary)
    run = only(tmp_path)
    assert (run.state, run.iterations, run.games, run.minutes) == (state, 7, 8, 2.0)


def test_a_run_without_state_and_summary_is_unknown(tmp_path):
    make_run(tmp_path / "one")
    assert only(tmp_path).state == "unknown"
    assert "state.json" in only(tmp_path).reason


@pytest.mark.parametrize(
    ("name", "content", "reason"),
    [
        ("state.json", b"{", "state.json: not valid JSON"),
        ("state.json", b"[" * 100_000, "state.json: not valid JSON"),
        ("state.json", b"\xff\xfe", "state.json: not valid JSON"),
        ("state.json", b"[1]", "state.json: not a mapping"),
        ("state.json", b"{}", "status must be one of"),
        ("state.json", b'{"status": "training", "pid": "x"}', "pid must be a process's number"),
        ("state.json", b'{"status": "training", "pid": -1}', "pid must be a process's number"),
        ("state.json", b'{"status": "finished", "games": [3]}', "games must be a number"),
        ("state.json", b'{"status": "finished", "elo": NaN}', "elo must be a number"),
        ("state.json", b'{"status": "finished", "iteration": 1e999}', "iteration must be a number"),
        ("run.json", b"", "run.json: not valid JSON"),
        ("run.json", None, "there is no run.json"),
        ("summary.json", b"nothing", "summary.json: not valid JSON"),
        ("config.yaml", b"game: [", "not valid YAML"),
        ("config.yaml", b"- 1", "game.base must be a number"),
        ("config.yaml", b"game: 3", "game.base must be a number"),
        ("config.yaml", None, "there is no config.yaml"),
    ],
)
def test_damage_is_named_and_harms_no_other_run(tmp_path, name, content, reason):
    make_run(tmp_path / "whole", STATE)
    folder = make_run(tmp_path / "broken", STATE)
    (folder / name).unlink(missing_ok=True)
    if content is not None:
        (folder / name).write_bytes(content)
    runs = {run.name: run for run in list_runs(tmp_path)}
    assert runs["whole"].state == "running"
    assert runs["broken"].state == "damaged"
    assert reason in runs["broken"].reason
    text = text_of(list(runs.values()), width=200)
    assert "broken" in text
    assert reason in text


def test_a_file_that_is_a_folder_is_damage(tmp_path):
    (make_run(tmp_path / "one") / "state.json").mkdir()
    assert only(tmp_path).state == "damaged"


def test_a_run_s_own_folder_lists_that_run(tmp_path, monkeypatch):
    folder = make_run(tmp_path / "one", STATE)
    assert only(folder).name == "one"
    monkeypatch.chdir(folder)
    assert only(Path()).name == "one"


def test_what_is_no_folder_of_runs_is_one_clear_line(tmp_path):
    with pytest.raises(RunError, match="there is no folder"):
        list_runs(tmp_path / "none")
    (tmp_path / "file").write_text("")
    with pytest.raises(RunError, match="but a file"):
        list_runs(tmp_path / "file")


def test_an_empty_folder_says_how_to_begin(tmp_path):
    (tmp_path / ".hidden").mkdir()
    (tmp_path / "file").write_text("")
    assert list_runs(tmp_path) == []
    assert "lifeline train" in text_of([])


def test_the_run_heard_of_last_comes_first(tmp_path):
    for name, age in (("old", 500), ("new", 5), ("middle", 50)):
        make_run(tmp_path / name, STATE | {"status": "finished", "updated": time.time() - age})
    assert [run.name for run in list_runs(tmp_path)] == ["new", "middle", "old"]


def test_the_table_fits_eighty_columns(tmp_path):
    one = RunInfo("base3-20250101-120000", tmp_path, "interrupted", "", 12, 120_000, 13_700, -0.2, 500.5, 1000.0)
    bad = RunInfo("[bold]very-long-name-" + "x" * 60, tmp_path, "damaged", "no reason")
    lines = text_of([one, bad], now=1100.0).splitlines()
    assert all(len(line) <= 80 for line in lines[:-1])  # the last, a reason, may be as long as it likes
    assert lines[-1].endswith(": no reason")
    for part in ("interrupted", "120 000", "13 700", " 0 ", "500.5", "2 min ago", "[bold]"):
        assert part in "\n".join(lines)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(-5, "now"), (3, "now"), (60, "60 s ago"), (600, "10 min ago"), (7200, "2 h ago"), (864_000, "10 d ago")],
)
def test_ages_are_told_in_the_unit_that_fits(seconds, text):
    assert age_text(seconds) == text
