"""Levels: their names, what they may play, and that the better one is better."""

from itertools import pairwise

import numpy as np
import pytest

from game_records import random_moves
from gtp_talk import Hash
from lifeline import BatchEnv, ConfigError, Position, Rules
from lifeline.play.engine import Engine, EngineSettings
from lifeline.play.levels import LEVELS, Level, level_of, weakened_choice
from lifeline.play.players import Budget, NetworkPlayer, choose_move

RULES = Rules(3)


def test_levels_have_numbers_and_names():
    assert [level.number for level in LEVELS] == list(range(1, 11))
    assert len({level.name for level in LEVELS}) == 10
    assert level_of("3") is level_of("casual") is LEVELS[2]
    assert [level.is_full for level in LEVELS] == [False] * 9 + [True]
    for text in ("0", "11", "", "Casual", "3 ", "level3"):
        with pytest.raises(ConfigError, match="a level is one of 1 beginner, 2 novice"):
            level_of(text)


def test_each_level_holds_less_back_than_the_one_below():
    for below, above in pairwise(LEVELS[:-1]):
        assert below.simulations <= above.simulations
        assert below.doubt > above.doubt
        assert below.margin >= above.margin


def choices(level, prior, values, best, count=2000):
    found = [weakened_choice(level, prior, values, best, np.uint64(key)) for key in range(count)]
    return np.bincount(found, minlength=len(prior)) / count


def test_a_move_is_less_likely_the_worse_it_looks():
    prior, values = np.full(4, 0.25, np.float32), np.array([0.5, 0.3, 0.1, -0.9], np.float32)
    shares = choices(Level(1, "x", 2, doubt=0.2, margin=1.0), prior, values, 0)
    assert shares[0] > shares[1] > shares[2] > shares[3] == 0  # which is below the margin
    assert shares[0] / shares[1] == pytest.approx(np.e, rel=0.25)


def test_instinct_weighs_the_priors():
    prior, values = np.array([0.8, 0.2, 0.0], np.float32), np.zeros(3, np.float32)
    assert choices(Level(1, "x", 2, 0.5, instinct=1.0), prior, values, 0)[0] == pytest.approx(0.8, abs=0.04)
    shares = choices(Level(1, "x", 2, 0.5, instinct=0.0), prior, values, 0)
    assert shares[0] == pytest.approx(0.5, abs=0.04)
    assert shares[2] == 0  # illegal


def test_a_level_plays_the_same_for_the_same_seed_and_varies_with_it():
    player, position = NetworkPlayer(RULES, Hash(), Budget(level="casual")), Position.start(RULES)
    of = Engine(RULES, Hash(), EngineSettings(level="3"))
    played = [choose_move(player, position, seed) for seed in range(20)]
    assert played == [choose_move(player, position, seed) for seed in range(20)]
    assert played == [of.choose(position, seed).action for seed in range(20)]
    assert len(set(played)) > 5


@pytest.mark.parametrize("level", ["1", "5", "9"])
def test_levels_play_legal_moves_and_take_no_time(level):
    of = Engine(RULES, Hash(), EngineSettings(level=level, seconds=1000))
    for seed in range(10):
        moves, _ = random_moves(RULES, seed)
        position = Position.start(RULES)
        for move in moves[: seed + 1]:
            position = position.play(move)
        if not position.is_over:
            choice = of.choose(position, seed)
            assert position.is_legal(choice.action)
            assert choice.analysis.simulations <= LEVELS[int(level) - 1].simulations


def test_a_level_looks_at_as_many_positions_as_it_says_in_many_games_too():
    env = BatchEnv(RULES, 3)
    of = Engine(RULES, Hash(), EngineSettings(level="2"))
    keys = np.arange(3, dtype=np.uint64)
    assert of.actions(env, keys).tolist() == [of.actions(_one(env, row), keys[row : row + 1])[0] for row in range(3)]


def _one(env, row):
    one = BatchEnv(env.rules, 1)
    one.scatter(None, env.gather(np.array([row])))
    return one
