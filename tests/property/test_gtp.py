"""GTP sessions: random games agree with rules.py at every ply, and no input, however mad, ends one."""

import io

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from game_positions import rules
from gtp_talk import ask, engine, network, snapshot, talk
from lifeline import Position, Rules
from lifeline.play.clock import Clock, TimeSettings, allotment
from lifeline.play.gtp import serve
from lifeline.play.gtp_commands import COMMANDS
from lifeline.play.lines import LineReader

NAMES = {"b": "black", "w": "white"}


@pytest.mark.parametrize(("base", "games"), [(3, 150), (4, 39), (5, 12)])
def test_random_games_are_those_of_the_rules(base, games):
    of, rng = engine(), np.random.default_rng(base)
    for number in range(games):
        opening = ("strong_pie", "weak_pie", "komi_pie")[number % 3]
        komi = int(rng.integers(0, 4)) if opening == "komi_pie" else 0
        adjacent = "forbidden" if opening != "strong_pie" and number % 2 else "allowed"
        ask(of, f"boardsize {base}")
        ask(of, f"lifeline-opening {opening}")
        ask(of, f"lifeline-adjacent_setup {adjacent}")
        ask(of, f"komi {komi}")
        positions = [Position.start(Rules(base, opening, komi, adjacent))]
        while True:
            position = positions[-1]
            assert ask(of, "lifeline-position") == position.text()
            assert ask(of, "lifeline-to_play") == f"{NAMES[position.colour]} {position.to_play}"
            legal = position.legal_moves()
            assert ask(of, "lifeline-legal_moves").split() == legal
            if position.is_over:
                break
            if rng.random() < 0.1:
                move = ask(of, f"genmove {position.colour}")
                assert move in legal
            else:
                move = str(rng.choice(legal))
                ask(of, f"play {NAMES[position.colour]} {move}")
            positions.append(position.play(move))
            if rng.random() < 0.1:
                ask(of, "undo")
                positions.pop()
        assert ask(of, "final_score") == ("W+" if position.colour == "b" else "B+")
        # The winner's colour is the one that his seat owns now.
        assert position.winner == (ask(of, "final_score") == "W+") ^ position.swapped
        for position in positions[-2::-1]:
            ask(of, "undo")
            assert of.session.game.position == position
        assert of.handle("undo").text == "cannot undo"


WORDS = st.sampled_from(
    [*COMMANDS, "b", "w", "black", "White", "c3", "a1", "b2", "swap", "komi", "pass", "3", "4", "0", "1", "7.0", "12"]
    + ["-1", "1e9", "99999999999", "weak_pie", "strong_pie", "komi_pie", "allowed", "forbidden", "#", "\t", "\x00", "é"]
    + ["3/2b1/5/b3/3 w 1 0 s 0", "3/4/5/4/3 b 0 0 - 0", "c4,e2", "'", "\u2028", "\x85", "x" * 5000]
)
# Boards of the greatest size take their time; what is said to them is the same.
PLAUSIBLE = st.sampled_from(
    [
        "genmove b",
        "genmove w",
        "play b c3",
        "play w c4",
        "play b a1",
        "play w swap",
        "undo",
        "boardsize 4",
        "clear_board",
    ]
    + ["lifeline-opening weak_pie", "lifeline-opening komi_pie", "komi 3", "time_settings 9 0 0", "time_left b 1 0"]
    + [
        "lifeline-position 3/2b1/5/b3/3 w 1 0 s 0",
        "showboard",
        "lifeline-legal_moves",
        "final_score",
        "5 reg_genmove b",
    ]
    + ["lifeline-analyze 0", "lifeline-analyze"]
)
LINES = PLAUSIBLE | st.lists(WORDS, max_size=7).map(" ".join)


@settings(max_examples=100)
@given(lines=st.lists(LINES, max_size=30), game=rules(bases=[3, 4]), player=st.sampled_from(["random", network]))
def test_any_commands_get_one_answer_each_and_refusals_change_nothing(lines, game, player):
    of = engine(game, player)
    for line in lines:
        before = snapshot(of)
        answer = of.handle(line)
        if answer is None:
            continue
        assert not answer.fault
        block = answer.head() + "\n\n"
        assert "\n\n" not in block[:-2]
        assert "\r" not in block
        if not answer.ok:
            assert snapshot(of) == before
            assert answer.head().isprintable()
        position = of.session.game.position
        assert Position.parse(position.text(), position.rules) == position


BYTES = st.binary(max_size=60) | st.sampled_from(
    [
        b"\n",
        b"\r\n",
        b"\r",
        b"\x00",
        b"\xff\xfe",
        b"#",
        b"1 ",
        b"9" * 40,
        b" ",
        b"play b c3\n",
        b"genmove w\n",
        b"undo\n",
    ]
    + [b"lifeline-position ", b"3/4/5/4/3 b 0 0 - 0\n", b"name\n", b"y" * 5000, "ü\u2028".encode()]
)


@settings(max_examples=120)
@given(data=st.lists(BYTES, max_size=25).map(b"".join), size=st.sampled_from([1, 7, 65536]))
def test_any_bytes_are_lived_through(data, size):
    of, file, out = engine(), io.BytesIO(data), io.BytesIO()
    serve(of, LineReader(lambda most: file.read(min(size, most))), out)
    blocks = out.getvalue().decode().split("\n\n")
    assert blocks.pop() == ""
    assert all(block[0] in "=?" for block in blocks)
    assert "internal error" not in out.getvalue().decode()
    # It still answers as it should.
    assert talk(of, b"77 protocol_version\n") == "=77 2\n\n"


@settings(max_examples=300)
@given(
    main=st.floats(0, 1e6),
    period=st.floats(0, 1e4),
    stones=st.integers(0, 50),
    spent=st.lists(st.floats(0, 1e4), max_size=30),
    empty=st.integers(0, 397),
)
def test_a_ply_is_never_given_more_than_is_left(main, period, stones, spent, empty):
    settings_ = TimeSettings(main, period, stones)
    if settings_.unlimited:
        return
    clock = Clock.start(settings_)
    for seconds in spent:
        clock = clock.spend(seconds)
        assert clock.left >= 0
        assert 0 <= clock.stones <= max(1, stones)
        share = allotment(clock, empty)
        assert share >= 0
        if clock.stones or not settings_.has_byo_yomi:
            assert share <= clock.left
        else:
            assert share <= max(clock.left, period / stones)
        # A player that keeps to it never runs out of time.
        after = clock.spend(share)
        assert after.left > 0 or clock.left == 0
