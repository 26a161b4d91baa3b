"""The PettingZoo environment keeps that library's contract."""

import copy

import numpy as np
import pytest
from pettingzoo.test import api_test, seed_test
from pettingzoo.utils.env_logger import EnvLogger

from lifeline.adapters.pettingzoo import AGENTS, LifelineEnv, env
from lifeline.errors import ConfigError
from lifeline.rules import Rules

# Both are said of every environment whose observation holds an action mask, those of PettingZoo itself excepted.
KNOWN = [
    pytest.mark.filterwarnings("ignore:Observation space for each agent probably should be:UserWarning"),
    pytest.mark.filterwarnings("ignore:Observation is not a NumPy array:UserWarning"),
]
ALL_OPENINGS = [
    {"base": 3},
    {"base": 4, "opening": "weak_pie", "adjacent_setup": "forbidden"},
    {"base": 3, "opening": "komi_pie", "komi": 99},
]


class TestContract:
    pytestmark = KNOWN

    @pytest.mark.parametrize("arguments", ALL_OPENINGS, ids=str)
    def test_it_passes_the_api_test(self, arguments):
        api_test(env(**arguments), num_cycles=200)

    def test_it_passes_the_seed_test(self):
        seed_test(env, num_cycles=30)


def test_a_game_by_agent_iter_pays_both_agents_once():
    game, rng = env(), np.random.default_rng(1)
    game.reset(seed=3)
    paid = dict.fromkeys(AGENTS, 0.0)
    for agent in game.agent_iter():
        observation, reward, terminated, truncated, _ = game.last()
        assert not truncated
        paid[agent] += reward
        legal = np.flatnonzero(observation["action_mask"])
        game.step(None if terminated else int(rng.choice(legal)))
    assert sorted(paid.values()) == [-1, 1]
    assert game.agents == []


def test_the_agent_that_waits_may_do_nothing():
    game = LifelineEnv(Rules(3))
    game.reset()
    assert game.observe("seat_0")["action_mask"].sum() == 19
    assert game.observe("seat_1")["action_mask"].sum() == 0


def test_observations_are_the_agents_own():
    """What an agent keeps does not change when the game goes on."""
    game = LifelineEnv(Rules(3))
    game.reset()
    kept = game.observe("seat_0")
    before = copy.deepcopy(kept)
    game.step(0)
    for name, array in before.items():
        np.testing.assert_array_equal(kept[name], array)


def test_a_copy_goes_its_own_way():
    game = LifelineEnv(Rules(3))
    game.reset()
    other = copy.deepcopy(game)
    other.step(0)
    assert game.position.text() == "3/4/5/4/3 b 0 0 - 0"


def test_it_is_drawn_as_text_with_the_last_stone():
    game = env(render_mode="ansi")
    game.reset()
    game.step(9)
    assert " c  · ·(●)· ·  5" in game.render().split("\n")
    game.close()
    with pytest.raises(ConfigError, match="the render mode is ansi or None, not 'human'"):
        env(render_mode="human")


def test_a_step_before_the_first_reset_is_refused():
    EnvLogger.suppress_output()
    with pytest.raises(AttributeError, match=r"before calling reset|cannot be accessed before reset"):
        env().agents  # noqa: B018
