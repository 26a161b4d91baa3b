"""OpenSpiel takes the game for one of its own: its simulation test passes, and its searches play it."""

import pickle

import numpy as np
import pyspiel
import pytest
from open_spiel.python.algorithms import mcts

from lifeline.adapters.open_spiel import LifelineGame
from lifeline.errors import ConfigError
from lifeline.rules import Rules

GAMES = [
    "lifeline",
    "lifeline(base=4)",
    "lifeline(opening=weak_pie)",
    "lifeline(base=4,opening=weak_pie,adjacent_setup=forbidden)",
    "lifeline(opening=komi_pie,komi=3)",
]


@pytest.mark.parametrize("name", GAMES)
def test_it_passes_the_random_simulation_test(name):
    pyspiel.random_sim_test(pyspiel.load_game(name), num_sims=3, serialize=True, verbose=False)


def searcher(game, seed, simulations=20):
    random = np.random.RandomState(seed)
    return mcts.MCTSBot(game, 1.4, simulations, mcts.RandomRolloutEvaluator(1, random), random_state=random)


@pytest.mark.parametrize("name", ["lifeline", "lifeline(opening=weak_pie)", "lifeline(opening=komi_pie,komi=2)"])
def test_its_tree_search_plays_a_whole_game(name):
    game = pyspiel.load_game(name)
    state, bots = game.new_initial_state(), [searcher(game, 1), searcher(game, 2)]
    while not state.is_terminal():
        state.apply_action(bots[state.current_player()].step(state))
    assert sorted(state.returns()) == [-1, 1]


def test_its_tree_search_finds_a_win_in_one():
    """Values are of players, not of colours or of every other ply: else it would look for the opponent's win."""
    game = pyspiel.load_game("lifeline(opening=weak_pie)")
    rng, found = np.random.default_rng(0), 0
    while found < 5:
        state = game.new_initial_state()
        while not state.is_terminal():
            player, legal = state.current_player(), state.legal_actions()
            wins = [a for a in legal if state.child(a).returns()[player] == 1]
            if 0 < len(wins) < len(legal) / 2:
                assert searcher(game, 1, 200).step(state) in wins
                found += 1
                break
            state.apply_action(int(rng.choice(legal)))


def test_a_clone_goes_its_own_way():
    state = pyspiel.load_game("lifeline").new_initial_state()
    other = state.clone()
    other.apply_action(0)
    assert state.history() == []
    assert state.position.text() == "3/4/5/4/3 b 0 0 - 0"
    assert other.position.text() == "b2/4/5/4/3 b 0 1 - 0"
    assert state.legal_actions() == list(range(19))


def test_actions_are_written_as_moves():
    state = pyspiel.load_game("lifeline").new_initial_state()
    assert state.action_to_string(9) == "c3"
    assert state.string_to_action("e1") == 0
    for move in ("c3", "a1", "swap"):
        state.apply_action(state.string_to_action(move))
    assert str(state).endswith("white (seat 0) to play, turn 2, first stone of two")
    assert state.observation_string() == state.position.text() == "3/4/2b2/4/b2 w 1 0 s 0"


def test_games_and_states_survive_serialisation():
    game = pyspiel.load_game("lifeline(base=4,opening=komi_pie,komi=5)")
    assert pickle.loads(pickle.dumps(game)).rules == Rules(4, "komi_pie", 5)
    state = game.new_initial_state()
    for action in (3, 20, 30):
        state.apply_action(action)
    assert pickle.loads(pickle.dumps(state)).position == state.position
    again, same = pyspiel.deserialize_game_and_state(pyspiel.serialize_game_and_state(game, state))
    assert isinstance(again, LifelineGame)
    assert same.position == state.position


def test_a_game_made_without_parameters_is_that_of_base_3():
    assert LifelineGame().rules == Rules(3)
    assert pyspiel.load_game("lifeline").num_distinct_actions() == 21


def test_observations_take_no_parameters():
    with pytest.raises(ConfigError, match="no parameters, not zoom"):
        LifelineGame().make_py_observer(params={"zoom": 2})
