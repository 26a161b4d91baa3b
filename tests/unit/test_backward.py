"""Games solved backwards: the truth, within its nodes, whatever was solved before; random endings are ends of games."""

import os
import subprocess
import sys

import numpy as np
import pytest

from game_positions import play_randomly
from lifeline import Rules
from lifeline.kernels import decode_state, encode_position
from lifeline.rules import Position
from lifeline.solver import LOSS, NO_MOVE, UNKNOWN, WIN, Solver
from training import backward
from training.backward import BackwardSolver

RULES = Rules(3)
VARIANTS = pytest.mark.parametrize(
    "rules",
    [RULES, Rules(3, "weak_pie"), Rules(3, "komi_pie", komi=3), Rules(4), Rules(5), Rules(8)],
    ids=lambda r: f"{r.base} {r.opening}",
)


def game(rules, seed):
    """The states before each ply of a random game."""
    states, position = [], Position.start(rules)
    while not position.is_over:
        states.append(encode_position(position))
        position = play_randomly(position, 1, seed + len(states))
    return np.array(states)


def agree(found, moves, state, solver):
    """See that the solver, within a limit of its own, says nothing else of a state; gives its value, if it has one."""
    truth = solver.solve_state(state, 3000)
    assert found == UNKNOWN or truth.value in (None, found)
    assert np.flatnonzero(moves != NO_MOVE).tolist() == decode_state(state, solver.rules).legal_actions()
    won, undecided = (set(np.flatnonzero(moves == value)) for value in (WIN, UNKNOWN))
    assert won <= {*truth.known_winning, *truth.undecided}
    assert set(truth.known_winning) <= won | undecided
    assert bool(won) == (found == WIN)
    return truth.value


@VARIANTS
def test_values_of_positions_and_moves_are_the_solvers(rules):
    solved_by, solver, values = BackwardSolver(rules, 300), Solver(rules, 18), []
    for seed in range(12 if rules.base < 8 else 2):
        states = game(rules, 1000 * seed)
        found, moves = solved_by.solve(states)
        first = len(states) - len(np.flatnonzero(found))
        assert first < len(states)
        assert not found[:first].any()
        assert not moves[:first].any()
        values += [agree(found[ply], moves[ply], states[ply], solver) for ply in range(first, len(states))]
    assert min(values.count(WIN), values.count(LOSS)) > (3 if rules.base < 8 else 0)


def test_more_nodes_solve_more_and_few_tell_no_untruth():
    few, many, known = BackwardSolver(RULES, 20), BackwardSolver(RULES, 5000), np.zeros(2)
    for seed in range(30):
        states = game(RULES, 100 * seed)
        (little, _), (much, _) = few.solve(states), many.solve(states)
        assert np.array_equal(little[little != 0], much[little != 0])
        known += [(little != 0).sum(), (much != 0).sum()]
    assert known[1] > 1.5 * known[0] > 0


@pytest.mark.parametrize("nodes", [1, 60, 700])
def test_each_ply_is_searched_within_the_nodes(nodes, monkeypatch):
    """And to all of them where that is not enough."""
    solver, spent = BackwardSolver(RULES, nodes), []

    def counted(states, count, values, moves, *rest):
        for ply in range(count - 1, -1, -1):
            values[ply] = backward.solve_ply(states[ply], moves[ply], *rest)
            spent.append(int(rest[1][0]))
            if values[ply] == UNKNOWN:
                assert spent[-1] == nodes
                return ply + 1
        return 0

    monkeypatch.setattr(backward, "solve_backwards", counted)
    for seed in range(10):
        solver.solve(game(RULES, 100 * seed))
    assert max(spent) == nodes
    assert len(spent) > 20


def same(one, other):
    return all(np.array_equal(getattr(one, name), getattr(other, name)) for name in vars(one))


def test_nothing_depends_on_the_games_before():
    solver, games = BackwardSolver(RULES, 60), [game(RULES, 100 * seed) for seed in range(20)]
    before = [solver.solve(states) for states in games]
    endings = [solver.random_endings(key) for key in range(20)]
    for states, (values, moves) in reversed(list(zip(games, before, strict=True))):
        again = solver.solve(states)
        assert np.array_equal(again[0], values)
        assert np.array_equal(again[1], moves)
    for key in (7, 3):
        assert all(same(*pair) for pair in zip(solver.random_endings(key), endings[key], strict=True))


@VARIANTS
def test_random_endings_are_ends_of_games_with_the_truth_about_them(rules):
    solved_by, solver, chosen, unknown = BackwardSolver(rules, 100), Solver(rules, 18), [], 0
    for key in range(20 if rules.base < 8 else 2):
        one, other = solved_by.random_endings(key)
        assert np.array_equal(one.states[0], other.states[0])
        assert one.values.all()
        unknown += (other.values == UNKNOWN).sum()
        for ending in (one, other):
            position = decode_state(ending.states[0], rules)
            assert not position.swapped
            for ply, action in enumerate(ending.actions.tolist()):
                assert encode_position(position).tolist() == ending.states[ply].tolist()
                assert ending.to_play[ply] == position.to_play
                agree(ending.values[ply], ending.moves[ply], ending.states[ply], solver)
                chosen.append((ending is other, ending.values[ply], ending.moves[ply, action]))
                position = position.play(action)
            assert position.is_over
            assert ending.outcome == (1 if position.winner == 0 else -1)
        stones_more = 2 if rules.opening == "strong_pie" else 0  # plies beyond one a turn
        assert one.begun == other.begun == decode_state(one.states[0], rules).turn + stones_more

    def share(again):
        return np.mean([move == WIN for which, value, move in chosen if which is again and value == WIN])

    if rules.base < 8:
        assert share(True) > share(False)
    if rules == RULES:
        assert unknown


def test_random_endings_differ():
    solver = BackwardSolver(RULES, 100)
    assert len({ending.states.tobytes() for key in range(50) for ending in solver.random_endings(key)}) > 80


def test_games_too_long_for_the_room_there_is_give_none(monkeypatch):
    monkeypatch.setattr(backward, "longest_game", lambda rules: 16)
    solver = BackwardSolver(RULES, 100)
    lengths = [len(solver.random_endings(key)) for key in range(40)]
    assert set(lengths) == {0, 2}


@pytest.mark.slow
@pytest.mark.parametrize("base", [3, 8])
def test_kernels_that_search_can_be_loaded_from_the_cache(tmp_path, base):
    program = (
        "import numpy as np\nfrom lifeline import Rules\nfrom lifeline.solver import Solver\n"
        f"from training.backward import BackwardSolver\nrules = Rules({base})\nsolver = BackwardSolver(rules, 50)\n"
        "states = np.concatenate([ending.states for key in range(5) for ending in solver.random_endings(key)])\n"
        "print(solver.solve(states)[0].sum(), Solver(rules, 10).values(states, 50).sum())\n"
    )
    environment, said, compiled = os.environ | {"LIFELINE_CACHE_DIR": str(tmp_path)}, [], []
    for _ in range(2):
        said += [
            subprocess.run([sys.executable, "-c", program], env=environment, check=True, capture_output=True).stdout
        ]
        compiled.append({path: path.stat().st_mtime_ns for path in tmp_path.rglob("*.nbc")})
    assert said[0] == said[1] != b""
    assert compiled[0] == compiled[1] != {}
