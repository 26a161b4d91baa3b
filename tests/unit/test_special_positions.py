"""Named positions for the rules that are easily got wrong, each played by the reference and by the kernels."""

import numpy as np
import pytest

from game_positions import legal_actions
from lifeline.env import BatchEnv
from lifeline.errors import IllegalMoveError
from lifeline.notation import parse_move
from lifeline.rules import Position, Rules, place, remove_dead

STRONG = Rules(3)


def play_both(text, move, rules=STRONG):
    """The position after a move, once reference and kernels agree on it and on who is to move and has won."""
    before = Position.parse(text, rules)
    after = before.play(move)
    env = BatchEnv(rules, 1)
    env.reset(positions=[before])
    env.step(np.array(parse_move(move, rules.board)))
    assert env.position(0) == after
    assert bool(env.terminated[0]) == after.is_over
    assert int(env.to_play[0]) == after.to_play
    assert int(env.outcome[0]) == {None: 0, 0: 1, 1: -1}[after.winner]
    assert legal_actions(env) == after.legal_actions()
    return after


def test_joining_the_last_two_groups_kills_them_and_the_game_goes_on_one_turn():
    # Black's c2 and a2 live by each other; b2 makes one group of them, which has none to be linked to.
    after = play_both("3/3w/1b3/4/wb1 b 2 0 - 0", "b2")
    assert after.text() == "3/3w/5/4/w2 w 3 0 - 0"
    assert not after.is_over
    last = play_both(after.text(), "c3")
    assert last.is_over
    assert last.winner == 1


def test_suicide_of_a_larger_group_is_legal():
    # e2 joins White's corners e1, d1 and e3: no empty cell is left beside them, and all four stones go.
    after = play_both("w1w/wbbb/2bww/bb1b/2w w 11 0 - 0", "e2")
    assert after.text() == "3/1bbb/2bww/bb1b/2w b 12 0 - 0"


def test_a_stone_that_would_only_vanish_is_illegal():
    # The corner e1 is walled in by Black: a white stone there would go at once and leave the board as it was.
    position = Position.parse("1b1/bb2/5/3b/w1w w 11 0 - 0", STRONG)
    assert "e1" not in position.legal_moves()
    with pytest.raises(IllegalMoveError, match="illegal move: e1 in 1b1/bb2/5/3b/w1w w 11 0 - 0"):
        position.play("e1")
    assert play_both("1b1/bb2/5/3b/w1w b 12 0 - 0", "e1").stones[0] == "b"


def test_enemy_groups_go_first_and_save_the_movers():
    # b3 cuts off b4, then all black stones are gone and White's groups see one another across the empty board.
    text = "w1w/wbbb/2bww/bb1b/2w w 11 0 - 0"
    after = play_both(text, "b3")
    assert after.text() == "w1w/w3/3ww/2w1/2w b 12 0 - 0"
    assert after.winner == 1
    before, geometry = Position.parse(text, STRONG), STRONG.board
    placed = place(geometry, before.stones, geometry.cell("b3"), "w")
    own_first = remove_dead(geometry, remove_dead(geometry, placed, "w"), "b")
    assert own_first != after.stones


def test_one_turn_can_cost_stones_of_both_colours():
    after = play_both("w1b/bwbw/b1b1b/wb1w/wbw w 13 0 - 0", "c2")
    assert after.text() == "2b/2bw/2b1b/1b1w/1bw b 14 0 - 0"


def test_who_takes_the_last_stones_of_both_colours_has_won():
    after = play_both("1wb/3w/5/1b2/b2 w 3 0 - 0", "d3")
    assert after.text() == "3/4/5/4/3 b 4 0 - 0"
    assert after.is_over
    assert after.winner == 1


def test_an_empty_board_after_the_opening_is_no_first_turn():
    position = Position.parse("3/4/5/4/3 b 4 0 - 0", STRONG)
    assert position.legal_actions() == []
    env = BatchEnv(STRONG, 1)
    env.reset(positions=[position])
    assert legal_actions(env) == []
    assert env.terminated[0]


def test_no_move_is_legal_after_the_end_and_the_error_says_so():
    position = Position.parse("3/4/5/4/3 b 4 0 - 0", STRONG)
    with pytest.raises(IllegalMoveError, match="the game is over: c3 in 3/4/5/4/3 b 4 0 - 0"):
        position.play("c3")


def test_two_stones_of_a_first_turn_are_placed_by_one_player():
    positions = [Position.start(STRONG)]
    for move in ("a1", "e3", "c3", "a3", "c1"):
        positions.append(positions[-1].play(move))
    assert [p.to_play for p in positions] == [0, 0, 1, 1, 0, 1]
    assert [p.colour for p in positions] == ["b", "b", "w", "w", "b", "w"]
    assert [p.placed for p in positions] == [0, 1, 0, 1, 0, 0]


def test_the_second_stone_may_not_touch_the_first_in_strong_pie():
    env = BatchEnv(STRONG, 1)
    for white in (False, True):
        position = Position.start(STRONG).play("a1,e3") if white else Position.start(STRONG)
        position = position.play("c3")
        near = {STRONG.board.labels[c] for c in STRONG.board.neighbors[STRONG.board.cell("c3")]}
        assert near.isdisjoint(position.legal_moves())
        assert len(position.legal_moves()) == STRONG.num_cells - 7 - 2 * white
        env.reset(positions=[position])
        assert legal_actions(env) == position.legal_actions()


@pytest.mark.parametrize("opening", ["strong_pie", "weak_pie"])
def test_swap_changes_the_player_to_move_and_not_the_colour(opening):
    rules = Rules(4, opening)
    before = Position.start(rules).play("a1,e3" if opening == "strong_pie" else "a1")
    after = before.play("swap")
    assert (before.to_play, after.to_play) == (1, 0)
    assert (before.colour, after.colour) == ("w", "w")
    assert after.stones == before.stones
    assert after.turn == before.turn


@pytest.mark.parametrize("opening", ["strong_pie", "weak_pie"])
def test_swap_is_offered_once_and_only_before_whites_first_stone(opening):
    rules = Rules(3, opening)
    start = Position.start(rules)
    before = start.play("a1,e3" if opening == "strong_pie" else "a1")
    assert "swap" not in start.legal_moves()
    assert "swap" in before.legal_moves()
    for after in (before.play("swap"), before.play("c3"), before.play("swap").play("c3")):
        assert "swap" not in after.legal_moves()
    assert "swap" not in before.play("c3").play("c1" if opening == "strong_pie" else "c5").legal_moves()


def test_no_swap_between_the_two_first_stones():
    assert "swap" not in Position.start(STRONG).play("a1").legal_moves()


def test_no_swap_in_komi_pie():
    assert "swap" not in Position.start(Rules(3, "komi_pie", 3)).play("a1").legal_moves()


def test_seats_keep_the_colours_of_a_swap_to_the_end():
    position = Position.start(Rules(3, "weak_pie")).play("a1").play("swap").play("e1").play("a2").play("e3")
    assert position.is_over
    assert position.colour == "b"
    assert position.winner == 0


def test_nothing_is_removed_before_the_fourth_stone_of_a_weak_pie():
    rules = Rules(3, "weak_pie")
    position = Position.start(rules).play("a1").play("e1").play("a2")
    assert position.stones.count("b") == 2
    assert play_both(position.text(), "e3", rules).text() == "w1w/4/5/4/3 b 4 0 - 0"


def test_adjacent_second_stones_kill_both_colours_at_the_fourth_stone_of_a_weak_pie():
    rules = Rules(3, "weak_pie")
    after = play_both("w2/4/5/4/bb1 w 3 0 - 0", "e2", rules)
    assert after.text() == "3/4/5/4/3 b 4 0 - 0"
    assert after.winner == 1


def test_a_weak_pie_opening_that_costs_white_both_stones_goes_on_with_blacks_turn():
    rules = Rules(3, "weak_pie")
    after = play_both("w2/4/5/4/b1b w 3 0 - 0", "e2", rules)
    assert after.text() == "3/4/5/4/b1b b 4 0 - 0"
    assert not after.is_over
    assert play_both(after.text(), "c3", rules).winner == 0


@pytest.mark.parametrize("opening", ["weak_pie", "komi_pie"])
@pytest.mark.parametrize(("adjacent", "allowed"), [("allowed", True), ("forbidden", False)])
def test_a_second_stone_beside_the_first_is_as_the_option_says(opening, adjacent, allowed):
    position = Position.start(Rules(3, opening, 0, adjacent)).play("c3").play("a1")
    assert ("c4" in position.legal_moves()) == allowed
    assert "b1" in position.legal_moves()  # beside the other colour
    assert ("a2" in position.play("e1").legal_moves()) == allowed


def test_the_adjacent_option_is_for_second_stones_only():
    rules = Rules(3, "weak_pie", 0, "forbidden")
    position = Position.start(rules).play("c3").play("a1").play("e1").play("e3")
    assert "c4" in position.legal_moves()


def test_spending_komi_is_a_turn_that_changes_only_the_komi():
    rules = Rules(3, "komi_pie", 2)
    before = Position.start(rules).play("a1").play("c3").play("e1").play("e3").play("c1")
    after = play_both(before.text(), "komi", rules)
    assert after.stones == before.stones
    assert (after.turn, after.komi, after.colour, after.to_play) == (before.turn + 1, 1, "b", 0)


def test_komi_is_whites_to_spend_after_the_opening_and_while_it_lasts():
    rules = Rules(3, "komi_pie", 1)
    position = Position.start(rules)
    for move in ("a1", "c3", "e1", "e3"):
        assert "komi" not in position.legal_moves()
        position = position.play(move)
    assert "komi" not in position.legal_moves()
    position = position.play("c1")
    assert "komi" in position.legal_moves()
    assert "komi" not in position.play("komi").play("d1").legal_moves()


def test_white_without_a_stone_may_not_spend_komi():
    rules = Rules(3, "komi_pie", 5)
    after = play_both("3/4/5/4/b1b b 4 0 - 5", "c3", rules)
    assert after.is_over
    assert after.winner == 0
    assert after.legal_moves() == []


def test_spending_komi_after_blacks_self_wipe_wins_at_once():
    rules = Rules(3, "komi_pie", 1)
    before = play_both("3/3w/1b3/4/wb1 b 4 0 - 1", "b2", rules)
    after = play_both(before.text(), "komi", rules)
    assert after.is_over
    assert after.winner == 1
