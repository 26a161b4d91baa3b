"""The kernels and the plain-Python rules say the same of every position: board, legal set, mover, end, winner."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from game_positions import ALL_BASES, legal_actions, play_randomly, positions, reach_cells, removing_moves, rules
from lifeline import kernels
from lifeline.env import BatchEnv
from lifeline.rules import STONES, Position, groups, is_dead

# The literal search for placements takes milliseconds up to base 5 and seconds at base 12.
LITERAL_BASES = (3, 4, 5)


def env_at(position):
    env = BatchEnv(position.rules, 1)
    env.reset(positions=[position])
    return env


def assert_same(env, position):
    """An environment's only game is at a position, and its state is the one made afresh from that position."""
    assert env.position(0) == position
    assert env.to_play[0] == position.to_play
    assert env.terminated[0] == position.is_over
    assert env.outcome[0] == {None: 0, 0: 1, 1: -1}[position.winner]
    assert np.array_equal(env.gather()[0], kernels.encode_position(position))


def check_some_cells(draw, env, position, count):
    """A few cells' legality by the literal rule, and swap and komi."""
    game, actions = position.rules, set(legal_actions(env))
    cells = draw(st.lists(st.integers(0, game.num_cells - 1), min_size=count, max_size=count))
    for cell in cells:
        assert (cell in actions) == (not position.is_over and position._may_place(cell)), game.board.labels[cell]
    assert (game.swap_action in actions) == position.may_swap
    assert (game.komi_action in actions) == position.may_spend_komi


@settings(max_examples=60)
@given(game=rules(bases=(3, 4)), seed=st.integers(0, 2**32 - 1))
def test_whole_games_agree_at_every_ply(game, seed):
    position, env = Position.start(game), BatchEnv(game, 1)
    rng = np.random.default_rng(seed)
    for _ in range(200):
        assert_same(env, position)
        assert legal_actions(env) == position.legal_actions()
        if position.is_over:
            return
        action = int(rng.choice(position.legal_actions()))
        position = position.play(action)
        env.step(np.array([action]))
    pytest.fail("a game on a small board lasted 200 plies")


@pytest.mark.parametrize("base", ALL_BASES)
@settings(max_examples=30)
@given(data=st.data())
def test_single_moves_agree_on_every_board(base, data):
    position = data.draw(positions(rules([base]), running=True))
    env = env_at(position)
    assert_same(env, position)
    check_some_cells(data.draw, env, position, 3)
    action = data.draw(st.sampled_from(legal_actions(env)))
    env.step(np.array([action]))
    after = position._apply(action)
    assert_same(env, after)
    check_some_cells(data.draw, env, after, 3)


@pytest.mark.parametrize("base", ALL_BASES)
@settings(max_examples=30)
@given(data=st.data())
def test_removals_agree_on_every_board(base, data):
    position, action = data.draw(removing_moves(rules([base])))
    env = env_at(position)
    env.step(np.array([action]))
    after = position._apply(action)
    assert_same(env, after)
    check_some_cells(data.draw, env, after, 2)


@settings(max_examples=30)
@given(position=positions(rules(bases=(4, 5, 6)), running=True))
def test_every_legal_move_of_a_position_leads_both_to_the_same_position(position):
    one = env_at(position)
    actions = legal_actions(one)
    env = BatchEnv(position.rules, len(actions))
    env.scatter(None, np.repeat(one.gather(), len(actions), axis=0))
    env.step(np.array(actions))
    for row, action in enumerate(actions):
        assert env.position(row) == position._apply(action)


@settings(max_examples=30)
@given(position=positions(rules(bases=LITERAL_BASES)))
def test_legal_sets_are_those_of_the_literal_rule(position):
    assert legal_actions(env_at(position)) == position.legal_actions()


@settings(max_examples=30)
@given(position=positions(rules(bases=LITERAL_BASES)))
def test_legal_placements_in_play_are_the_empty_regions_that_touch_an_own_stone(position):
    """Decision 5 of the rules, the shortcut that the kernels take, against the literal rule."""
    game, geometry = position.rules, position.rules.board
    if position.turn < game.opening_turns:
        return
    shortcut = []
    for region in groups(geometry, position.stones, "."):
        if any(position.stones[c] == position.colour for cell in region for c in geometry.neighbors[cell]):
            shortcut += region
    cells = [a for a in position.legal_actions() if a < game.num_cells]
    assert sorted(shortcut) == cells


@settings(max_examples=60)
@given(position=positions())
def test_states_hold_the_empty_regions_that_touch_each_colour(position):
    geometry = position.rules.board
    expected = [set(), set()]
    for region in groups(geometry, position.stones, "."):
        around = {position.stones[c] for cell in region for c in geometry.neighbors[cell]}
        for number, colour in enumerate(STONES):
            if colour in around:
                expected[number] |= region
    assert reach_cells(kernels.encode_position(position), position) == expected


@settings(max_examples=60)
@given(position=positions(running=True), seed=st.integers(0, 2**32 - 1), plies=st.integers(1, 60))
def test_states_kept_up_move_by_move_equal_states_made_afresh(position, seed, plies):
    env = env_at(position)
    env.step_random(np.array([plies]), np.array([seed], np.uint64))
    assert np.array_equal(env.gather()[0], kernels.encode_position(env.position(0)))


@settings(max_examples=60)
@given(position=positions())
def test_positions_come_back_from_states_unchanged(position):
    state = kernels.encode_position(position)
    assert kernels.decode_state(state, position.rules) == position
    assert state.dtype == np.uint64
    assert state.shape == (kernels.state_size(len(kernels.spec_of(position.rules).words)),)


@settings(max_examples=30)
@given(position=positions())
def test_no_group_is_dead_after_the_opening(position):
    """What the kernels' shortcuts take for granted."""
    if position.turn >= position.rules.opening_turns:
        for colour in STONES:
            for group in groups(position.rules.board, position.stones, colour):
                assert not is_dead(position.rules.board, position.stones, group)


@settings(max_examples=20)
@given(game=rules(bases=(3, 4, 5, 8, 12)), seed=st.integers(0, 2**32 - 1))
def test_games_end_with_a_player_who_has_no_stone_and_a_winner_who_placed_last(game, seed):
    position = play_randomly(Position.start(game), 10**5, seed)
    assert position.is_over
    assert position.colour not in position.stones
    assert position.winner == 1 - position.to_play
