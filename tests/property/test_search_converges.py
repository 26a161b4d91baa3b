"""With many simulations search comes to the truth: winning moves are found, and root values have the solver's sign."""

import numpy as np
import pytest

from game_positions import play_randomly
from lifeline import BatchEnv, Position, Rules
from lifeline.search.evaluator import ExactEvaluator, UniformEvaluator
from lifeline.search.gumbel import GumbelConstants, GumbelPolicy
from lifeline.search.puct import PuctConstants, PuctPolicy
from lifeline.search.search import BatchSearch
from lifeline.solver import Solver

RULES = Rules(3)
POLICIES = {
    "gumbel": lambda: GumbelPolicy(GumbelConstants(noise=0.0, max_considered=32)),
    "puct": lambda: PuctPolicy(PuctConstants(proves=False)),
    "puct that proves": lambda: PuctPolicy(PuctConstants()),
}


def middle_positions(count, first_plies):
    """Running positions from the middle of random games on, all different, with their exact solutions."""
    found, seed = {}, 0
    while len(found) < count:
        position = play_randomly(Position.start(RULES), first_plies + seed % 10, 100_000 + seed)
        seed += 1
        if not position.is_over:
            found[position.text()] = position
    solver = Solver(RULES)
    return [(p, solver.solve(p)) for p in found.values()]


def searched(positions, evaluator, policy, simulations):
    env = BatchEnv(RULES, len(positions))
    env.reset(positions=positions)
    search = BatchSearch(lambda: BatchEnv(RULES, len(positions)), evaluator, policy, simulations)
    return search.run(env, np.zeros(len(positions), np.uint64))


def still_wrong(cases, policy, simulations):
    """The cases in which a search by an evaluator that knows nothing is still wrong."""
    wrong, batch = [], max(1, 200_000 // simulations)
    for start in range(0, len(cases), batch):
        part = cases[start : start + batch]
        result = searched([p for p, _ in part], UniformEvaluator(), policy, simulations)
        for (position, solution), action, value in zip(part, result.actions, result.root_value, strict=True):
            assert abs(value) <= 1
            lost = solution.value == 1 and action not in solution.winning
            if lost or np.sign(value) != solution.value:
                wrong.append((position, solution))
    return wrong


def told_wrong_before(cases, policy, most):
    """Search with ever more simulations until all cases are right; gives how many were wrong after each number."""
    counts, simulations = {}, 1_000
    while cases and simulations <= most:
        cases = still_wrong(cases, policy, simulations)
        counts[simulations] = len(cases)
        simulations *= 4
    return counts, [p.text() for p, _ in cases]


@pytest.mark.parametrize("name", POLICIES)
def test_winning_moves_and_signs_are_found_late_in_the_game(name):
    _, wrong = told_wrong_before(middle_positions(60, 13), POLICIES[name](), 16_000)
    assert wrong == []


# PUCT without proofs comes to the truth as well, but by far more simulations: later positions have to do.
FIRST_PLIES = {"gumbel": 8, "puct": 10, "puct that proves": 8}


@pytest.mark.slow
@pytest.mark.timeout(9000)
@pytest.mark.parametrize("name", POLICIES)
def test_winning_moves_and_signs_are_found_from_the_middle_of_the_game_on(name):
    counts, wrong = told_wrong_before(middle_positions(500, FIRST_PLIES[name]), POLICIES[name](), 16_384_000)
    print(name, counts)
    assert wrong == []


@pytest.fixture(scope="module")
def exact():
    solver = Solver(RULES, table_bits=21)
    return solver, ExactEvaluator(lambda states: [solver.value(s) for s in states])


@pytest.mark.parametrize("name", POLICIES)
def test_with_an_exact_evaluator_forced_wins_are_found_through_second_stone_and_swap(name, exact):
    solver, evaluator = exact
    even, good, bad = "3/2b1/5/b3/3", "3/4/1b3/2b1/3", "b2/4/5/4/2b"
    positions = [
        Position.parse(text, RULES)
        for text in (
            f"{even} w 1 0 - 0",  # swap open
            f"{good} w 1 0 - 0",
            f"{bad} w 1 0 - 0",
            f"{good} w 1 0 s 0",  # swapped: White's first stone of two
            f"{bad} w 1 0 s 0",
            "b2/4/2w2/4/2b w 1 1 s 0",  # White's second stone
        )
    ]
    result = searched(positions, evaluator, POLICIES[name](), 200)
    for position, action, root in zip(positions, result.actions, result.root_value, strict=True):
        solution = solver.solve(position)
        if solution.value == 1:
            assert action in solution.winning, position.text()
        assert np.sign(root) == solution.value, position.text()


@pytest.mark.parametrize("name", POLICIES)
def test_root_values_come_nearer_to_the_truth(name):
    cases = middle_positions(40, 12)
    errors = []
    for simulations in (100, 1_000, 10_000):
        result = searched([p for p, _ in cases], UniformEvaluator(), POLICIES[name](), simulations)
        errors.append(np.abs(result.root_value - [s.value for _, s in cases]).mean())
    assert errors[0] > errors[1] > errors[2]
    assert errors[2] < 0.35
