"""Games that stray: which and how far hangs on their keys; their plies are searched as any others."""

import numpy as np
import pytest

from lifeline import BatchEnv, Rules
from lifeline.search.evaluator import UniformEvaluator
from lifeline.streams import draw_keys
from training.config import SearchConfig, SelfPlayConfig
from training.selfplay import SelfPlay
from training.straying import Straying

RULES = Rules(3)


def selfplay(share=0.5, batch=64, seed=0, **settings):
    config = SelfPlayConfig(batch_size=batch, stray_share=share, random_opening_share=0.0, **settings)
    return SelfPlay(RULES, config, SearchConfig(num_simulations=4), UniformEvaluator(), np.random.default_rng(seed))


def test_a_share_of_games_strays_up_to_a_random_ply():
    keys = draw_keys(np.random.default_rng(0), 20_000)
    until = Straying(RULES, 0.3).until(keys)
    assert np.array_equal(until, Straying(RULES, 0.3).until(keys))
    assert (until > 0).mean() == pytest.approx(0.3 * 23 / 24, abs=0.015)
    assert np.bincount(until[until > 0], minlength=24)[1:].min() > 0.7 * 6000 / 24
    assert until.max() == 23
    assert not Straying(RULES, 0.0).until(keys).any()


def test_half_of_their_moves_are_random_placements():
    batch = 8000
    env = BatchEnv(RULES, batch)
    env.step_random(np.full(batch, 6), np.array([3], np.uint64))
    keys, plies = draw_keys(np.random.default_rng(1), batch), np.full(batch, 6)
    until = np.where(np.arange(batch) % 2, 6, 7)
    mask = env.legal_action_mask
    moves = Straying(RULES, 1.0).moves(keys, plies, until, mask)
    assert (moves[1::2] == -1).all()
    moved = np.flatnonzero(moves >= 0)
    assert len(moved) / (batch / 2) == pytest.approx(0.5, abs=0.03)
    assert mask[moved, moves[moved]].all()
    again = Straying(RULES, 1.0).moves(keys[100:], plies[100:], until[100:], mask[100:])
    assert np.array_equal(again, moves[100:])
    start = BatchEnv(RULES, 4000)
    drawn = Straying(RULES, 1.0).moves(
        keys[:4000], np.zeros(4000, np.int64), np.ones(4000, np.int64), start.legal_action_mask
    )
    assert np.bincount(drawn[drawn >= 0], minlength=19).min() > 0.6 * 2000 / 19


def test_strayed_plies_are_told_and_the_others_follow_the_search():
    games = selfplay().play(60)
    strayed = [g for g in games if g.strayed.any()]
    assert 0.25 < len(strayed) / len(games) < 0.6
    for game in games:
        env = BatchEnv(RULES, 1)
        for ply, action in enumerate(game.actions):
            assert (env.gather()[0] == game.states[ply]).all()
            assert game.policy_targets[ply].astype(np.float64).sum() == pytest.approx(1, abs=1e-2)
            env.step(np.array([action]))
        assert env.terminated[0]
    assert np.mean([g.strayed.mean() for g in strayed]) > 0.1
    assert not any(g.strayed.any() for g in selfplay(share=0.0).play(40))


def test_unfinished_games_go_on_straying():
    one, other = selfplay(seed=1), selfplay(seed=2)
    one.play(9)
    other.load_state(one.state())
    other._rng.bit_generator.state = one._rng.bit_generator.state
    for a, b in zip(one.play(25), other.play(25), strict=True):
        assert np.array_equal(a.actions, b.actions)
        assert np.array_equal(a.strayed, b.strayed)
