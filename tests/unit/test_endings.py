"""The truth about endings: found from behind, within its nodes, whatever was solved before; random ones are games."""

import os
import subprocess
import sys

import numpy as np
import pytest

from game_positions import play_randomly
from lifeline import Rules
from lifeline.endings import NO_MOVE, Endings
from lifeline.kernels import decode_state, encode_position
from lifeline.rules import Position
from lifeline.solver import LOSS, UNKNOWN, WIN, Solver

RULES = Rules(3)
VARIANTS = [RULES, Rules(3, "weak_pie"), Rules(3, "komi_pie", komi=3), Rules(4)]


def game(rules, seed):
    """The states before each ply of a random game."""
    states, position = [], Position.start(rules)
    while not position.is_over:
        states.append(encode_position(position))
        position = play_randomly(position, 1, seed + len(states))
    return np.array(states)


@pytest.mark.parametrize("rules", VARIANTS)
def test_values_of_positions_and_moves_are_the_solvers(rules):
    endings, solver, values = Endings(rules, 300), Solver(rules, 18), []
    for seed in range(12):
        states = game(rules, 100 * seed)
        found, moves = endings.solve(states)
        solved = np.flatnonzero(found)
        assert np.array_equal(solved, np.arange(len(states) - len(solved), len(states)))
        assert not moves[: -len(solved)].any()
        for ply in solved:
            truth, position = solver.solve_state(states[ply], 20_000), decode_state(states[ply], rules)
            assert truth.value in (None, found[ply])
            values += [truth.value]
            assert np.flatnonzero(moves[ply] != NO_MOVE).tolist() == position.legal_actions()
            won, undecided = (set(np.flatnonzero(moves[ply] == value)) for value in (WIN, UNKNOWN))
            assert won <= {*truth.known_winning, *truth.undecided}
            assert set(truth.known_winning) <= won | undecided
            assert bool(won) == (found[ply] == WIN)
    assert min(values.count(WIN), values.count(LOSS)) > 10


def test_more_nodes_solve_more_and_few_tell_no_untruth():
    few, many, known = Endings(RULES, 20), Endings(RULES, 5000), np.zeros(2)
    for seed in range(30):
        states = game(RULES, 100 * seed)
        (little, _), (much, _) = few.solve(states), many.solve(states)
        assert np.array_equal(little[little != 0], much[little != 0])
        known += [(little != 0).sum(), (much != 0).sum()]
    assert known[1] > 1.5 * known[0] > 0


def test_nothing_hangs_on_the_games_before():
    endings, games = Endings(RULES, 60), [game(RULES, 100 * seed) for seed in range(20)]
    before = [endings.solve(states) for states in games]
    keys = [endings.random(key) for key in range(20)]
    for states, (values, moves) in reversed(list(zip(games, before, strict=True))):
        again = endings.solve(states)
        assert np.array_equal(again[0], values)
        assert np.array_equal(again[1], moves)
    for key in (7, 3):
        for one, other in zip(endings.random(key), keys[key], strict=True):
            assert np.array_equal(one.states, other.states)
            assert np.array_equal(one.moves, other.moves)


@pytest.mark.parametrize("rules", VARIANTS)
def test_random_endings_are_the_ends_of_games_with_the_truth_about_them(rules):
    endings, solver, chosen = Endings(rules, 500), Solver(rules, 18, symmetric=False), []
    for key in range(15):
        pair = endings.random(key)
        assert len(pair) == 2
        assert np.array_equal(pair[0].states[0], pair[1].states[0])
        assert pair[0].values.all()
        for ending in pair:
            position = decode_state(ending.states[0], rules)
            for state, seat, action, value, moves in zip(
                ending.states, ending.to_play, ending.actions, ending.values, ending.moves, strict=True
            ):
                assert encode_position(position).tolist() == state.tolist()
                assert seat == position.to_play
                assert value == UNKNOWN or value == solver.value(state)
                assert moves[action] != NO_MOVE
                chosen.append((ending is pair[1], value, moves[action]))
                position = position.play(int(action))
            assert position.is_over
            assert ending.outcome == (1 if position.winner == 0 else -1)
            assert ending.begun == position.turn - len(ending.states) or rules.opening == "strong_pie"

    def share(again):
        won = [move for which, value, move in chosen if which is again and value == WIN]
        return np.mean([move == WIN for move in won])

    assert share(True) > share(False) + 0.1


def test_random_endings_differ():
    endings = Endings(RULES, 100)
    assert len({ending.states.tobytes() for key in range(50) for ending in endings.random(key)}) > 80


@pytest.mark.slow
def test_kernels_that_search_can_be_loaded_from_the_cache(tmp_path):
    program = (
        "import numpy as np\nfrom lifeline import Rules\nfrom lifeline.endings import Endings\n"
        "from lifeline.solver import Solver\nrules = Rules(3)\nendings = Endings(rules, 50)\n"
        "states = np.concatenate([ending.states for key in range(5) for ending in endings.random(key)])\n"
        "print(endings.solve(endings.random(1)[0].states)[0].sum(), Solver(rules, 10).values(states, 50).sum())\n"
    )
    environment = os.environ | {"LIFELINE_CACHE_DIR": str(tmp_path)}
    said = [
        subprocess.run([sys.executable, "-c", program], env=environment, check=True, capture_output=True).stdout
        for _ in range(2)
    ]
    assert said[0] == said[1] != b""
