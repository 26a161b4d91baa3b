"""Texts of moves and positions: the examples of the rules, and errors that name what is wrong."""

import pytest

from lifeline.board import board
from lifeline.errors import IllegalMoveError, NotationError
from lifeline.notation import MAX_TEXT, action_text, parse_move
from lifeline.rules import Position, Rules

RULES = Rules(3)
START = "3/4/5/4/3 b 0 0 - 0"


def test_start_of_base_3_is_written_as_in_the_rules():
    assert Position.start(RULES).text() == START
    assert Position.parse(START, RULES) == Position.start(RULES)


def test_first_turn_and_swap_are_written_as_in_the_rules():
    position = Position.start(RULES).play("b1,d3").play("swap")
    assert position.text() == "3/2b1/5/b3/3 w 1 0 s 0"
    assert Position.parse(position.text(), RULES) == position


def test_a_stone_already_placed_is_written():
    assert Position.start(RULES).play("c3").text() == "3/4/2b2/4/3 b 0 1 - 0"


def test_komi_left_is_written():
    rules = Rules(3, "komi_pie", 2)
    position = Position.start(rules).play("a1").play("c3").play("e1").play("e3").play("c1").play("komi")
    assert position.text() == "b1w/4/b1w2/4/b2 b 6 0 - 1"
    assert Position.parse(position.text(), rules) == position


def test_runs_of_ten_and_more_empty_cells_are_one_number():
    text = Position.start(Rules(12)).text()
    assert text.startswith("12/13/14/")
    assert Position.parse(text, Rules(12)) == Position.start(Rules(12))


def test_actions_have_the_texts_that_lead_back_to_them():
    geometry = board(3)
    texts = [action_text(a, geometry) for a in range(RULES.num_actions)]
    assert texts == [*geometry.labels, "swap", "komi"]
    assert [parse_move(t, geometry) for t in texts] == [(a,) for a in range(RULES.num_actions)]


def test_moves_are_read_without_regard_to_case_and_spaces():
    assert parse_move(" C4 , e2 ", board(3)) == (board(3).cell("c4"), board(3).cell("e2"))
    assert parse_move("SWAP", board(3)) == (19,)
    assert parse_move("Komi", board(3)) == (20,)


@pytest.mark.parametrize("move", ["", ",", "c4,", ",c4", "c4,e2,a1", "c4 e2", "pass", "z9", "swap,komi", "c4,swap"])
def test_what_is_no_move_is_refused(move):
    with pytest.raises(NotationError):
        Position.start(RULES).play(move)


def test_overlong_texts_are_refused_and_not_repeated_in_full():
    for read in (lambda t: parse_move(t, board(3)), lambda t: Position.parse(t, RULES)):
        with pytest.raises(NotationError) as caught:
            read("c" * (MAX_TEXT + 1))
        assert len(str(caught.value)) < 200


@pytest.mark.parametrize("action", [-1, 21, True, False, 10**9])
def test_what_is_no_action_is_refused(action):
    with pytest.raises(NotationError, match="no action"):
        Position.start(RULES).play(action)


def test_two_cells_are_a_move_where_two_stones_are_due():
    assert Position.start(RULES).play("c4,e2") == Position.start(RULES).play("c4").play("e2")


def test_a_two_stone_turn_with_an_illegal_second_stone_names_the_second():
    with pytest.raises(IllegalMoveError) as caught:
        Position.start(RULES).play("c4,c5")
    assert "c5 in 3/4/3b1/4/3 b 0 1 - 0" in str(caught.value)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "six fields"),
        ("3/4/5/4/3 b 0 0 -", "six fields"),
        ("3/4/5/4/3 b 0 0 - 0 0", "six fields"),
        ("3/4/5/4/3  b 0 0 - 0", "six fields"),
        ("3/4/5/4 b 0 0 - 0", "5 rows, not 4"),
        ("3/4/5/4/3/3 b 0 0 - 0", "5 rows, not 6"),
        ("3/4/5/4/4 b 0 0 - 0", "row 5 has 4 cells"),
        ("3/4/5/3/3 b 0 0 - 0", "row 4 has 3 cells"),
        ("3/4//4/3 b 0 0 - 0", "row 3 has 0 cells"),
        ("3/4/5/4/x2 b 0 0 - 0", "row 5, character 1"),
        ("3/4/5/4/B2 b 0 0 - 0", "row 5, character 1"),
        ("3/4/23/4/3 b 0 0 - 0", "row 3 has 23 cells"),
        ("3/4/5/4/03 b 0 0 - 0", "row 5, character 1"),
        ("3/4/5/4/111 b 0 0 - 0", "row 5, character 3"),
        ("3/4/5/4/٣ b 0 0 - 0", "row 5, character 1"),
        ("3/4/5/4/3 w 0 0 - 0", "colour must be b after 0 turns"),
        ("3/4/5/4/3 x 0 0 - 0", "colour must be b"),
        ("3/4/5/4/3 b -1 0 - 0", "the turn"),
        ("3/4/5/4/3 b 00 0 - 0", "the turn"),
        ("3/4/5/4/3 b 10000 0 - 0", "the turn"),
        ("3/4/5/4/3 b ٠ 0 - 0", "the turn"),
        ("3/4/5/4/3 b 0 2 - 0", "the stones placed"),
        ("3/4/5/4/3 b 0 0 x 0", "swap field"),
        ("3/4/5/4/3 b 0 0 s 0", "swapped only at White's first turn"),
        ("3/4/5/4/3 b 0 0 - 1", "the komi"),
        ("3/4/5/4/3 b 0 1 - 0", "1 black and 0 white"),
        ("3/4/2b2/4/3 w 1 0 - 0", "2 black and 0 white"),
        ("3/4/2bb1/4/3 w 1 0 - 0", "two adjacent stones"),
        ("3/4/5/4/3 b 2 1 - 0", "none can be placed already"),
        ("3/4/2bb1/4/w1w b 2 0 - 0", "the group at c3 is dead"),
    ],
)
def test_what_is_no_position_is_refused_by_name(text, says):
    with pytest.raises(NotationError, match=says):
        Position.parse(text, RULES)


@pytest.mark.parametrize(
    ("text", "rules", "says"),
    [
        ("3/4/1b3/4/3 b 0 1 - 0", Rules(3, "weak_pie"), "none can be placed already"),
        ("3/4/1b3/4/3 w 1 0 s 5", Rules(3, "komi_pie", 5), "swapped only"),
        ("3/4/1b3/4/3 w 1 0 - 4", Rules(3, "komi_pie", 5), "no komi can be spent in the opening"),
        ("b1b/4/5/4/w1w b 4 0 - 4", Rules(3, "komi_pie", 5), "cannot have been spent"),
        ("bb1/4/5/4/w2 w 3 0 - 0", Rules(3, "weak_pie", 0, "forbidden"), "two adjacent stones"),
    ],
)
def test_openings_of_single_stones_have_their_own_refusals(text, rules, says):
    with pytest.raises(NotationError, match=says):
        Position.parse(text, rules)


def test_adjacent_stones_are_read_where_the_opening_allows_them():
    text = "bb1/4/5/4/w2 w 3 0 - 0"
    assert Position.parse(text, Rules(3, "weak_pie")).text() == text


@pytest.mark.parametrize(
    ("text", "rules", "says"),
    [
        ("b1w/4/b1w2/4/b2 b 6 0 - 0", Rules(3, "komi_pie", 2), "2 points of komi cannot have been spent in 6 turns"),
        ("b1b/4/b1w2/4/w1w b 2 0 - 0", Rules(3), "so many stones of b"),
    ],
)
def test_more_than_the_turns_allow_is_refused(text, rules, says):
    with pytest.raises(NotationError, match=says):
        Position.parse(text, rules)


def test_letters_beyond_ascii_are_no_labels():
    with pytest.raises(NotationError, match="no cell"):
        Rules(7).board.cell("\u212a1")
