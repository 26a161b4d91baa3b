"""A game in a batch is the game alone: neighbours, order, finished games and resets of others change nothing."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from game_positions import legal_actions, play_randomly, positions, rules
from lifeline import kernels
from lifeline.env import BatchEnv
from lifeline.errors import IllegalMoveError, RulesError
from lifeline.rules import Position, Rules


@st.composite
def batches(draw, bases=(3, 4, 5, 7, 8), least=1):
    """An environment of up to six games in all stages."""
    game = draw(rules(bases))
    env = BatchEnv(game, draw(st.integers(least, 6)))
    seeds = draw(st.lists(st.integers(0, 2**16), min_size=env.batch_size, max_size=env.batch_size))
    longest = draw(st.sampled_from([4, game.num_cells, 10**4]))
    env.reset(positions=[play_randomly(Position.start(game), seed % (longest + 1), seed) for seed in seeds])
    return env


def choose(env, rng):
    """A random legal action for each running game, and nonsense for each finished one."""
    choices = [legal_actions(env, row) or [-7] for row in range(env.batch_size)]
    return np.array([rng.choice(actions) for actions in choices])


def all_of(env, row):
    """Everything an environment tells of one game."""
    arrays = (env.gather(np.array([row])), env.legal_action_mask[row], env.observation[row])
    scalars = (env.to_play[row], env.terminated[row], env.outcome[row], env.position(row))
    return [a.tobytes() for a in arrays] + list(scalars)


def alone(env, row):
    """An environment of one with the same game."""
    single = BatchEnv(env.rules, 1)
    single.scatter(None, env.gather(np.array([row])))
    return single


@settings(max_examples=60)
@given(env=batches(), seed=st.integers(0, 2**16))
def test_each_game_of_a_batch_runs_as_it_does_alone(env, seed):
    rng = np.random.default_rng(seed)
    singles = [alone(env, row) for row in range(env.batch_size)]
    for _ in range(8):
        actions = choose(env, rng)
        env.step(actions)
        for row, single in enumerate(singles):
            single.step(actions[row : row + 1])
            assert all_of(env, row) == all_of(single, 0)


@settings(max_examples=60)
@given(env=batches(), seed=st.integers(0, 2**16))
def test_the_order_of_games_does_not_matter(env, seed):
    rng = np.random.default_rng(seed)
    order = rng.permutation(env.batch_size)
    other = BatchEnv(env.rules, env.batch_size)
    other.scatter(None, env.gather(order))
    actions = choose(env, rng)
    env.step(actions)
    other.step(actions[order])
    for row in range(env.batch_size):
        assert all_of(other, row) == all_of(env, order[row])


@settings(max_examples=60)
@given(env=batches(), seed=st.integers(0, 2**16))
def test_games_put_back_run_as_they_did(env, seed):
    kept = env.gather()
    before = [all_of(env, row) for row in range(env.batch_size)]
    after = []
    for _ in range(2):
        rng = np.random.default_rng(seed)
        for _ in range(4):
            env.step(choose(env, rng))
        after.append([all_of(env, row) for row in range(env.batch_size)])
        env.scatter(None, kept)
        assert [all_of(env, row) for row in range(env.batch_size)] == before
    assert after[0] == after[1]


@settings(max_examples=60)
@given(env=batches(least=2), data=st.data())
def test_scattering_into_some_games_leaves_the_others(env, data):
    rows = np.array(data.draw(st.lists(st.integers(0, env.batch_size - 1), min_size=1, unique=True)))
    before = [all_of(env, row) for row in range(env.batch_size)]
    start = BatchEnv(env.rules, 1)
    env.scatter(rows, np.repeat(start.gather(), len(rows), axis=0))
    for row in range(env.batch_size):
        assert all_of(env, row) == (all_of(start, 0) if row in rows else before[row])


@settings(max_examples=60)
@given(env=batches(least=2), data=st.data())
def test_resetting_some_games_leaves_the_others(env, data):
    rows = data.draw(st.lists(st.integers(0, env.batch_size - 1), min_size=1, unique=True))
    position = data.draw(st.one_of(st.none(), positions(st.just(env.rules))))
    before = [all_of(env, row) for row in range(env.batch_size)]
    env.reset(rows, None if position is None else [position] * len(rows))
    expected = Position.start(env.rules) if position is None else position
    for row in range(env.batch_size):
        assert (env.position(row) == expected) if row in rows else (all_of(env, row) == before[row])


@settings(max_examples=30)
@given(env=batches(bases=(3, 4)), seed=st.integers(0, 2**16))
def test_finished_games_stay_as_they_are_until_they_are_reset(env, seed):
    env.step_random(np.full(env.batch_size, 10**5), np.array([seed], np.uint64))
    assert env.terminated.all()
    assert not env.legal_action_mask.any()
    before = [all_of(env, row) for row in range(env.batch_size)]
    for actions in (0, -1, env.rules.swap_action, env.rules.komi_action, 10**6):
        env.step(np.full(env.batch_size, actions))
    env.step_random(np.full(env.batch_size, 5), np.array([seed], np.uint64))
    assert [all_of(env, row) for row in range(env.batch_size)] == before
    env.reset()
    assert not env.terminated.any()
    assert env.position(0) == Position.start(env.rules)


@settings(max_examples=30)
@given(env=batches(), data=st.data())
def test_an_illegal_action_is_refused_by_name_and_changes_no_game(env, data):
    running = np.flatnonzero(~env.terminated)
    if not len(running):
        return
    rng = np.random.default_rng(data.draw(st.integers(0, 2**16)))
    bad = int(data.draw(st.sampled_from(running.tolist())))
    actions = choose(env, rng)
    illegal = [a for a in range(-2, env.num_actions + 3) if a not in legal_actions(env, bad)]
    actions[bad] = data.draw(st.sampled_from(illegal))
    before = [all_of(env, row) for row in range(env.batch_size)]
    with pytest.raises(IllegalMoveError) as caught:
        env.step(actions)
    names = [*env.rules.board.labels, "swap", "komi"]
    known = 0 <= actions[bad] < env.num_actions
    move = names[actions[bad]] if known else f"action {actions[bad]}"
    assert f"game {bad}: {move} in {env.position(bad).text()}" in str(caught.value)
    assert [all_of(env, row) for row in range(env.batch_size)] == before


def test_what_gather_returns_is_a_copy():
    env = BatchEnv(Rules(3), 2)
    everything, some = env.gather(), env.gather(np.array([1]))
    everything[:] = 0
    some[:] = 0
    assert env.position(0) == env.position(1) == Position.start(env.rules)
    env.step(np.array([0, 1]))
    assert not everything.any()


def test_states_scattered_are_copied_in():
    env = BatchEnv(Rules(3), 2)
    states = env.gather()
    env.scatter(None, states)
    states[:] = 0
    env.scatter(np.array([0]), BatchEnv(Rules(3), 1).gather())
    assert env.position(0) == env.position(1) == Position.start(env.rules)


def test_resetting_no_game_changes_none():
    env = BatchEnv(Rules(3), 2)
    env.step(np.array([0, 1]))
    before = env.gather()
    env.reset([])
    env.reset([], [])
    assert np.array_equal(env.gather(), before)


def test_a_position_of_other_komi_is_refused():
    env = BatchEnv(Rules(3, "komi_pie", 3), 1)
    with pytest.raises(RulesError, match="komi"):
        env.reset(positions=[Position.start(Rules(3, "komi_pie", 4))])


def test_random_plies_depend_on_the_stream_alone():
    rule = Rules(5)
    results = []
    for _ in range(2):
        env, stream = BatchEnv(rule, 3), np.array([42], np.uint64)
        env.step_random(np.array([3, 0, 9]), stream)
        results.append((env.gather(), stream.copy()))
    assert np.array_equal(results[0][0], results[1][0])
    assert results[0][1] == results[1][1] != 42
    assert np.array_equal(results[0][0][1], kernels.encode_position(Position.start(rule)))


def test_random_actions_are_uniform_over_all_legal_actions():
    """Swap and komi count as one action each; 6000 draws a position keep chance away from the bounds."""
    komi = Rules(3, "komi_pie", 1)
    for position in (
        Position.start(Rules(3)).play("a1,e3"),
        Position.parse("b1w/4/b1w2/4/b2 w 5 0 - 1", komi),
        Position.start(Rules(3)).play("c3"),
    ):
        env = BatchEnv(position.rules, 1)
        env.reset(positions=[position])
        actions = legal_actions(env)
        spec = env._spec
        work = np.zeros(kernels.work_size(len(spec.words)), np.uint64)
        stream, counts = np.array([5], np.uint64), dict.fromkeys(actions, 0)
        for _ in range(6000):
            work[: len(env.gather()[0])] = env.gather()[0]
            counts[int(kernels.random_action(work, stream, spec))] += 1
        expected = 6000 / len(actions)
        assert all(abs(n - expected) < 5 * expected**0.5 for n in counts.values())
