"""Whatever bytes come in, parsers read them or refuse them in one line by an error of this project, and soon.

`benchmarks/fuzz.py` does the same for as long as one likes. What was found stands below as named cases.
"""

import gzip
import io
import subprocess
import sys
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from game_positions import play_randomly
from game_records import played_out
from lifeline import ConfigError, IllegalMoveError, LifelineError, NotationError, Position, Rules
from lifeline.movelist import import_moves
from lifeline.record_json import format_record
from lifeline.records import read_records
from training.config import build_config, dump_config, load_config

ROOT = Path(__file__).parents[2]
ALL_RULES = (Rules(3), Rules(4, "weak_pie"), Rules(3, "komi_pie", 2), Rules(12))
RECORDS = [played_out(rules, seed) for rules in ALL_RULES[:3] for seed in range(3)]
POSITIONS = [play_randomly(Position.start(rules), plies, 1) for rules in ALL_RULES for plies in (0, 1, 5, 20)]

PIECES = st.binary(max_size=6) | st.sampled_from(
    [
        b"1e999",
        b"9" * 5000,
        b"0x" + b"f" * 5000,
        b"[" * 2000,
        b"{",
        b'"',
        b"\x00",
        b"\xff",
        "\u212a".encode(),
        b"&a ",
        b"*a",
    ]
    + [
        b"<<: ",
        b"!!int ''",
        b"? ",
        b"NaN",
        b"null",
        b"swap",
        b"komi",
        b"a1,b4",
        b"/",
        b"\n",
        b"\r",
        b"\\ud800",
        b"1.",
        b"-",
    ]
)


@st.composite
def damaged(draw, *texts):
    """One of these texts with pieces taken out, put in, exchanged or repeated; or any bytes at all."""
    if draw(st.integers(0, 9)) == 0:
        return draw(st.binary(max_size=80))
    data = draw(st.sampled_from(texts))
    for _ in range(draw(st.integers(1, 3))):
        a = draw(st.integers(0, len(data)))
        b = min(len(data), a + draw(st.sampled_from([0, 1, 5, 100])))
        data = data[:a] + draw(st.one_of(PIECES, st.just(data[a:b] * 3))) + data[b:]
    return data


def refused_or_read(read, *arguments):
    """Call a parser; an error must be of this project, printable, in one line, and soon."""
    began, found, message = time.perf_counter(), None, ""
    try:
        found = read(*arguments)
    except LifelineError as error:
        message = str(error)
    assert message.isprintable()
    assert len(message) < 1500
    assert time.perf_counter() - began < 20
    return found


@settings(max_examples=800)
@given(data=damaged(*(p.text().encode() for p in POSITIONS)), rules=st.sampled_from(ALL_RULES))
def test_positions(data, rules):
    text = data.decode(errors="surrogateescape")
    found = refused_or_read(Position.parse, text, rules)
    assert found is None or found.text() == text.strip()


@settings(max_examples=600)
@given(data=damaged(b"a1", b"c4,e2", b"swap", b" Komi "), position=st.sampled_from(POSITIONS))
def test_moves(data, position):
    refused_or_read(position.play, data.decode(errors="surrogateescape"))


@settings(max_examples=700)
@given(data=damaged(*(format_record(r).encode() + b"\n" for r in RECORDS)), go_on=st.booleans())
def test_records(data, go_on):
    errors = []
    games = refused_or_read(lambda: list(read_records(io.BytesIO(data), on_error=errors.append if go_on else None)))
    if go_on:
        # Every line is a game or an error.
        assert len(games) + len(errors) == len(io.BytesIO(data).readlines())
    for game in games or ():
        assert list(read_records(io.StringIO(format_record(game)))) == [game]


@settings(max_examples=200)
@given(data=damaged(*(gzip.compress(format_record(r).encode() + b"\n", mtime=0) for r in RECORDS)))
def test_compressed_records(tmp_path_factory, data):
    path = tmp_path_factory.getbasetemp() / "games.jsonl.gz"
    path.write_bytes(data)
    refused_or_read(lambda: list(read_records(path)))


@settings(max_examples=400)
@given(data=damaged(*(" ".join(r.moves).encode() for r in RECORDS)), rules=st.sampled_from(ALL_RULES))
def test_move_lists(data, rules):
    refused_or_read(import_moves, io.BytesIO(data), rules)


@settings(max_examples=200)
@given(data=damaged(b"seed: 3\ngame:\n  base: 4\nminutes: 0.5\n", dump_config(build_config(None, "")).encode()[:300]))
def test_configurations(tmp_path_factory, data):
    path = tmp_path_factory.getbasetemp() / "fuzz.yaml"
    path.write_bytes(data)
    config = refused_or_read(load_config, path)
    if config is not None:
        path.write_text(dump_config(config))
        assert load_config(path) == config


@settings(max_examples=200)
@given(data=damaged(b"search.num_simulations=64", b"game={base: 4}", b"evaluation.opponents=[random]"))
def test_settings_of_the_command_line(tmp_path_factory, data):
    path = tmp_path_factory.getbasetemp() / "plain.yaml"
    path.write_text("seed: 1\n")
    refused_or_read(load_config, path, (data.decode(errors="surrogateescape"),))


def yaml_bomb(merge):
    """Each line doubles the one before: 2**40 in the end."""
    lines = ["a0: &a0 {x: 1}"]
    lines += [
        f"a{i}: &a{i} " + (f"{{<<: [*a{i - 1}, *a{i - 1}]}}" if merge else f"[*a{i - 1}, *a{i - 1}]")
        for i in range(1, 41)
    ]
    return "\n".join(lines)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (yaml_bomb(merge=False), "anchors and tags are not read here"),
        (yaml_bomb(merge=True), "anchors and tags are not read here"),
        ("!!int ''", "anchors and tags are not read here"),
        ("!!bool maybe", "anchors and tags are not read here"),
        ("!!timestamp x", "anchors and tags are not read here"),
        ("seed: 0x" + "f" * 5000, "a number of more than 64 bits"),
        ("? 0x" + "f" * 800 + "\n: 1", "a number of more than 64 bits"),
        ("minutes: 1" + ":1" * 2000 + ".0", "too large"),
        ("minutes: .inf", "minutes: Input should be a finite number"),
        ("learner: {learning_rate: .nan}", "learner.learning_rate: Input should be"),
        ('"a\\nb": 1', r"unknown key 'a\\nb'"),
        ("k" * 1000 + ": 1", "unknown key k{100}$"),
        ("9" * 2000 + ": 3\ufeff: 4", r"not valid YAML: '.*\\ufeff"),
        ("#" * 70_000, "larger than any run configuration$"),
        ("[" * 5_000, "not valid YAML: brackets nested too deep"),
    ],
)
def test_configurations_that_went_wrong_once(tmp_path, text, says):
    path = tmp_path / "c.yaml"
    path.write_text(text)
    with pytest.raises(ConfigError, match=says) as caught:
        load_config(path)
    assert str(caught.value).isprintable()
    assert len(str(caught.value)) < 500


def test_an_endless_file_is_no_configuration():
    if Path("/dev/zero").exists():
        with pytest.raises(LifelineError, match="larger than any"):
            load_config(Path("/dev/zero"))


def test_moves_that_went_wrong_once():
    start = Position.start(Rules(4, "weak_pie"))
    with pytest.raises(IllegalMoveError, match=r"illegal move: c4,b1 in .*, where one stone is due") as caught:
        start.play("c4,\nb1")
    assert "\n" not in str(caught.value)
    with pytest.raises(NotationError, match="a move is a cell"):
        start.play("\u212aomi")


def test_the_long_fuzzer_runs():
    done = subprocess.run(
        [sys.executable, ROOT / "benchmarks/fuzz.py", "--cases", "350", "--seed", "3"],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    for part in ("350 cases in", "peak memory", "slowest case"):
        assert part in done.stdout
