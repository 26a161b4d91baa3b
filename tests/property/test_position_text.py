"""Position texts come back as they went out, and damaged ones are refused by name or are positions themselves."""

import contextlib
import string

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from game_positions import legal_actions, positions, rules
from lifeline.env import BatchEnv
from lifeline.errors import IllegalMoveError, NotationError, RulesError
from lifeline.rules import Position

CHARACTERS = st.sampled_from("bw/. -s0123456789xB\n\té٣" + string.ascii_uppercase)


@st.composite
def damaged(draw, text):
    """A text with one to three characters dropped, doubled, changed, put in or exchanged."""
    for _ in range(draw(st.integers(1, 3))):
        at = draw(st.integers(0, max(0, len(text) - 1)))
        kind = draw(st.sampled_from(["drop", "double", "change", "insert", "exchange", "cut"]))
        if kind == "drop":
            text = text[:at] + text[at + 1 :]
        elif kind == "double":
            text = text[:at] + text[at : at + 1] * 2 + text[at + 1 :]
        elif kind == "change":
            text = text[:at] + draw(CHARACTERS) + text[at + 1 :]
        elif kind == "insert":
            text = text[:at] + draw(CHARACTERS) + text[at:]
        elif kind == "exchange":
            text = text[:at] + text[at + 1 : at + 2] + text[at : at + 1] + text[at + 2 :]
        else:
            text = text[:at]
    return text


@settings(max_examples=100)
@given(position=positions())
def test_every_position_is_read_back_from_its_text(position):
    assert Position.parse(position.text(), position.rules) == position
    assert Position.parse(f"  {position.text()}\n", position.rules) == position


@settings(max_examples=60)
@given(position=positions())
def test_texts_name_the_mover_and_the_counters(position):
    rows, colour, turn, placed, swapped, komi = position.text().split(" ")
    assert (colour, int(turn), int(placed)) == (position.colour, position.turn, position.placed)
    assert (swapped == "s", int(komi)) == (position.swapped, position.komi)
    assert rows.count("b") == position.stones.count("b")
    assert rows.count("w") == position.stones.count("w")


@settings(max_examples=300)
@given(position=positions(rules(bases=(3, 4, 6))), data=st.data())
def test_damaged_texts_are_refused_or_are_positions(position, data):
    text = data.draw(damaged(position.text()))
    with contextlib.suppress(NotationError, RulesError):
        assert Position.parse(text, position.rules).text() == text.strip()


@settings(max_examples=150)
@given(position=positions(rules(bases=(3, 4))), data=st.data())
def test_kernels_and_reference_agree_on_positions_from_damaged_texts(position, data):
    """A text may describe what no game leads to: where it is read at all, both must still say the same of it."""
    stones = list(position.stones)
    for _ in range(data.draw(st.integers(1, 4))):
        stones[data.draw(st.integers(0, len(stones) - 1))] = data.draw(st.sampled_from(".bw"))
    text = Position(
        position.rules, tuple(stones), position.turn, position.placed, position.swapped, position.komi
    ).text()
    try:
        found = Position.parse(text, position.rules)
    except NotationError:
        return
    env = BatchEnv(found.rules, 1)
    env.reset(positions=[found])
    assert legal_actions(env) == found.legal_actions()
    if not found.is_over:
        action = data.draw(st.sampled_from(found.legal_actions()))
        env.step(np.array([action]))
        assert env.position(0) == found.play(action)


@settings(max_examples=200)
@given(game=rules(bases=(3, 12)), text=st.text(max_size=60))
def test_any_text_at_all_is_refused_or_read(game, text):
    for read in (lambda: Position.parse(text, game), lambda: Position.start(game).play(text)):
        with contextlib.suppress(NotationError, IllegalMoveError):
            read()


@settings(max_examples=30)
@given(position=positions(rules(bases=(3, 4))), data=st.data())
def test_illegal_actions_are_refused_with_position_and_move(position, data):
    game = position.rules
    action = data.draw(st.sampled_from([a for a in range(game.num_actions) if a not in position.legal_actions()]))
    text, name = position.text(), [*game.board.labels, "swap", "komi"][action]
    for move in (action, name, name.upper()):
        with pytest.raises(IllegalMoveError) as caught:
            position.play(move)
        assert f"{name} in {text}" in str(caught.value)
    assert position.text() == text


@settings(max_examples=30)
@given(position=positions(rules(bases=(3, 4)), running=True), data=st.data())
def test_a_move_played_by_text_is_the_move_played_by_number(position, data):
    action = data.draw(st.sampled_from(position.legal_actions()))
    text = position.legal_moves()[position.legal_actions().index(action)]
    assert position.play(text) == position.play(action) == position.play(np.int64(action))
