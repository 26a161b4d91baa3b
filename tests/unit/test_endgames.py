"""The last plies of games are taught by the truth, as far as the solver gets, whatever games came before."""

import numpy as np
import pytest

from lifeline import Rules
from lifeline.search.evaluator import UniformEvaluator
from lifeline.solver import Solver
from training.backward import BackwardSolver
from training.config import SearchConfig, SelfPlayConfig
from training.endgames import Endgames
from training.held_out import held_out
from training.selfplay import SelfPlay

RULES = Rules(3)


def games(solve_nodes=0, plies=45, rules=RULES, **settings):
    config = SelfPlayConfig(batch_size=16, solve_nodes=solve_nodes, **settings)
    search = SearchConfig(num_simulations=8)
    return SelfPlay(rules, config, search, UniformEvaluator(), np.random.default_rng(3)).play(plies)


def test_solved_plies_have_the_solvers_value_and_policies_without_losing_moves():
    solver, held = Solver(RULES, table_bits=18), held_out(RULES)
    solved, taught, exact = 0, 0, 0
    for plain, game in zip(games(), games(500), strict=True):
        assert np.array_equal(plain.states, game.states)
        assert not plain.solved.any()
        known = np.flatnonzero(game.solved)
        if not len(known):
            assert held.contains(game.states[-1:]).all()
            continue
        assert np.array_equal(plain.policy_targets[: known[0]], game.policy_targets[: known[0]])
        for ply in known:
            truth = solver.solve_state(game.states[ply])
            assert game.solved[ply] == truth.value
            target, before = (g.policy_targets[ply].astype(np.float64) for g in (game, plain))
            assert target.sum() == pytest.approx(1, abs=2e-3)
            if truth.value < 0:
                assert np.array_equal(target, before)
                continue
            assert set(np.flatnonzero(target)) >= set(truth.winning)  # and what a limit left open
            assert target[list(truth.winning)].sum() > before[list(truth.winning)].sum() - 1e-2
            taught += 1
            exact += set(np.flatnonzero(target)) == set(truth.winning)
        rest = np.setdiff1d(np.arange(known[0], len(game)), known)
        assert held.contains(game.states[rest]).all()
        solved += len(known)
    assert solved > 100
    assert exact > 0.6 * taught > 20


def test_a_policy_target_keeps_its_proportions_among_the_moves_that_win():
    """Up to a little that even the most unexpected of them gets."""
    for game in games():
        _, targets, share = Endgames(BackwardSolver(RULES, 300)).solve(game.states, game.policy_targets)
        for before, after, of in zip(game.policy_targets, targets, share, strict=True):
            kept = np.flatnonzero(after)
            assert of == pytest.approx(before[kept].astype(np.float64).sum(), abs=3e-3)
            expected = before[kept].astype(np.float64) + 1e-3
            if not np.array_equal(before, after):
                assert after[kept] == pytest.approx(expected / expected.sum(), abs=1e-3)


def test_plies_without_a_policy_target_get_none():
    settings = {"full_search_share": 0.5, "cheap_simulations": 4}
    plain, searched = games(**settings), games(200, **settings)
    won = 0
    for before, after in zip(plain, searched, strict=True):
        blank = ~before.policy_targets.any(axis=1)
        assert np.array_equal(blank, ~after.policy_targets.any(axis=1))
        assert not after.surprise[blank].any()
        won += (after.solved[blank] > 0).sum()
    assert won > 10


def test_what_the_truth_takes_away_is_a_surprise():
    more = 0
    for before, after in zip(games(), games(500), strict=True):
        changed = (before.policy_targets != after.policy_targets).any(axis=1)
        assert np.allclose(before.surprise[~changed].astype(float), after.surprise[~changed].astype(float), atol=1e-2)
        more += (after.surprise[changed].astype(float) > before.surprise[changed] + 0.05).sum()
    assert more > 10


@pytest.mark.parametrize("rules", [Rules(3, "weak_pie"), Rules(3, "komi_pie", komi=2), Rules(4)])
def test_other_rules_are_solved_too(rules):
    found = [g.solved for g in games(100, plies=70, rules=rules)]
    assert found
    assert all(s[-1] != 0 for s in found)
