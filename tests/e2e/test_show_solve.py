"""`lifeline show` and `lifeline solve`, from the command line to what is printed."""

import json
import os
import sys
import time
from xml.etree import ElementTree

import pytest

from lifeline import Position, Rules, cli
from lifeline.records import GameRecord, Result, write_records
from lifeline.render import board_text
from tiny_run import lifeline

if sys.platform != "win32":
    import pty
    import signal
    import subprocess

MIDGAME = "c4,g3 d6,f2 e5 e3 d3 c6 f5"


@pytest.fixture
def run(monkeypatch, capsys):
    """The command run in this process: (exit code, standard output, standard error)."""

    def call(*arguments):
        monkeypatch.setattr(sys, "argv", ["lifeline", *map(str, arguments)])
        with pytest.raises(SystemExit) as ended:
            cli.main()
        captured = capsys.readouterr()
        return ended.value.code, captured.out, captured.err

    return call


@pytest.fixture
def games(tmp_path):
    path = tmp_path / "games.jsonl.gz"
    played_out = ("a1", "swap", "e1", "a2", "e3")
    resigned = ("c4", "g3", "swap", "d6", "f2", "e5")
    write_records(
        path,
        [
            GameRecord(Rules(3, "weak_pie"), played_out, Result(0, "played out")),
            GameRecord(Rules(5), resigned, Result(0, "resigned")),
            GameRecord(Rules(3, "komi_pie", 2), ("a1",)),
        ],
    )
    return path


def midgame():
    position = Position.start(Rules(5))
    for move in MIDGAME.split():
        position = position.play(move)
    return position


def test_show_draws_the_position_after_moves():
    code, out, err = lifeline("show", "--base", "5", "--opening", "strong_pie", "--moves", MIDGAME)
    assert (code, err) == (0, "")
    assert out == board_text(midgame(), last=midgame().rules.board.cell("f5")) + "\n"


def test_show_draws_a_position_text_in_ascii(run):
    code, out, _ = run("show", "--base", 5, "--position", midgame().text(), "--ascii")
    assert code == 0
    assert out == board_text(midgame(), ascii=True) + "\n"


def test_show_draws_in_colours_in_a_terminal_only(run, monkeypatch):
    plain = run("show", "--moves", "a1,b3")[1]
    assert "\x1b" not in plain
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert "\x1b[1;38;5;231;48;5;137m(" in run("show", "--moves", "a1,b3")[1]
    monkeypatch.setenv("NO_COLOR", "1")
    assert run("show", "--moves", "a1,b3")[1] == plain


def test_show_writes_a_picture_with_everything_on_it(run, tmp_path):
    heat = tmp_path / "heat.json"
    heat.write_text('{"A1": 0.25, "e9": 1, "b2": null}')
    out = tmp_path / "board.svg"
    arguments = ("show", "--base", 5, "--moves", MIDGAME, "--labels", "--legal", "--heat", heat, "--svg")
    assert run(*arguments, out) == (0, f"{out}\n", "")
    code, text, _ = run(*arguments, "-")
    assert code == 0
    assert text == out.read_text()
    written = [element.text for element in ElementTree.fromstring(text).iter("{http://www.w3.org/2000/svg}text")]
    assert [t for t in written if t.endswith("%")] == ["100%", "25%"]
    assert "f5" in written


def test_show_reads_heat_from_a_list_too(run, tmp_path):
    heat = tmp_path / "heat.json"
    heat.write_text(json.dumps([0.5] + [None] * 17 + [0]))
    _, text, _ = run("show", "--moves", "", "--heat", heat, "--svg", "-")
    assert ">50%</text>" in text
    assert ">0%</text>" in text
    assert text.count("%</text>") == 2


def test_show_prints_data(run):
    code, out, err = run("show", "--base", 5, "--moves", MIDGAME, "--json")
    data, position = json.loads(out), midgame()
    assert (code, err) == (0, "")
    assert data["position"] == position.text()
    assert data["legal"] == position.legal_moves()
    assert data["to_play"] == {"seat": 1, "colour": "white"}
    assert data["turn"] == 7
    assert data["result"] is None
    assert data["last"] == ["f5"]
    assert data["rules"] == {"base": 5, "opening": "strong_pie", "komi": 0, "adjacent_setup": "allowed"}
    hanging = {"colour": "white", "cells": ["d6", "c6"], "alive": True, "regions": [0], "lifelines": [0]}
    assert hanging in data["groups"]
    assert [group["colour"] for group in data["groups"]].count("black") == 4
    (region,) = data["regions"]
    assert region["colours"] == ["black", "white"]
    assert len(region["cells"]) == 61 - 9


def test_show_and_its_data_know_the_winner_and_the_dead_of_an_opening(run):
    _, out, _ = run("show", "--opening", "weak_pie", "--moves", "a1 swap e1 a2 e3", "--json")
    assert json.loads(out)["result"] == {"winner": 0, "colour": "white", "reason": "played out"}
    assert json.loads(out)["legal"] == []
    _, out, _ = run("show", "--opening", "weak_pie", "--moves", "a1 e1", "--json")
    assert [group["alive"] for group in json.loads(out)["groups"]] == [False, False]


def test_a_first_turn_given_stone_by_stone_is_one_turn(run):
    for moves in ("b1,d3", "b1 d3", "1. b1,d3"):
        assert json.loads(run("show", "--moves", moves, "--json")[1])["last"] == ["b1", "d3"]


def test_show_draws_games_of_a_file_by_number_and_turn(run, games):
    data = json.loads(run("show", "--record", games, "--json")[1])
    assert data["result"] == {"winner": 0, "colour": "white", "reason": "played out"}
    code, out, _ = run("show", "--record", games, "--game", 2)
    assert code == 0
    assert out.endswith("turn 4\nthe record: seat 0 has won, resigned\n")
    after_swap = json.loads(run("show", "--record", games, "--game", 2, "--turn", 1, "--json")[1])
    assert after_swap["last"] == ["swap"]
    assert after_swap["to_play"] == {"seat": 0, "colour": "white"}
    assert after_swap["result"] is None
    second = json.loads(run("show", "--record", games, "--game", 2, "--turn", 2, "--json")[1])
    assert second["last"] == ["d6", "f2"]
    assert json.loads(run("show", "--record", games, "--game", 3, "--turn", 0, "--json")[1])["rules"]["komi"] == 2


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["show"], "exactly one of --moves, --position and --record, not none"),
        (["show", "--moves", "a1", "--position", "x"], "not --moves and --position"),
        (["show", "--moves", "b1,d3 b1"], "moves: line 1, column 7: ply 3: illegal move: b1"),
        (["show", "--moves", "b1,d3 z9"], "no cell 'z9'"),
        (["show", "--position", "3/4/5 b 0 0 - 0"], "base 3 has 5 rows, not 3"),
        (["show", "--position", ""], "six fields"),
        (["show", "--base", "13", "--moves", ""], "3 to 12, not 13"),
        (["show", "--opening", "hex", "--moves", ""], "opening must be one of"),
        (["show", "--komi", "3", "--moves", ""], "komi is for komi_pie only"),
        (["show", "--adjacent-setup", "no", "--moves", ""], "allowed or forbidden"),
        (["show", "--record", "none.jsonl"], "none.jsonl: cannot be read: No such file"),
        (["show", "--record", "GAMES", "--base", "3"], "no --base and so on with --record"),
        (["show", "--record", "GAMES", "--game", "4"], "has 3 games, and no game 4"),
        (["show", "--record", "GAMES", "--game", "0"], "--game"),
        (["show", "--record", "GAMES", "--turn", "9"], "game 1 has turns 0 to 4, and no position after 9"),
        (["show", "--moves", "", "--turn", "0"], "go with --record"),
        (["show", "--moves", "", "--labels"], "go with --svg"),
        (["show", "--moves", "", "--legal"], "go with --svg"),
        (["show", "--moves", "", "--heat", "HEAT"], "go with --svg"),
        (["show", "--moves", "", "--svg", "-", "--json"], "not with --svg -"),
        (["show", "--moves", "", "--svg", "-", "--ascii"], "not with --svg"),
        (["show", "--moves", "", "--ascii", "--json"], "not with --ascii"),
        (["show", "--moves", "", "--svg", "no/folder/x.svg"], "no/folder/x.svg: cannot be written: No such file"),
        (["show", "--moves", "", "--svg", "-", "--heat", "none.json"], "none.json: cannot be read: No such file"),
        (["solve"], "exactly one of --moves, --position and --openings, not none"),
        (["solve", "--openings", "--moves", "a1"], "not --moves and --openings"),
        (["solve", "--position", "nonsense"], "six fields"),
        (["solve", "--openings", "--base", "2"], "3 to 12, not 2"),
        (["solve", "--openings", "--nodes", "0"], "--nodes"),
        (["solve", "--openings", "--seconds", "-1"], "--seconds"),
    ],
)
def test_bad_input_gets_one_line_and_a_non_zero_exit(run, games, arguments, message):
    code, out, err = run(*[str(games) if a == "GAMES" else a for a in arguments])
    assert code in (1, 2)
    assert out == ""
    assert err.startswith("lifeline: ")
    assert message in err
    assert err.count("\n") == 1


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"{'a1': 1}", "line 1, column 2: no JSON"),
        (b'{"a1": 1,\n "a2": }', "line 2, column 8: no JSON"),
        (b"\xff\xfe", "no JSON"),
        (b"[" * 100_000, "no JSON"),
        (b"3", "a list of numbers or an object of them, not int"),
        (b"[0.5]", "has 19 cells, and the list 1 numbers"),
        (b'{"z9": 1}', "no cell 'z9'"),
        (b'{"a1": 1.5}', "a1 must have a number from 0 to 1, not 1.5"),
        (b'{"a1": NaN}', "a1 must have a number from 0 to 1, not nan"),
        (b'{"a1": true}', "not True"),
        (b'{"a1": {"b": 1}}', "a1 must have a number from 0 to 1, not"),
        (b'{"a1": 0, "A1": 1}', "a1 is there 2 times"),
    ],
)
def test_a_bad_heat_file_gets_one_line_that_names_it(run, tmp_path, text, message):
    heat = tmp_path / "heat.json"
    heat.write_bytes(text)
    code, out, err = run("show", "--moves", "", "--svg", "-", "--heat", heat)
    assert (code, out) == (1, "")
    assert err.startswith(f"lifeline: {heat}: ")
    assert message in err
    assert err.count("\n") == 1


def test_a_damaged_record_names_file_and_line(run, tmp_path):
    path = tmp_path / "bad.jsonl"
    line = '{"version": 1, "base": 3, "opening": "strong_pie", "moves": ["a1", "a1"], "winner": null, "reason": null}'
    path.write_text(line + "\n")
    code, _, err = run("show", "--record", path)
    assert code == 1
    assert f"{path}: line 1: ply 2: illegal move: a1" in err
    assert err.count("\n") == 1


def test_solve_finds_value_and_winning_moves(run):
    code, out, err = run("solve", "--base", 3, "--position", "3/3w/w2b1/1b1b/1w1 b 4 0 s 0", "--json")
    data = json.loads(out)
    assert (code, err) == (0, "")
    assert (data["value"], data["winning"], data["undecided"]) == (1, ["e2", "d1", "b1", "a1"], [])
    assert data["nodes"] > 1_000
    assert data["seconds"] > 0


def test_solve_speaks_in_lines(run):
    code, out, _ = run("solve", "--opening", "weak_pie", "--moves", "a1 swap e1 a2 e3")
    assert (code, out.splitlines()[:2]) == (0, ["value: the player to move loses", "winning moves: none"])
    code, out, _ = run("solve", "--base", 5, "--moves", "c4,e2", "--nodes", 200)
    lines = out.splitlines()
    assert (code, lines[:2]) == (0, ["value: not known", "winning moves: none known"])
    assert lines[2].startswith("undecided: i1 i2 ")
    assert lines[2].endswith(" swap")
    assert lines[3].startswith("nodes: 2")


def test_solve_winning_moves_win(run):
    position = Position.parse("w1b/1b1b/w4/2w1/b1w b 6 0 - 0", Rules(3))
    data = json.loads(run("solve", "--position", position.text(), "--json")[1])
    assert (data["value"], data["winning"]) == (1, ["b2"])
    for move in position.legal_moves():
        after = position.play(move)
        value = json.loads(run("solve", "--position", after.text(), "--json")[1])["value"]
        assert (value == -1) == (move in data["winning"])


def test_a_limit_is_told_as_null(run):
    code, out, _ = run("solve", "--base", 5, "--moves", "", "--seconds", "0.1", "--json")
    data = json.loads(out)
    assert (code, data["value"], data["winning"]) == (0, None, [])
    assert len(data["undecided"]) == 61


def test_openings_under_a_limit_are_counted_as_undecided(run):
    code, out, _ = run("solve", "--openings", "--base", 4, "--nodes", 1000, "--json")
    data = json.loads(out)
    assert code == 0
    assert data["first_turns"] == data["black"] + data["white"] + data["undecided"] == 576
    assert data["undecided"] > 0
    code, out, _ = run("solve", "--openings", "--opening", "weak_pie", "--nodes", 100)
    assert out.splitlines()[0] == "first turns of Black, base 3, weak_pie, no swap: 19"
    assert "undecided: " in out


@pytest.mark.slow
def test_openings_of_base_3_are_counted(run):
    code, out, _ = run("solve", "--base", 3, "--openings")
    assert code == 0
    assert out.splitlines()[1:3] == ["Black wins: 96", "White wins: 33"]


@pytest.mark.skipif(sys.platform == "win32", reason="needs a pseudo-terminal")
@pytest.mark.parametrize("what", [["--moves", ""], ["--openings"]])
def test_ctrl_c_ends_a_solve_within_a_second_with_what_is_known(what):
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "lifeline.cli", "solve", "--base", "5", "--json", *what],
        stdout=subprocess.PIPE,
        stderr=theirs,
        text=True,
    )
    try:
        seen = ""
        while "Ctrl-C" not in seen:  # the search begins
            seen += os.read(ours, 1000).decode()
        time.sleep(0.5)
        began = time.monotonic()
        process.send_signal(signal.SIGINT)
        line = process.stdout.readline()
        assert time.monotonic() - began < 1
        out, _ = process.communicate(timeout=20)
        assert out == ""
        assert process.returncode == 130
    finally:
        process.kill()
        process.wait()
        os.close(ours)
        os.close(theirs)
    data = json.loads(line)
    if what == ["--openings"]:
        assert data["first_turns"] == 1674
        assert data["undecided"] > 0
    else:
        assert data["value"] is None
        assert len(data["undecided"]) == 61
    assert data["nodes"] > 0
