"""What can be asked for as rules, and what is refused by name."""

import numpy as np
import pytest

from lifeline.env import BatchEnv
from lifeline.errors import IllegalMoveError, LifelineError, NotationError, RulesError
from lifeline.rules import Position, Rules


@pytest.mark.parametrize("base", [2, 13, 0, -1, "3", True, 3.0, None])
def test_bases_outside_3_to_12_are_refused(base):
    with pytest.raises(RulesError, match="base must be a whole number from 3 to 12"):
        Rules(base)


@pytest.mark.parametrize("opening", ["", "pie", "Strong_pie", None, 0])
def test_unknown_openings_are_refused(opening):
    with pytest.raises(RulesError, match="opening must be one of strong_pie, weak_pie, komi_pie"):
        Rules(3, opening)


@pytest.mark.parametrize("opening", ["strong_pie", "weak_pie"])
def test_komi_needs_a_komi_pie(opening):
    with pytest.raises(RulesError, match="komi is for komi_pie only"):
        Rules(3, opening, 1)


@pytest.mark.parametrize("komi", [-1, 100, 1.0, "1", True, None])
def test_komi_out_of_range_is_refused(komi):
    with pytest.raises(RulesError, match="komi must be a whole number from 0 to 99"):
        Rules(3, "komi_pie", komi)


@pytest.mark.parametrize("komi", [0, 1, 99])
def test_komi_in_range_is_the_komi_of_the_start(komi):
    assert Position.start(Rules(3, "komi_pie", komi)).komi == komi


@pytest.mark.parametrize("adjacent", ["", "no", None, True])
def test_unknown_adjacent_setups_are_refused(adjacent):
    with pytest.raises(RulesError, match="adjacent_setup must be allowed or forbidden"):
        Rules(3, "weak_pie", 0, adjacent)


def test_strong_pie_has_no_adjacent_setup():
    with pytest.raises(RulesError, match="adjacent_setup is for weak_pie and komi_pie"):
        Rules(3, "strong_pie", 0, "forbidden")


def test_actions_are_the_cells_then_swap_then_komi():
    rules = Rules(3)
    assert (rules.num_cells, rules.swap_action, rules.komi_action, rules.num_actions) == (19, 19, 20, 21)


def test_opening_lengths():
    assert Rules(3).opening_turns == 2
    assert Rules(3, "weak_pie").opening_turns == Rules(3, "komi_pie").opening_turns == 4
    assert [Rules(3).stones_in_turn(t) for t in range(4)] == [2, 2, 1, 1]
    assert [Rules(3, "weak_pie").stones_in_turn(t) for t in range(4)] == [1, 1, 1, 1]
    assert [Rules(3, "komi_pie").removes_in_turn(t) for t in range(5)] == [False, False, False, True, True]


@pytest.mark.parametrize("size", [0, -1])
def test_a_batch_has_at_least_one_game(size):
    with pytest.raises(RulesError, match="batch_size"):
        BatchEnv(Rules(3), size)


def test_an_environment_refuses_positions_of_other_rules():
    env = BatchEnv(Rules(3), 2)
    other = Position.start(Rules(3, "weak_pie"))
    with pytest.raises(RulesError, match="weak_pie"):
        env.reset([0], [other])
    with pytest.raises(RulesError, match="1 positions for 2 games"):
        env.reset(positions=[Position.start(Rules(3))])


def test_an_environment_refuses_actions_of_another_shape():
    env = BatchEnv(Rules(3), 2)
    for actions in (np.array([0]), np.array([[0, 1]]), np.array(0)):
        with pytest.raises(LifelineError, match="2 actions are needed"):
            env.step(actions)


def test_actions_that_are_no_whole_numbers_are_refused():
    env = BatchEnv(Rules(3), 2)
    with pytest.raises(LifelineError, match="whole numbers"):
        env.step(np.array([1.9, 0.0]))
    for action in (1.5, None, True, np.array([1])):
        with pytest.raises(NotationError, match="no action"):
            Position.start(Rules(3)).play(action)
    assert Position.start(Rules(3)).play(np.int64(4)).stones[4] == "b"


def test_two_stones_are_refused_where_one_is_due():
    after = Position.start(Rules(3)).play("c3,a1").play("e1,a3")
    for position, move in (
        (after, "c1,d4"),
        (Position.start(Rules(3)).play("c3"), "a1,e1"),
        (Position.start(Rules(3, "weak_pie")), "a1,c3"),
    ):
        with pytest.raises(IllegalMoveError, match=f"{move} in .*one stone is due"):
            position.play(move)


def test_a_refused_reset_changes_nothing():
    env = BatchEnv(Rules(3), 2)
    env.step(np.array([0, 1]))
    before = env.gather()
    with pytest.raises(LifelineError):
        env.reset(positions=[Position.start(Rules(3)), Position.start(Rules(4))])
    assert (env.gather() == before).all()


def test_games_to_reset_may_be_given_as_a_mask():
    env = BatchEnv(Rules(3), 3)
    env.step(np.array([0, 1, 2]))
    env.reset(np.array([False, False, True]))
    assert [env.position(row).placed for row in range(3)] == [1, 1, 0]
