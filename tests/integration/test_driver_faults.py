"""The driver killed at its worst moments: every game that was on disk stays, none comes twice, the run goes on."""

import json
import signal
import subprocess
import sys

import pytest

from tiny_run import TINY, kill, lifeline, start, wait_for, write_config
from training import checkpoint
from training.shards import ShardStore
from training.trajectory import without_drills

WORKERS = {
    "workers": 2,
    "max_iterations": 20,
    "evaluation": TINY["evaluation"] | {"every_seconds": 0.2, "share": 0.5, "pairs": 2},
}

# Runs `lifeline` in a process that kills itself at the n-th call of one of its own functions.
DYING = """
import os, signal, sys
import training.{module} as module
owner, name = {owner}, {name!r}
original, calls = getattr(owner, name), 0

def dying(*arguments, **keywords):
    global calls
    calls += {condition}
    if calls == {number}:
        os.kill(os.getpid(), signal.SIGKILL)
    return original(*arguments, **keywords)

setattr(owner, name, dying)
sys.argv = ["lifeline", *{arguments!r}]
import lifeline.cli
lifeline.cli.main()
"""

MOMENTS = {
    "self-play": ("workers", "module.Cluster", "collect", 8, "True"),
    "learning": ("learner", "module.Learner", "_step", 30, "True"),
    "evaluation": ("workers", "module.Cluster", "rated", 2, "arguments[0].is_rating"),
    "a checkpoint write": ("checkpoint", "module", "write_atomic", 6, "True"),
    "a write of games": ("shards", "module", "write_atomic", 5, "True"),
}


def games_on_disk(run):
    return [game for shard in ShardStore(run / "games", 1e9).shards for game in shard.read()]


def ids_on_disk(run):
    """Of games and of drills."""
    return [game.game_id for game in games_on_disk(run)]


# One moment in every run of the tests, all of them in `make test-all`.
QUICK = {"a checkpoint write"}


@pytest.mark.parametrize("moment", [m if m in QUICK else pytest.param(m, marks=pytest.mark.slow) for m in MOMENTS])
def test_a_driver_killed_during(moment, tmp_path):
    module, owner, name, number, condition = MOMENTS[moment]
    run = tmp_path / "run"
    arguments = ["train", str(write_config(tmp_path, **WORKERS)), "--run-dir", str(run)]
    code = DYING.format(module=module, owner=owner, name=name, number=number, condition=condition, arguments=arguments)
    died = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=240, check=False)
    assert died.returncode == -signal.SIGKILL, died.stderr
    before = ids_on_disk(run)
    code, _, err = lifeline("train", "--resume", run)
    assert code == 0, err
    after = ids_on_disk(run)
    assert after[: len(before)] == before
    assert len(set(after)) == len(after)
    summary = json.loads((run / "summary.json").read_text())
    played = len(without_drills(games_on_disk(run)))
    assert summary["games"] == played < len(after)
    assert summary["iterations"] >= 20
    assert checkpoint.newest_whole(run / "checkpoints").counters["games"] == played
    assert not list((run / "checkpoints").glob(".*"))


def test_a_run_with_workers_is_rated_drawn_and_recorded(tmp_path):
    run = tmp_path / "run"
    process = start("train", write_config(tmp_path, **WORKERS | {"max_iterations": 100_000}), "--run-dir", run)
    wait_for(run / "ratings.jsonl", process, seconds=180)
    code, _, err = kill(process, signal.SIGTERM)
    assert code == 0, err
    summary = json.loads((run / "summary.json").read_text())
    assert any(name.startswith("iteration-") for name in summary["ratings"])
    assert summary["ratings"]["random"]["elo"] == 0
    assert (run / "elo.png").read_bytes().startswith(b"\x89PNG")
    games = [json.loads(line) for line in (run / "recent_games.jsonl").read_text().splitlines()]
    assert games
    assert {"id", "start", "moves", "winner"} <= set(games[-1])
    from lifeline import Position, Rules

    position = Position.parse(games[-1]["start"], Rules(3))
    for move in games[-1]["moves"]:
        position = position.play(move)
    assert position.winner == games[-1]["winner"]
    code, out, err = lifeline("runs", tmp_path)
    assert code == 0, err
    assert "stopped" in out
