"""Several sizes in one run: each gets its share, in its turn."""

import numpy as np
import pytest

from lifeline import ConfigError, Rules
from lifeline.search.evaluator import UniformEvaluator
from training.config import LearnerConfig, build_config
from training.learner import rate_at
from training.mixing import MixedPlay
from training.trajectory import by_size


def config(**game):
    values = {"game": game, "selfplay": {"batch_size": 8}, "search": {"num_simulations": 2}}
    return build_config(values, "test")


def plies(games):
    """Plies by number of actions."""
    return {group[0].policy_targets.shape[1]: sum(len(g) for g in group) for group in by_size(games)}


def test_sizes_are_played_by_their_shares():
    mixed = MixedPlay(config(base=3, mix={3: 1, 4: 3}), UniformEvaluator(), np.random.default_rng(0))
    games = [game for _ in range(200) for game in mixed.play(4)]
    found = plies(games)
    assert found[Rules(4).num_actions] / sum(found.values()) == pytest.approx(0.75, abs=0.06)
    assert mixed.evaluations == 200 * 4 * 8 * 3


def test_larger_boards_join_by_the_curriculum_and_do_not_catch_up():
    mixed = MixedPlay(
        config(base=3, mix={3: 1, 4: 1}, curriculum_steps=100), UniformEvaluator(), np.random.default_rng(0)
    )
    small, large = (Rules(base).num_actions for base in (3, 4))
    assert plies([g for _ in range(40) for g in mixed.play(4)]).keys() == {small}
    mixed.use(UniformEvaluator(), 100)
    found = plies([g for _ in range(160) for g in mixed.play(4)])
    assert found[large] / sum(found.values()) == pytest.approx(0.5, abs=0.1)


def test_a_run_that_stopped_before_a_size_joined_goes_on_as_if_it_had_not():
    sizes = config(base=3, mix={3: 1, 4: 1}, curriculum_steps=100)
    rngs = [np.random.default_rng(seed) for seed in (0, 1)]
    one, other = (MixedPlay(sizes, UniformEvaluator(), rng) for rng in rngs)
    for _ in range(5):
        one.play(4)
    other.load_state(one.state())
    rngs[1].bit_generator.state = rngs[0].bit_generator.state
    for play in (one, other):
        play.use(UniformEvaluator(), 100)
    games = [[g for _ in range(60) for g in play.play(4)] for play in (one, other)]
    assert Rules(4).num_actions in plies(games[1])
    assert len({g.game_id for g in games[1]}) == len(games[1])
    assert [g.game_id for g in games[0]] == [g.game_id for g in games[1]]


def test_one_size_is_the_usual_case():
    sizes = config(base=4).game.sizes()
    assert sizes == {Rules(4): 1.0}
    assert list(config(base=5, mix={5: 3, 3: 1}).game.sizes().items()) == [(Rules(3), 0.25), (Rules(5), 0.75)]


@pytest.mark.parametrize(
    ("game", "says"),
    [
        ({"base": 3, "mix": {4: 1, 5: 1}}, r"game.mix \[4, 5\] must have game.base 3 in it"),
        ({"base": 3, "mix": {3: 1, 4: 0}}, "shares of game.mix must be above 0"),
        ({"base": 3, "mix": {3: 1, 13: 1}}, "13"),
        ({"base": 3, "curriculum_steps": 5}, "needs several bases"),
        ({"base": 3, "mix": {"three": 1}}, "game.mix"),
    ],
)
def test_mixes_that_cannot_be_are_refused(game, says):
    with pytest.raises(ConfigError, match=says):
        config(**game)


def test_the_rate_falls_at_the_end_of_a_session():
    falling = LearnerConfig(anneal_share=0.4, final_rate_share=0.1)
    assert [rate_at(falling, done) for done in (0, 0.6, 0.8, 1, 1.2)] == pytest.approx([1, 1, 0.55, 0.1, 0.1])
    assert [rate_at(LearnerConfig(), done) for done in (0, 1)] == [1, 1]
