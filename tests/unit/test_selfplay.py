"""Self-play: whole games, each by itself, a share from openings it would not choose."""

import logging

import numpy as np
import pytest

from lifeline import BatchEnv, Position, Rules
from lifeline.kernels import decode_state, encode_position
from lifeline.search.evaluator import UniformEvaluator
from lifeline.streams import derive, draw_keys
from training.config import SearchConfig, SelfPlayConfig
from training.held_out import held_out
from training.selfplay import SelfPlay


def selfplay(batch=8, seed=0, share=0.5, cap=0):
    config = SelfPlayConfig(batch_size=batch, random_opening_share=share, ply_cap=cap)
    return SelfPlay(Rules(3), config, SearchConfig(num_simulations=4), UniformEvaluator(), np.random.default_rng(seed))


def test_trajectories_replay_by_their_actions():
    games = selfplay().play(60)
    assert len(games) > 10
    for game in games:
        env = BatchEnv(Rules(3), 1)
        env.scatter(None, game.states[:1])
        for state, action, seat, target in zip(
            game.states, game.actions, game.to_play, game.policy_targets, strict=True
        ):
            assert (env.gather()[0] == state).all()
            assert env.to_play[0] == seat
            assert (target[~env.legal_action_mask[0]] == 0).all()
            env.step(np.array([action]))
        assert env.terminated[0]
        assert env.outcome[0] == game.outcome


def test_a_share_of_games_starts_from_random_first_turns():
    starts = {0: 0, 2: 0, 3: 0, 4: 0}
    for game in selfplay(batch=64).play(40):
        starts[game.random_plies] += 1
        position = decode_state(game.states[0], Rules(3))
        assert position.turn == game.random_plies // 2
        assert position.swapped == (game.random_plies == 3)
    total = sum(starts.values())
    assert 0.35 < starts[0] / total < 0.65
    assert starts[2] > total / 16
    assert starts[3] > total / 16
    assert starts[4] > total / 8
    assert all(g.random_plies == 0 for g in selfplay(share=0.0).play(30))


@pytest.mark.parametrize("rules", [Rules(3), Rules(4, "weak_pie"), Rules(3, "komi_pie", komi=2)])
def test_random_first_turns_are_drawn_for_each_game_by_itself(rules):
    """Played in one batch, they are what a generator of each game's own makes of them by the plain rules."""
    config = SelfPlayConfig(batch_size=40, random_opening_share=0.6)
    games = SelfPlay(rules, config, SearchConfig(num_simulations=2), UniformEvaluator(), np.random.default_rng(5))
    games.play(1)
    seen = set()
    for row, key in enumerate(draw_keys(np.random.default_rng(5), 40)):
        rng = np.random.default_rng(derive(np.array([key]), np.zeros(1, np.int64))[0])
        opened = rng.random() < 0.6
        while True:
            position, plies = Position.start(rules), 0
            turns = int(rng.integers(1, 3)) if opened else 0
            while position.turn < turns:
                cells = [a for a in position.legal_actions() if a < rules.num_cells]
                position, plies = position.play(int(rng.choice(cells))), plies + 1
            if opened and rng.random() < 0.5 and position.may_swap:
                position, plies = position.play("swap"), plies + 1
            if not held_out(rules).contains(encode_position(position)[None])[0]:
                break
        assert (games._record["states"][row, 0] == encode_position(position)).all()
        assert games._random_plies[row] == plies
        seen.add(plies)
    assert len(seen) >= 3


def test_games_hang_on_their_keys_not_on_the_batch():
    """A batch of 8 plays all the games of a batch of 3: both draw the same keys in turn."""
    few, many = selfplay(batch=3), selfplay(batch=8)
    games = {g.actions.tobytes() for g in few.play(40)}
    assert len(games) > 3
    assert games <= {g.actions.tobytes() for g in many.play(60)}


def test_unfinished_games_go_on_from_their_state():
    one, other = selfplay(seed=1), selfplay(seed=2)
    one.play(13)
    state, rng = one.state(), one._rng.bit_generator.state
    other.load_state(state)
    other._rng.bit_generator.state = rng
    for a, b in zip(one.play(30), other.play(30), strict=True):
        assert (a.actions == b.actions).all()
        assert (a.policy_targets == b.policy_targets).all()


def test_a_met_ply_cap_is_reported_loudly(caplog):
    games = selfplay(cap=5)
    with caplog.at_level(logging.WARNING):
        finished = games.play(12)
    assert games.games_dropped > 0
    assert "cap of 5 plies" in caplog.text
    assert all(len(g.actions) <= 5 for g in finished)
