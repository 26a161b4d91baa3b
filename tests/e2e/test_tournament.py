"""`lifeline tournament` as a person uses it: played, killed, gone on with, stopped by a test, refused."""

import contextlib
import json
import os
import secrets
import signal
import sys
import time
from pathlib import Path

import pytest

from lifeline import Rules
from lifeline.records import read_records
from tiny_run import start

GAME = ("--base", "3", "--seed", "3")


def run(*arguments, code=0):
    process = start("tournament", *arguments)
    out, err = process.communicate(timeout=240)
    assert process.returncode == code, err
    return out, err


def games_of(folder):
    return {r.id: r.moves for r in read_records(folder / "games.jsonl")}


def test_a_tournament_is_played_and_reported(tmp_path):
    out, _ = run(
        "random", "rollout:20", "strong=rollout:200", "--games", "20", "--workers", "0", "--out", tmp_path / "t", *GAME
    )
    assert "60 games on base 3" in out
    assert len(games_of(tmp_path / "t")) == 60
    assert out.index("strong") < out.index("rollout:20") < out.rindex("random")
    found = json.loads((tmp_path / "t" / "standings.json").read_text())
    assert [p["name"] for p in found["players"]] == ["strong", "rollout:20", "random"]
    assert (tmp_path / "t" / "ratings.png").read_bytes().startswith(b"\x89PNG")
    assert "<html" in (tmp_path / "t" / "report.html").read_text()


def kill_when(process, path, lines, number=signal.SIGKILL):
    """Kill a process as soon as a file has so many lines."""
    deadline = time.monotonic() + 120
    while not path.exists() or path.read_bytes().count(b"\n") < lines:
        assert process.poll() is None, process.stderr.read()
        assert time.monotonic() < deadline
        time.sleep(0.02)
    process.send_signal(number)
    process.wait(timeout=60)
    process.stdout.close()
    process.stderr.close()


@pytest.mark.parametrize("workers", ["0", pytest.param("2", marks=pytest.mark.slow)])
def test_a_killed_tournament_goes_on_without_a_game_lost_or_played_twice(tmp_path, workers):
    players = ("rollout:300", "rollout:100", "solver@0.02s")
    arguments = (*players, "--games", "12", "--workers", workers, *GAME, "--gauntlet")
    process = start("tournament", *arguments, "--out", tmp_path / "t")
    kill_when(process, tmp_path / "t" / "games.jsonl", 14)
    before = games_of(tmp_path / "t")
    assert 14 <= len(before) < 24
    out, _ = run("--resume", tmp_path / "t", "--workers", workers)
    assert f"{len(before)} of them have been played already" in out
    after = games_of(tmp_path / "t")
    assert len(after) == 24
    assert len(list(read_records(tmp_path / "t" / "games.jsonl"))) == 24
    assert all(after[name] == moves for name, moves in before.items())


def test_ctrl_c_keeps_what_has_been_played_and_says_how_to_go_on(tmp_path):
    process = start(
        "tournament", "rollout:2000", "solver", "--games", "40", "--workers", "0", *GAME, "--out", tmp_path / "t"
    )
    path = tmp_path / "t" / "games.jsonl"
    deadline = time.monotonic() + 120
    while not path.exists() or path.read_bytes().count(b"\n") < 2:
        assert time.monotonic() < deadline
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert err.strip() == f"stopped; go on with: lifeline tournament --resume {tmp_path / 't'}"
    assert (tmp_path / "t" / "report.html").exists()


def test_a_sequential_test_stops_by_itself_and_stays_stopped(tmp_path):
    arguments = ("rollout:200", "random", "--games", "400", "--sprt", "0,50", "--workers", "0", *GAME)
    out, _ = run(*arguments, "--out", tmp_path / "t")
    played = len(games_of(tmp_path / "t"))
    assert 10 < played < 400
    assert "elo1 accepted" in out
    out, _ = run("--resume", tmp_path / "t", "--sprt", "0,50", "--workers", "0")
    assert len(games_of(tmp_path / "t")) == played
    assert "elo1 accepted" in out


def worker_of(mark):
    """A worker of the tournament that was started with a mark in its environment."""
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            name, environment = (folder / "cmdline").read_bytes(), (folder / "environ").read_bytes()
            if b"ray::_MatchWorker" in name and f"LIFELINE_TEST={mark}".encode() in environment:
                return int(folder.name)
    raise AssertionError("no worker found")


@pytest.mark.slow
def test_a_worker_that_is_killed_is_replaced(tmp_path, monkeypatch):
    monkeypatch.setenv("LIFELINE_TEST", mark := secrets.token_hex(8))  # its workers inherit it
    process = start(
        "tournament", "rollout:3000", "rollout:2000", "--games", "40", "--workers", "2", *GAME, "--out", tmp_path / "t"
    )
    path = tmp_path / "t" / "games.jsonl"
    deadline = time.monotonic() + 120
    while not path.exists():
        assert time.monotonic() < deadline
        time.sleep(0.05)
    os.kill(worker_of(mark), signal.SIGKILL)
    _, err = process.communicate(timeout=240)
    assert process.returncode == 0, err
    assert len(games_of(tmp_path / "t")) == 40


def test_our_own_engine_plays_as_a_program(tmp_path):
    engine = f"gtp:{sys.executable} -m lifeline.cli gtp --player rollout:50 --seed 1"
    out, _ = run("random", f"engine={engine}", "--games", "4", "--workers", "0", *GAME, "--out", tmp_path / "t")
    assert "engine" in out
    records = list(read_records(tmp_path / "t" / "games.jsonl"))
    assert len(records) == 4
    assert {r.result.reason for r in records} == {"played out"}
    assert all(r.seconds_used is not None for r in records)


CHEATS = """
import sys, time
for line in sys.stdin:
    words = line.split()
    number = words.pop(0) if words and words[0].isdigit() else ""
    known = ("boardsize", "clear_board", "play", "genmove", "name", "protocol_version", "list_commands")
    answers = {"protocol_version": "2", "name": "cheat", "list_commands": "\\n".join(known)}
    if words and words[0] == "genmove":
        BEHAVIOUR
    print(f"={number} {answers.get(words[0], '') if words else ''}\\n", flush=True)
"""


@pytest.mark.parametrize(
    ("behaviour", "reason", "says"),
    [
        ("answers['genmove'] = 'a99'", "illegal move", "a99"),
        pytest.param("sys.exit(3)", "adjudicated", "3", marks=pytest.mark.slow),
        pytest.param("time.sleep(100)", "time", "", marks=pytest.mark.slow),
    ],
)
def test_a_program_that_misbehaves_loses_its_games_and_the_tournament_goes_on(tmp_path, behaviour, reason, says):
    (tmp_path / "cheat.py").write_text(CHEATS.replace("BEHAVIOUR", behaviour))
    cheat = f"cheat=gtp:{sys.executable} {tmp_path / 'cheat.py'}@1s"
    out, _ = run("random", cheat, "rollout:5", "--games", "2", "--workers", "0", *GAME, "--out", tmp_path / "t")
    records = list(read_records(tmp_path / "t" / "games.jsonl"))
    assert len(records) == 6
    lost = [r for r in records if "cheat" in (r.players[0].name, r.players[1].name)]
    assert {r.result.reason for r in lost} == {reason}
    assert all(r.players[1 - r.result.winner].name == "cheat" for r in lost)
    assert all(says in r.extra["detail"] for r in lost)
    assert "4" in out


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ((), "--out DIR"),
        (("random", "--out", "x"), "two players at least"),
        (("random", "nobody", "--out", "x"), "no player 'nobody'"),
        (("random", "rollout:5", "--games", "3", "--out", "x"), "must be even"),
        (("random", "rollout:5", "--sprt", "5", "--out", "x"), "--sprt takes two numbers"),
        (("random", "rollout:5", "--sprt", "10,0", "--out", "x"), "elo0"),
        (("random", "rollout:5", "solver", "--sprt", "0,5", "--workers", "0", "--out", "x"), "two players, not of 3"),
        (("random", "rollout:5", "--anchor", "you", "--out", "x"), "--anchor takes one of random, rollout:5"),
        (("random", "rollout:5", "--base", "30", "--out", "x"), "base"),
        (("random", "rollout:5", "--workers", "-1", "--out", "x"), "--workers takes"),
        (("random", "rollout:5", "--simulations", "4", "--seconds-per-move", "1", "--out", "x"), "not by both"),
        (("random", "gtp:/nowhere/prog", "--workers", "0", "--out", "x"), "/nowhere/prog"),
        (("random", "rollout:5", "--book", "none.json", "--out", "x"), "none.json: cannot be read"),
        (("random", "rollout:5", "--workers", "0", "--address", "auto", "--out", "x"), "--address is of no use"),
        (("--resume", "nowhere"), "nowhere holds no tournament"),
        (("--resume", ".", "--base", "4"), "as it was begun"),
    ],
)
def test_wrong_input_gets_one_clear_line(here, tmp_path, monkeypatch, arguments, says):
    monkeypatch.chdir(tmp_path)
    code, _, err = here("tournament", *arguments)
    assert code in (1, 2)
    assert err.startswith("lifeline: ")
    assert err.count("\n") == 1
    assert says in err


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ((), "give exactly one of"),
        (("--rollouts", "5", "--simulations", "9"), "--simulations are those of --model"),
        (("--rollouts", "5", "--turns", "20", "--count", "2"), "none has lasted for 20 turns"),
        (("--rollouts", "5", "--out", "nowhere/b.json"), "nowhere/b.json: cannot be written"),
        (("--rollouts", "5", "--out", "."), "it is a directory"),
    ],
)
def test_a_book_that_cannot_be_made_is_refused_in_one_line(here, tmp_path, monkeypatch, arguments, says):
    monkeypatch.chdir(tmp_path)
    code, _, err = here("book", "--out", "b.json", *arguments)
    assert code in (1, 2)
    assert err.startswith("lifeline: ")
    assert err.count("\n") == 1
    assert says in err


def test_a_book_is_made_and_played_from(tmp_path):
    made = start("book", "--base", "4", "--rollouts", "20", "--count", "5", "--out", tmp_path / "b.json")
    out, _ = made.communicate(timeout=120)
    assert "5 openings of base 4, strong_pie" in out
    run(
        "random",
        "rollout:5",
        "--games",
        "10",
        "--base",
        "4",
        "--book",
        tmp_path / "b.json",
        "--workers",
        "0",
        "--out",
        tmp_path / "t",
    )
    book = {tuple(o["moves"].split()) for o in json.loads((tmp_path / "b.json").read_text())["openings"]}
    assert {moves[:4] for moves in games_of(tmp_path / "t").values()} == book
    process = start("tournament", "random", "rollout:5", "--book", tmp_path / "b.json", "--out", tmp_path / "u")
    _, err = process.communicate(timeout=60)
    assert f"is of {Rules(4)}, not of {Rules(3)}" in err
