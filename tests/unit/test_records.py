"""Game records: what is damaged is refused by file, line, column and reason; nothing is passed over in silence."""

import dataclasses
import gzip
import io
import json
import logging
import pickle
import re
import tracemalloc
from pathlib import Path

import numpy as np
import pytest

from game_records import played_out
from lifeline import LifelineError, Position, RecordError, Rules
from lifeline.game_record import MAX_PLIES
from lifeline.kernels import encode_position
from lifeline.movelist import MAX_MOVE_LIST, import_moves
from lifeline.record_json import MAX_LINE, format_record, parse_record
from lifeline.records import GameRecord, PlayerInfo, Result, append_records, read_records, survey, write_records
from tiny_run import lifeline

RULES = Rules(3)
RECORD = played_out(RULES, 1)
LINE = format_record(RECORD)
LOSER = 1 - RECORD.result.winner
UNFINISHED = GameRecord(RULES, ("a1", "b4", "swap", "c1", "e1"))
ROOT = Path(__file__).parents[2]


def changed(record=UNFINISHED, **fields):
    """The line of a record with some of its keys given other values, None for taken away."""
    value = json.loads(format_record(record)) | fields
    return json.dumps({k: v for k, v in value.items() if v is not ...})


def test_the_example_of_the_documentation_is_a_record():
    block = re.findall(r"```json\n(.*?)```", (ROOT / "docs/records.md").read_text(), re.DOTALL)[0]
    record = parse_record(block.replace("\n", " "))
    assert record.result == Result(0, "resigned")
    assert record.players[0] == PlayerInfo("bot", {"simulations": 64})


def test_the_documentation_names_every_key_and_no_other():
    from lifeline.record_json import _KEYS, _REQUIRED

    rows = re.findall(r"^\| `(\w+)`( \*)? \|", (ROOT / "docs/records.md").read_text(), re.MULTILINE)
    assert {name for name, _ in rows} == set(_KEYS)
    assert {name for name, star in rows if star} == set(_REQUIRED)


@pytest.mark.parametrize(
    ("line", "at", "says"),
    [
        ("", "", "not JSON"),
        ("[1]", "[", "a record is a JSON object"),
        (changed()[:-1], None, "not JSON"),
        (changed() + "x", "x", "not JSON: Extra data"),
        (changed(version=2), "2, ", "version 1 is read here, not 2"),
        (changed(version=True), "true", "version 1 is read here"),
        (changed(version=...), "{", "version 1 is read here, not None"),
        (changed(moves=...), "{", "the key moves is missing"),
        (changed(winner=...), "{", "the key winner is missing"),
        (changed(speed=77), "77", "unknown key 'speed'"),
        ('{"version": 1, "version": 1}', "{", "appears twice, such as 'version'"),
        (changed(extra={"a": 1}).replace('"a": 1', '"a": 1, "a": 2'), "{", "appears twice, such as 'a'"),
        (changed(base=2), "2, ", "base must be a whole number from 3 to 12, not 2"),
        (changed(base=3.0), "3.0", "base must be a whole number"),
        (changed(base=10**400), "1000", "not a huge number"),
        (changed(opening="hex"), '"hex"', "opening must be one of"),
        (changed(komi=5), "5, ", "komi is for komi_pie only"),
        (changed(adjacent_setup="forbidden"), '"forbidden"', "adjacent_setup is for weak_pie"),
        (changed(start="3/4/5/4/3 w 0 0 - 0"), '"3/4/5/4/3 w', "colour must be b after 0 turns"),
        (changed(start=5), "5}", "start must be a position text"),
        (changed(players=[{"name": "a"}]), '[{"name"', "there are two players, not 1"),
        (changed(players=[{"name": "a"}, {}]), "{}", "a player is an object with a name"),
        (changed(players=[{"name": "a"}, {"name": ""}]), '""', "name of player 1 must be a text of 1 to 200"),
        (changed(players=[{"name": "a"}, {"name": 8}]), "8}", "name of player 1 must be a text of 1 to 200"),
        (changed(moves="a1"), '"a1"', "moves must be a list"),
        (changed(moves=["a1", 4]), "4]", "a move is a text, not 4"),
        (changed(moves=["a1", "z9"]), '"z9"', "ply 2: no cell 'z9'"),
        (changed(moves=["a1", "pass"]), '"pass"', "ply 2: no cell 'pass'"),
        (changed(moves=["a1,b4", "c1", "d4", "A1"]), '"A1"', "ply 5: illegal move: a1 in "),
        (changed(moves=["a1"] * (MAX_PLIES + 1)), '["a1", "a1"', "4001 plies are more than 4000"),
        (changed(values=[0.5]), "[0.5]", "values has 1 entries for 5 plies"),
        (changed(values=[0, None, 1, -1, 1.5]), "1.5]", "values of ply 5: a number from -1 to 1, not 1.5"),
        (changed(values=[0, None, 1, -1, True]), "true]", "values of ply 5: a number from -1 to 1, not True"),
        (changed(values=[0, 0, 0, 0, 9]).replace("9]", "NaN]"), "{", "NaN is no number of JSON"),
        (changed(values=[0, 0, 0, 0, 9]).replace("9]", "1e999]"), "1e999", "values of ply 5"),
        (changed(visits=[0, 0, 0, 7.5, 0]), "7.5", "visits of ply 4: a whole number"),
        (changed(visits=[0, 0, 0, -7, 0]), "-7", "visits of ply 4: a whole number"),
        (changed(seconds_left=[0, 0, 0, -7, 0]), "-7", "seconds_left of ply 4"),
        (changed(seconds_used=[0, 0, 0, 1e10, 0]), "10000000000", "seconds_used of ply 4"),
        (changed(winner=0), "null", "winner and reason are both null"),
        (changed(winner=2, reason="resigned"), "2, ", "the winner is seat 0 or 1, not 2"),
        (changed(winner=1, reason="bored"), '"bored"', "a reason is one of played out"),
        (changed(winner=1, reason="played out"), '"played out"', "not played out: the game goes on in "),
        (changed(winner=1, reason="time"), "1, ", None),
        (changed(RECORD, winner=LOSER), None, f"the board says that seat {1 - LOSER} won, played out"),
        (changed(RECORD, reason="resigned"), '"resigned"', "the result: seat"),
        (changed(RECORD, winner=None, reason=None), "null", "the result: none"),
        (changed(RECORD, moves=[*RECORD.moves, "c3"]), '"c3"]', "the game is over: c3 in "),
        (changed(id=""), '""', "id must be a text of 1 to 200"),
        (changed(date="yesterday"), '"yesterday"', "a date is ISO 8601"),
        (changed(date="2026-02-30"), '"2026-02-30"', "a date is ISO 8601"),
        (changed(seed=-4), "-4", "a seed is a whole number"),
        (changed(seed=2**64), "1844", "a seed is a whole number"),
        (changed(extra=[]), "[]", "extra must be an object"),
        (changed(extra={"a": {"b": [7, 2**70]}}), "1180", "a whole number beyond 64 bits"),
        (changed(extra={"a": 6}).replace("6}", "1e999}"), "1e999", "not finite"),
        (changed(extra={"a": 6}).replace("6}", "6" * 5000 + "}"), "{", "not a record: Exceeds the limit"),
        (changed(extra={"a": 6}).replace("6}", "[" * 17 + "]" * 17 + "}"), None, "nested more than 16 deep"),
        (changed(extra={"a": 6}).replace("6}", "[" * 99_999), "{", "not a record: nested too deeply"),
        ("\x00" * 100, "\x00", "not JSON"),
        ("\ufeff" + changed(), "\ufeff", "not JSON"),
    ],
)
def test_damage_is_named_with_line_column_and_reason(line, at, says):
    if says is None:  # the seat to move: neither may win by time in the other's place
        parse_record(line.replace('"winner": 1', '"winner": 0'))
        says = "cannot have won by time"
    with pytest.raises(RecordError, match=re.escape(says)) as caught:
        parse_record(line, "games.jsonl", 7)
    error = caught.value
    assert str(error) == f"games.jsonl: line 7, column {error.column}: {error.reason}"
    assert "\n" not in str(error)
    assert len(str(error)) < 700
    if at is not None:
        assert line[error.column - 1 :].startswith(at)


def test_records_are_held_against_the_board_when_made():
    with pytest.raises(RecordError, match="ply 6: illegal move"):
        dataclasses.replace(UNFINISHED, moves=(*UNFINISHED.moves, "a1"))
    with pytest.raises(RecordError, match="one cell, swap or komi in lower case"):
        dataclasses.replace(UNFINISHED, moves=("A1",))
    with pytest.raises(RecordError, match="one cell, swap or komi in lower case"):
        dataclasses.replace(UNFINISHED, moves=("a1,b4",))
    with pytest.raises(RecordError, match="two players"):
        dataclasses.replace(UNFINISHED, players=(PlayerInfo("a"),))
    with pytest.raises(RecordError, match="cannot have the key name"):
        dataclasses.replace(UNFINISHED, players=(PlayerInfo("a"), PlayerInfo("b", {"name": 1})))
    with pytest.raises(RecordError, match="JSON has no word for: tuple"):
        dataclasses.replace(UNFINISHED, extra={"a": (1, 2)})
    with pytest.raises(RecordError, match="must be texts, not 1"):
        dataclasses.replace(UNFINISHED, extra={1: 2})
    with pytest.raises(RecordError, match="values of ply 1"):
        dataclasses.replace(UNFINISHED, values=(float("nan"),) * 5)


def test_what_is_believed_is_not_played_but_its_form_is_checked():
    record = GameRecord(RULES, ("a1", "a1"), Result(0, "played out"), replay=False)
    assert parse_record(format_record(record), replay=False) == record
    with pytest.raises(RecordError, match="ply 2: illegal move"):
        list(record.positions())
    with pytest.raises(RecordError, match="values has 1 entries"):
        GameRecord(RULES, ("a1", "a1"), values=(0.0,), replay=False)


def test_errors_travel_between_processes():
    for make in (lambda: parse_record("{", "f", 3), lambda: dataclasses.replace(UNFINISHED, id="")):
        with pytest.raises(RecordError) as caught:
            make()
        again = pickle.loads(pickle.dumps(caught.value))
        assert (str(again), again.reason, again.line) == (str(caught.value), caught.value.reason, caught.value.line)


def test_a_record_too_long_for_a_line_is_not_written():
    with pytest.raises(RecordError, match="999999 are the most"):
        format_record(dataclasses.replace(UNFINISHED, extra={"a": "x" * MAX_LINE}))


def damaged_file(path):
    """Five lines, the second, third and fourth damaged; the third longer than any record."""
    lines = [LINE.encode(), b'{"version": 1', b"x" * (2 * MAX_LINE + 5), b"\xc3\xa9\xff", LINE.encode()]
    path.write_bytes(b"\n".join(lines) + b"\n")
    return path


def test_the_reader_stops_at_damage_or_reports_it_and_goes_on(tmp_path):
    path = damaged_file(tmp_path / "games.jsonl")
    games = read_records(path)
    assert next(games) == RECORD
    with pytest.raises(RecordError, match="line 2, column 15: not JSON"):
        next(games)
    errors = []
    assert list(read_records(path, on_error=errors.append)) == [RECORD, RECORD]
    assert [(e.line, e.column) for e in errors] == [(2, 15), (3, MAX_LINE), (4, 2)]
    assert [e.reason.split(":")[0] for e in errors] == [
        "not JSON",
        "longer than 1000000 characters",
        "not a text in UTF-8",
    ]


def test_a_line_cut_off_by_a_kill_is_called_so(tmp_path):
    path = tmp_path / "games.jsonl"
    path.write_text(LINE + "\n" + LINE[:50])
    with pytest.raises(RecordError, match="line 2, column 51: the last line is cut off: not JSON"):
        list(read_records(path))
    path.write_text(LINE + "\n" + LINE)  # only its end is missing
    assert list(read_records(path)) == [RECORD, RECORD]
    path.write_text("")
    assert list(read_records(path)) == []


@pytest.mark.parametrize(
    ("damage", "says"),
    [
        (lambda data: data[:-20], "the compressed file is cut off"),
        (lambda data: data[:3], "the compressed file is cut off"),
        (lambda data: data[:40] + b"\xff\xff\xff\xff" + data[44:], "the compressed file is damaged"),
        (lambda data: data[:-8] + b"\x00" * 8, "the compressed file is damaged"),
        (lambda data: data + b"abc", "the compressed file is damaged"),
        (lambda data: b"no gzip at all", "the compressed file is damaged"),
    ],
)
def test_damaged_compression_is_never_the_end_of_the_file(tmp_path, damage, says):
    path = tmp_path / "games.jsonl.gz"
    write_records(path, [played_out(RULES, seed) for seed in range(30)])
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(RecordError, match=says):
        list(read_records(path))
    errors = []
    list(read_records(path, on_error=errors.append))
    assert says in str(errors[-1])
    with pytest.raises(RecordError, match="nothing can be added to it"):
        append_records(path, [RECORD])


def test_files_that_cannot_be_read_or_written_are_named(tmp_path):
    for path in (tmp_path / "missing.jsonl", tmp_path / "missing.jsonl.gz", tmp_path):
        with pytest.raises(RecordError, match="cannot be read") as caught:
            list(read_records(path))
        assert str(path) in str(caught.value)
    for write in (write_records, append_records):
        with pytest.raises(RecordError, match=r"no/games.jsonl: cannot be written"):
            write(tmp_path / "no" / "games.jsonl", [RECORD])


def test_a_file_is_written_whole_or_not_at_all(tmp_path):
    def failing():
        yield RECORD
        raise KeyError("stopped")

    for name in ("games.jsonl", "games.jsonl.gz"):
        path = tmp_path / name
        write_records(path, [RECORD] * 2)
        with pytest.raises(KeyError):
            write_records(path, failing())
        assert list(read_records(path)) == [RECORD] * 2
        before = path.read_bytes()
        write_records(path, [RECORD] * 2)
        assert path.read_bytes() == before
    assert len(list(tmp_path.iterdir())) == 2


def test_added_lines_are_whole_even_behind_a_killed_writer(tmp_path, caplog):
    path = tmp_path / "games.jsonl"
    append_records(path, [RECORD])
    path.write_text(path.read_text() + LINE[:99])
    with caplog.at_level(logging.WARNING):
        append_records(path, [UNFINISHED])
    assert "the last line was cut off and is removed" in caplog.text
    assert list(read_records(path)) == [RECORD, UNFINISHED]
    path.write_text(path.read_text().rstrip("\n"))
    append_records(path, [RECORD])
    assert list(read_records(path)) == [RECORD, UNFINISHED, RECORD]
    path.write_bytes(b"x" * (MAX_LINE + 1))
    with pytest.raises(RecordError, match="longer than"):
        append_records(path, [RECORD])
    assert path.stat().st_size == MAX_LINE + 1


def test_memory_does_not_grow_with_the_number_of_games(tmp_path):
    path = tmp_path / "games.jsonl.gz"
    peaks = []
    for count in (200, 1200):
        write_records(path, (RECORD for _ in range(count)))
        tracemalloc.start()
        assert sum(1 for _ in read_records(path, replay=False)) == count
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < peaks[0] + 200_000


def test_a_file_is_summed_up_in_a_line():
    text = "\n".join([LINE, changed(winner=0, reason="adjudicated"), format_record(UNFINISHED), "{", ""])
    told = []
    line, errors = survey(io.StringIO(text), "games", told.append)
    first = 1 + (RECORD.result.winner == 0)
    share = "50.0" if first == 1 else "100.0"
    plies = len(RECORD.moves) + 10
    assert line == f"games: 3 games, {plies} plies, first seat won {first} of 2 ({share} %), 1 unfinished, 1 errors"
    assert errors == len(told) == 1


def test_move_lists_are_read_with_numbers_and_pairs():
    for text in (
        "a1,b4 swap c1,e1",
        "1. a1,b4\n2. swap\n3. c1,e1\n",
        "1.A1 2.b4 SWAP\r\n c1 e1",
        "1... a1,b4 swap c1 , e1",
    ):
        if " , " in text:
            with pytest.raises(RecordError, match="ply 5: a move is a cell"):
                import_moves(text, RULES)
        else:
            assert import_moves(text, RULES) == UNFINISHED


@pytest.mark.parametrize(
    ("text", "place", "says"),
    [
        ("a1,b4\n c1,z9", (2, 2), "ply 3: no cell 'z9'"),
        ("1. a1,b4 2.c1,a1", (1, 12), "ply 3: illegal move: a1"),
        ("a1,b4\nswap swap", (2, 6), "ply 4: illegal move: swap"),
        ("a1,b4 c1,d4 e3,e1", (1, 13), "ply 5: illegal move: e3,e1 in .*, where one stone is due"),
        (b"a1,b4\n\xc3\xa9 \xff", (2, 3), "not a text in UTF-8"),
        ("a1 " * MAX_MOVE_LIST, (None, None), "more than 100000 characters"),
    ],
)
def test_damaged_move_lists_are_refused_by_place(text, place, says):
    with pytest.raises(RecordError, match=says) as caught:
        import_moves(io.BytesIO(text) if isinstance(text, bytes) else text, RULES, "moves.txt")
    assert (caught.value.line, caught.value.column) == place
    assert str(caught.value).startswith("moves.txt: ")


def test_recorded_games_of_abstractplay_are_imported_with_their_winners():
    reasons = set()
    with gzip.open(ROOT / "tests/golden/abstractplay.jsonl.gz", "rt") as lines:
        games = [game for game in map(json.loads, lines) if game["size"] <= 5][:60]
    for game in games:
        tokens = [ply["ap"] for ply in game["plies"][1:]]
        if game["swap_after_turn1"]:
            tokens.insert(1, "swap")
        record = import_moves(" ".join(tokens), Rules(game["size"]))
        winner = "bw".index(game["winner_colour"]) ^ game["swap_after_turn1"]
        assert record.result is not None
        assert record.result.winner == winner, game["id"]
        assert parse_record(format_record(record)) == record
        reasons.add(record.result.reason)
    assert reasons == {"played out", "adjudicated"}


def test_self_play_games_have_records_that_hold():
    from training.monitor import record_of
    from training.trajectory import Trajectory

    position, states, seats = Position.start(RULES), [], []
    for move in RECORD.moves:
        states.append(encode_position(position))
        seats.append(position.to_play)
        position = position.play(move)
    count = len(states)
    game = Trajectory(
        states=np.array(states[2:]),
        policy_targets=np.zeros((count - 2, RULES.num_actions), np.float16),
        root_values=np.linspace(-1.0001, 1.0001, count - 2).astype(np.float32),
        surprise=np.zeros(count - 2, np.float16),
        to_play=np.array(seats[2:], np.int8),
        actions=np.array([RULES.board.cell(m) if m != "swap" else 19 for m in RECORD.moves[2:]], np.int16),
        solved=np.zeros(count - 2, np.int8),
        strayed=np.zeros(count - 2, np.int8),
        outcome=1 - 2 * RECORD.result.winner,
        random_plies=2,
        game_id=2**64 - 1,
        version=7,
    )
    record = parse_record(format_record(record_of(game, RULES, 16)))
    assert record.moves == RECORD.moves[2:]
    assert record.result == RECORD.result
    assert (record.id, record.values[0], record.players[0].info["learner_steps"]) == ("f" * 16, -1.0, 7)


def test_the_command_sums_up_files_and_tells_damage(tmp_path):
    write_records(tmp_path / "good.jsonl.gz", [RECORD])
    code, out, err = lifeline("records", tmp_path / "good.jsonl.gz")
    assert (code, err) == (0, "")
    assert out.startswith(f"{tmp_path}/good.jsonl.gz: 1 games, {len(RECORD.moves)} plies")
    damaged_file(tmp_path / "bad.jsonl")
    code, out, err = lifeline("records", tmp_path / "good.jsonl.gz", tmp_path / "bad.jsonl", tmp_path / "missing")
    assert code == 1
    assert [line.rsplit(", ", 1)[1] for line in out.splitlines()] == ["0 errors", "3 errors", "1 errors"]
    assert "bad.jsonl: line 2, column 15: not JSON" in err
    assert err.splitlines()[-1] == "lifeline: damaged or unreadable files: 2 of 3"


def test_the_command_makes_records_of_move_lists(tmp_path):
    (tmp_path / "moves.txt").write_text("1. c3 2. swap 3. d5")
    code, out, err = lifeline("records", "--import-moves", "--base", 4, "--opening", "weak_pie", tmp_path / "moves.txt")
    assert (code, err) == (0, "")
    assert parse_record(out) == GameRecord(Rules(4, "weak_pie"), ("c3", "swap", "d5"))
    for arguments, says in (
        (("--import-moves", tmp_path / "moves.txt"), "moves.txt: line 1, column 10: ply 2: illegal move: swap"),
        (("--import-moves", tmp_path / "missing"), "missing: cannot be read"),
        (("--import-moves", "--base", 2, tmp_path / "moves.txt"), "from 3 to 12, not 2"),
        (("--base", 3, tmp_path / "moves.txt"), "go with --import-moves"),
    ):
        code, out, err = lifeline("records", *arguments)
        assert code in (1, 2)
        assert out == ""
        assert says in err
        assert err.count("\n") == 1


def test_record_errors_are_errors_of_this_project():
    assert issubclass(RecordError, LifelineError)
