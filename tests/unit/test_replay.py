"""What is kept and drawn, and the targets made of games."""

from dataclasses import replace

import numpy as np
import pytest

from lifeline import Rules
from training.config import LearnerConfig, ReplayConfig
from training.replay import Replay, ReplayBuffer, window_of
from training.targets import Samples, plies_ahead, samples_of, winners
from training.trajectory import Trajectory, by_size


def numbered(start, count):
    """Samples that can be told apart."""
    numbers = np.arange(start, start + count)
    single = Samples.single(
        np.repeat(numbers[:, None], 5, axis=1).astype(np.uint64),
        np.repeat(numbers[:, None], 21, axis=1).astype(np.float16),
        numbers.astype(np.float32),
    )
    return replace(single, versions=numbers)


def drawn(replay):
    return {int(v) for v in replay.draw(3000, np.random.default_rng(0)).value_targets}


def test_the_newest_samples_are_drawn_and_fields_stay_together():
    replay = ReplayBuffer(ReplayConfig(capacity=100, min_window=10, window_growth=0.5), 5, 21)
    replay.add(numbered(0, 8))
    assert drawn(replay) == set(range(8))
    replay.add(numbered(8, 22))
    assert replay.window == 20
    assert drawn(replay) == set(range(10, 30))
    samples = replay.draw(50, np.random.default_rng(1))
    assert (samples.states[:, 0] == samples.value_targets).all()
    assert (samples.policy_targets[:, 3] == samples.value_targets).all()


def test_a_full_buffer_forgets_the_oldest():
    replay = ReplayBuffer(ReplayConfig(capacity=20, min_window=20, window_growth=1.0), 5, 21)
    replay.add(numbered(0, 15))
    replay.add(numbered(15, 70))
    assert drawn(replay) == set(range(65, 85))


@pytest.mark.parametrize("total", [3, 30, 95, 230])
def test_a_restored_buffer_draws_and_goes_on_alike(total):
    config = ReplayConfig(capacity=60, min_window=10, window_growth=0.5)
    one, other = ReplayBuffer(config, 5, 21), ReplayBuffer(config, 5, 21)
    one.add(numbered(0, total))
    # As from disk: the newest samples only, the first of them somewhere before the window.
    kept = min(total, one.window + 7)
    other.restart(total - kept)
    other.add(numbered(total - kept, kept))
    assert other.mean_version() == one.mean_version()
    for extra in range(4):
        for replay in (one, other):
            replay.add(numbered(1000 * extra, 17))
        a, b = (r.draw(40, np.random.default_rng(extra)) for r in (one, other))
        assert (a.value_targets == b.value_targets).all()
        assert (a.states == b.states).all()


def game(num_actions=21, length=3, outcome=1, **changes):
    fields = {
        "states": np.arange(length * 5, dtype=np.uint64).reshape(length, 5),
        "policy_targets": np.tile(np.arange(1, length + 1, dtype=np.float16)[:, None] / 8, (1, num_actions)),
        "root_values": np.array([0.5, 0.5, -1, 0.25, 0.75][:length], np.float32),
        "surprise": np.array([0, 1, 5, 0, 0][:length], np.float16),
        "to_play": np.array([0, 0, 1, 0, 1][:length], np.int8),
        "actions": np.zeros(length, np.int16),
        "solved": np.zeros(length, np.int8),
        "strayed": np.zeros(length, np.int8),
    }
    return Trajectory(**fields | changes, outcome=outcome, random_plies=0, game_id=1, version=4)


def test_value_targets_are_the_movers_chance_of_winning():
    assert samples_of([game()], 0.0, 0.0).value_targets.tolist() == [1, 1, 0]
    assert samples_of([game()], 0.5, 0.0).value_targets.tolist() == [0.875, 0.875, 0]


def test_what_is_solved_counts_more_than_what_came_of_it():
    known = game(solved=np.array([0, -1, 1], np.int8))
    assert samples_of([known], 0.5, 0.0).value_targets.tolist() == [0.375, 0, 1]
    assert samples_of([known], 0.5, 0.0).root_values.tolist() == [0.5, -1, 1]


def test_nothing_beyond_a_random_move_tells_who_wins():
    strayed = game(strayed=np.array([0, 1, 0], np.int8))
    assert winners(strayed).tolist() == [0, 0, 1]
    assert samples_of([strayed], 0.5, 0.0).value_targets.tolist() == [0.75, 0.75, 0]
    solved = game(strayed=np.array([0, 1, 0], np.int8), solved=np.array([0, -1, 0], np.int8))
    assert winners(solved).tolist() == [-1, -1, 1]
    long = game(length=5, strayed=np.array([0, 1, 0, 0, 0], np.int8), solved=np.array([0, 0, 0, 1, 0], np.int8))
    assert winners(long).tolist() == [0, 0, 1, 1, 1]


def test_what_is_ahead_ends_at_the_next_random_move():
    assert plies_ahead(game(length=5)).tolist() == [4, 3, 2, 1, 0]
    assert plies_ahead(game(length=5, strayed=np.array([0, 1, 0, 0, 1], np.int8))).tolist() == [1, -1, 2, 1, -1]
    replay = ReplayBuffer(ReplayConfig(min_window=20), 5, 21)
    replay.add(samples_of([game(length=5, strayed=np.array([0, 1, 0, 0, 0], np.int8))], 0.3, 0.0))
    samples = replay.draw(500, np.random.default_rng(0), horizon=3)
    at, later = samples.states[:, 0] // 5, samples.later.states[:, 0] // 5
    assert {(int(a), int(b)) for a, b in zip(at, later, strict=True)} == {(0, 1), (1, 1), (2, 4), (3, 4), (4, 4)}
    assert (samples.later.replies.any(axis=1) == np.isin(at, [0, 2, 3])).all()
    assert (samples.later.known == (at != 1)).all()
    assert (samples.later.plies_left == 4 - at).all()


def test_weights_go_by_surprise_within_a_game():
    assert samples_of([game()], 0.3, 0.0).weights.tolist() == [1, 1, 1]
    assert samples_of([game()], 0.3, 0.5).weights.tolist() == [0.5, 0.75, 1.75]
    still = game(surprise=np.zeros(3, np.float16))
    assert samples_of([still], 0.3, 1.0).weights.tolist() == [1, 1, 1]


def test_samples_are_drawn_by_their_weights():
    replay = ReplayBuffer(ReplayConfig(min_window=3, surprise_share=0.5), 5, 21)
    replay.add(samples_of([game()], 0.3, 0.5))
    states = replay.draw(30_000, np.random.default_rng(0)).states[:, 0]
    shares = [float((states == first).mean()) for first in (0, 5, 10)]
    assert shares == pytest.approx([0.5 / 3, 0.75 / 3, 1.75 / 3], abs=0.01)


def test_samples_know_how_their_own_game_went_on():
    replay = ReplayBuffer(ReplayConfig(min_window=20), 5, 21)
    replay.add(samples_of([game(length=5), game(length=2)], 0.3, 0.0))
    samples = replay.draw(400, np.random.default_rng(0), horizon=3)
    later = samples.later
    seen = set()
    for row in range(400):
        left, first = int(later.plies_left[row]), int(samples.states[row, 0])
        ply = first // 5
        seen.add((ply, left))
        ahead = min(3, left)
        assert later.states[row, 0] == first + 5 * ahead
        assert later.replies[row, 0] == ((ply + 2) / 8 if left else 0)
        seats, values = [0, 0, 1, 0, 1], [0.5, 0.5, -1, 0.25, 0.75]
        sign = 1 if seats[ply] == seats[ply + ahead] else -1
        assert later.values[row] == pytest.approx((1 + sign * values[ply + ahead]) / 2)
    assert seen == {(0, 4), (1, 3), (2, 2), (3, 1), (4, 0), (0, 1), (1, 0)}


def test_how_a_game_went_on_is_known_across_the_seam_of_the_ring():
    replay = ReplayBuffer(ReplayConfig(capacity=7, min_window=7), 5, 21)
    for _ in range(3):
        replay.add(samples_of([game(length=5)], 0.3, 0.0))
    samples = replay.draw(200, np.random.default_rng(0), horizon=2)
    ahead = np.minimum(2, samples.plies_left)
    assert (samples.later.states[:, 0] == samples.states[:, 0] + 5 * ahead.astype(np.uint64)).all()


def test_the_window_grows_by_a_power_law():
    line = ReplayConfig(min_window=100, window_growth=0.5)
    assert [window_of(line, n) for n in (0, 100, 300)] == [100, 100, 200]
    curve = ReplayConfig(min_window=100, window_growth=0.5, window_exponent=0.5)
    assert [window_of(curve, n) for n in (100, 101, 400)] == [100, 100, 200]
    assert window_of(curve, 10_000) == 1000
    assert window_of(ReplayConfig(min_window=100, window_growth=0), 10_000) == 100


def test_each_size_of_board_has_a_window_of_its_own_and_batches_are_of_one_size():
    small, large = Rules(3), Rules(4)
    replay = Replay(ReplayConfig(capacity=50, min_window=20), {small: 0.75, large: 0.25})
    games = [game(small.num_actions), game(large.num_actions), game(large.num_actions)]
    for group in by_size(games):
        replay.add(samples_of(group, 0.3, 0.0))
    assert replay.total == replay.window == 9
    rng = np.random.default_rng(0)
    widths = [replay.draw(5, rng).policy_targets.shape[1] for _ in range(400)]
    assert set(widths) == {small.num_actions, large.num_actions}
    assert np.mean(np.array(widths) == small.num_actions) == pytest.approx(0.75, abs=0.07)


def test_buffers_of_several_sizes_are_filled_again_as_they_were():
    small, large = Rules(3), Rules(4)
    config = ReplayConfig(capacity=40, min_window=10, window_growth=0.5)
    sizes = {small: 0.5, large: 0.5}
    one, other = Replay(config, sizes), Replay(config, sizes)
    portions = []
    for number in range(30):
        width = (small if number % 3 else large).num_actions
        portions.append([game(width, states=np.full((3, 5), 10 * number + k, np.uint64)) for k in range(2)])
        one.add(samples_of(portions[-1], 0.3, 0.0))
    other.refill(one.totals, reversed(portions), LearnerConfig())
    assert (other.totals, other.window) == (one.totals, one.window)
    for seed in range(20):
        a, b = (r.draw(30, np.random.default_rng(seed), horizon=2) for r in (one, other))
        assert (a.states == b.states).all()
        assert (a.later.states == b.later.states).all()
