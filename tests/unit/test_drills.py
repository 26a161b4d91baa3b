"""Drills teach the truth about endings, never about positions that models are graded on, and count as no games."""

import numpy as np
import pytest

from lifeline import ConfigError, Rules
from lifeline.kernels import decode_state
from lifeline.search.evaluator import UniformEvaluator
from lifeline.solver import Solver
from training.backward import BackwardSolver
from training.config import SearchConfig, SelfPlayConfig, build_config
from training.drills import Drills
from training.held_out import HeldOut, held_out
from training.selfplay import SelfPlay
from training.shards import ShardStore
from training.targets import samples_of
from training.trajectory import pack, unpack, without_drills

RULES = Rules(3)


def drills(count, nodes=500, rules=RULES, first=0):
    made = Drills(BackwardSolver(rules, nodes))
    return [d for game_id in range(first, first + count) for d in made.make(game_id, 1, 7)]


def same(one, other):
    return all(np.array_equal(a, b) for a, b in zip(pack(one).values(), pack(other).values(), strict=True))


@pytest.mark.parametrize("opening", ["strong_pie", "weak_pie", "komi_pie"])
def test_values_and_winning_moves_are_the_solvers(opening):
    rules = Rules(3, opening, 2 if opening == "komi_pie" else 0)
    solver, taught = Solver(rules, table_bits=18), 0
    for drill in drills(20, rules=rules):
        for state, value, target in zip(drill.states, drill.solved, drill.policy_targets, strict=True):
            truth = solver.solve_state(state)
            assert value == truth.value
            if target.any():
                taught += 1
                assert set(np.flatnonzero(target)) == set(truth.winning)
                assert target.sum() == pytest.approx(1, abs=2e-3)
    assert taught > 20


def test_as_many_won_as_lost_positions_are_taught_and_none_that_is_held_out():
    made = drills(40)
    values = np.concatenate([d.solved for d in made])
    assert len(values) > 200
    assert all(d.solved.sum() == 0 for d in made)
    assert set(np.unique(values)) == {-1, 1}
    assert not any(held_out(RULES).contains(d.states).any() for d in made)


def test_held_out_positions_do_come_up_and_are_left_out(monkeypatch):
    before = drills(30)
    graded = np.concatenate([d.states for d in before])[::3]
    names = {decode_state(state, RULES).text() for state in graded}

    def left_out(self, states):
        return np.array([decode_state(state, RULES).text() in names for state in states])

    monkeypatch.setattr(HeldOut, "contains", left_out)
    after = np.concatenate([d.states for d in drills(30)])
    assert len(after)
    assert not any(decode_state(state, RULES).text() in names for state in after)


def test_a_drill_hangs_on_its_game_alone_and_each_has_a_number_of_its_own():
    alone = drills(1, first=9)
    assert same(drills(10)[-len(alone) :], alone)
    ids = [d.game_id for d in drills(50)]
    assert len(set(ids)) == len(ids)


def test_what_they_teach_is_the_truth_alone():
    made = drills(10)
    samples = samples_of(made, 0.3, 0.5)
    values = np.concatenate([d.solved for d in made])
    assert np.array_equal(samples.value_targets, (1 + values) / 2)
    assert (samples.plies_ahead == -1).all()  # nothing is to be foreseen in what was played at random
    assert np.array_equal(samples.weights, np.ones(len(samples)))


def selfplay(count):
    config = SelfPlayConfig(batch_size=8, solve_nodes=200, drills=count)
    return SelfPlay(RULES, config, SearchConfig(num_simulations=4), UniformEvaluator(), np.random.default_rng(3))


def test_self_play_gives_them_beside_the_same_games(tmp_path):
    plain, beside = selfplay(0).play(40), selfplay(2).play(40)
    assert same(plain, without_drills(beside))
    made = len(beside) - len(plain)
    assert 3 * len(plain) < made <= 4 * len(plain)
    assert same(unpack(pack(beside)), beside)
    store = ShardStore(tmp_path, 1e9)
    store.append(beside)
    store.flush(0)
    assert store.shards[0].games == len(plain)
    assert store.shards[0].samples == sum(map(len, beside))


def test_they_need_the_solver():
    with pytest.raises(ConfigError, match=r"selfplay\.drills needs selfplay\.solve_nodes"):
        build_config({"selfplay": {"drills": 1}}, "a test")
