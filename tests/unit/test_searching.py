"""How self-play searches: in groups that change nothing, cheaply at some plies, with ever more simulations."""

import numpy as np
import pytest

from gtp_talk import Hash
from lifeline import BatchEnv, Rules
from lifeline.search.evaluator import UniformEvaluator
from lifeline.search.gumbel import GumbelConstants, GumbelPolicy
from lifeline.search.puct import PuctPolicy
from lifeline.search.search import BatchSearch
from training.config import SearchConfig, SelfPlayConfig
from training.searching import GroupedSearch, make_policy, num_groups, simulations_at
from training.selfplay import SelfPlay

RULES = Rules(3)
PUCT = SearchConfig(policy="puct", num_simulations=12)
EVERYTHING = {
    "temperature_share": 0.5,
    "final_temperature": 0.3,
    "full_search_share": 0.5,
    "cheap_simulations": 3,
    "resign_below": 0.0,
    "resign_plies": 2,
    "resign_play_on": 0.5,
}


def selfplay(search=PUCT, seed=0, evaluator=None, on_gpu=False, **settings):
    config = SelfPlayConfig(**{"batch_size": 8} | settings)
    return SelfPlay(RULES, config, search, evaluator or Hash(), np.random.default_rng(seed), on_gpu)


def assert_equal_games(some, others):
    assert len(some) > 3
    for one, other in zip(some, others, strict=True):
        for name, value in vars(one).items():
            assert np.array_equal(value, getattr(other, name)), name


def middle_games(batch=6):
    env = BatchEnv(RULES, batch)
    env.step_random(np.full(batch, 5), np.array([3], np.uint64))
    assert not env.terminated.any()
    return env


@pytest.mark.parametrize("policy", ["gumbel", "puct"])
def test_games_do_not_hang_on_the_groups(policy):
    settings = EVERYTHING if policy == "puct" else {k: v for k, v in EVERYTHING.items() if "temperature" not in k}
    search = SearchConfig(policy=policy, num_simulations=12, first_simulations=4, growth_steps=100)
    games = {}
    for groups in (1, 2, 3):
        source = selfplay(search, groups=groups, **settings)
        games[groups] = []
        for version in (0, 50, 200):
            source.use(Hash(), version)
            games[groups] += source.play(12)
    assert_equal_games(games[1], games[2])
    assert_equal_games(games[1], games[3])
    assert any(g.resigned >= 0 for g in games[1])
    assert any(g.would_resign >= 0 for g in games[1])


def test_two_groups_are_for_gpus():
    assert num_groups(SelfPlayConfig(), on_gpu=False) == 1
    assert num_groups(SelfPlayConfig(), on_gpu=True) == 2
    assert num_groups(SelfPlayConfig(batch_size=1), on_gpu=True) == 1
    assert num_groups(SelfPlayConfig(groups=3), on_gpu=False) == 3


def test_one_group_is_evaluated_while_another_selects():
    sizes = []

    class Sizes(UniformEvaluator):
        def evaluate(self, leaves):
            sizes.append(leaves.batch_size)
            return super().evaluate(leaves)

    selfplay(evaluator=Sizes(), on_gpu=True).play(1)
    assert sizes == [4] * 2 * 13  # by turns, the root and 12 simulations of each


@pytest.mark.parametrize("policy", ["gumbel", "puct"])
def test_a_search_without_noise_hangs_on_no_key(policy):
    env, cold = middle_games(), np.zeros(6)
    search = GroupedSearch(RULES, 6, 1, SearchConfig(policy=policy), Hash())

    def visits(noise, seed):
        keys = np.arange(6, dtype=np.uint64) + np.uint64(1000 * seed)
        return search.run(env, keys, 16, noise, cold).visit_counts.tolist()

    assert visits(False, 0) == visits(False, 1)
    assert visits(True, 0) != visits(True, 1)


def test_the_constants_of_the_config_are_those_of_the_policy():
    settings = {"c_puct": 2.0, "c_log": 0.1, "c_base": 30.0, "fpu_reduction": 0.5, "fpu_value": -1.0}
    noise = {"noise_share": 0.4, "noise_total": 5.0}
    loud = make_policy(SearchConfig(policy="puct", **settings, **noise), noise=True)
    assert isinstance(loud, PuctPolicy)
    assert (settings | noise | {"leaves": 1}).items() <= vars(loud.constants).items()
    assert make_policy(SearchConfig(policy="puct"), noise=False).constants.noise_share == 0
    config = SearchConfig(max_considered=5, c_visit=7.0, c_scale=0.3)
    assert make_policy(config, noise=True).constants == GumbelConstants(5, 7.0, 0.3, 1.0)
    assert make_policy(config, noise=False).constants == GumbelConstants(5, 7.0, 0.3, 0.0)


def test_simulations_grow_with_the_learner():
    assert simulations_at(SearchConfig(), 10**6) == 16
    growing = SearchConfig(num_simulations=64, first_simulations=4, growth_steps=1000)
    assert [simulations_at(growing, v) for v in (0, 500, 508, 999, 1000, 10**6)] == [4, 34, 34, 64, 64, 64]
    source = selfplay(growing)
    for version, simulations in ((0, 4), (500, 34), (5000, 64)):
        before = source.evaluations
        source.use(Hash(), version)
        source.play(1)
        assert source.evaluations - before == 8 * (simulations + 1)


def test_more_simulations_than_a_search_was_made_for_take_more_memory():
    env, keys = middle_games(), np.arange(6, dtype=np.uint64)
    search, large = (BatchSearch(lambda: BatchEnv(RULES, 6), Hash(), GumbelPolicy(), n) for n in (4, 100))
    search.run(env, keys)
    assert search._tree.shape[1] == 5  # no more than it needs
    search.num_simulations = 100
    assert search.run(env, keys).visit_counts.tolist() == large.run(env, keys).visit_counts.tolist()
    assert large._tree.shape[1] == 101


def test_cheap_plies_teach_no_policy_and_take_fewer_simulations():
    source = selfplay(full_search_share=0.4, cheap_simulations=3, random_opening_share=0.0)
    counts = []
    for _ in range(40):
        before = source.evaluations
        source.play(1)
        counts.append((source.evaluations - before) // 8 - 1)
    assert set(counts) == {3, 12}
    assert 8 <= counts.count(12) <= 24
    # The games that began first have had the coins of the first plies, all of them the same.
    full = [n == 12 for n in counts]
    first = selfplay(full_search_share=0.4, cheap_simulations=3, random_opening_share=0.0).play(40)[:3]
    for game in first:
        assert game.policy_targets.any(axis=1).tolist() == full[: len(game)]
        assert np.allclose(game.policy_targets.sum(axis=1)[full[: len(game)]], 1, atol=0.01)
        assert game.root_values.any()


def test_cheap_plies_never_take_more_than_full_ones():
    search = SearchConfig(num_simulations=12, first_simulations=2, growth_steps=1000)
    source = selfplay(search, full_search_share=0.5, cheap_simulations=8)
    source.play(6)
    assert source.evaluations == 6 * 8 * 3


def test_moves_are_drawn_early_and_chosen_late(monkeypatch):
    """Random first turns count as plies of the game."""
    told = []
    run = GroupedSearch.run

    def spy(self, env, keys, num_simulations, noise, temperature):
        told.append(temperature.tolist())
        return run(self, env, keys, num_simulations, noise, temperature)

    monkeypatch.setattr(GroupedSearch, "run", spy)
    source = selfplay(temperature=0.7, temperature_share=0.4, final_temperature=0.1, random_opening_share=0.5)
    for _ in range(30):
        plies = source._plies + source._random_plies
        begun = source._begun
        source.play(1)
        assert not begun or told[-1] == [0.7 if p < 0.4 * 19 else 0.1 for p in plies]
    assert {t for temperatures in told for t in temperatures} == {0.7, 0.1}


@pytest.mark.parametrize(("policy", "plies", "value"), [("puct", 6, 0.0), ("gumbel", 100, 1.0)])
def test_unless_told_otherwise_puct_draws_moves_early_and_gumbel_search_to_the_end(monkeypatch, policy, plies, value):
    told = []
    run = GroupedSearch.run

    def spy(self, env, keys, num_simulations, noise, temperature):
        told.append(temperature[0])
        return run(self, env, keys, num_simulations, noise, temperature)

    monkeypatch.setattr(GroupedSearch, "run", spy)
    config = SelfPlayConfig(batch_size=1, random_opening_share=0)
    source = SelfPlay(RULES, config, SearchConfig(policy=policy, num_simulations=2), Hash(), np.random.default_rng(0))
    while not source.play(1):
        pass
    assert told[:plies] == [1.0] * len(told[:plies])
    assert told[-1] == value


def test_temperature_varies_the_games():
    env = middle_games()
    search = GroupedSearch(RULES, 6, 2, PUCT, Hash())

    def moves(temperature):
        keys = [np.arange(6, dtype=np.uint64) + np.uint64(1000 * seed) for seed in range(8)]
        return {tuple(search.run(env, k, 12, False, np.full(6, temperature)).actions) for k in keys}

    assert len(moves(0.0)) == 1
    assert len(moves(1.0)) > 4


def test_gumbel_search_plays_what_its_noise_favours_early_and_the_best_later():
    env, keys = middle_games(), np.arange(6, dtype=np.uint64)
    search = GroupedSearch(RULES, 6, 2, SearchConfig(num_simulations=12), Hash())
    drawn = search.run(env, keys, 12, True, np.ones(6))
    best = search.run(env, keys, 12, True, np.zeros(6))
    assert np.array_equal(drawn.policy_target, best.policy_target)
    assert np.array_equal(best.actions, best.policy_target.argmax(axis=1))
    assert (drawn.actions != best.actions).any()
    mixed = search.run(env, keys, 12, True, np.array([1.0, 0.0] * 3))
    assert np.array_equal(mixed.actions, np.where([True, False] * 3, drawn.actions, best.actions))
    over = BatchEnv(RULES, 6)
    over.step_random(np.full(6, 1000), np.array([3], np.uint64))
    assert over.terminated.all()
    assert (search.run(over, keys, 12, True, np.zeros(6)).actions == -1).all()


def test_unfinished_games_go_on_from_their_state_with_everything_switched_on():
    one, other = selfplay(seed=1, **EVERYTHING), selfplay(seed=2, groups=2, **EVERYTHING)
    one.play(13)
    assert one._resignation.below.any()
    state, rng = one.state(), one._rng.bit_generator.state
    other.load_state(state)
    other._rng.bit_generator.state = rng
    assert_equal_games(one.play(25), other.play(25))
