"""What is kept and drawn, and the targets made of games."""

import numpy as np
import pytest

from training.config import ReplayConfig
from training.replay import ReplayBuffer
from training.targets import Samples, samples_of
from training.trajectory import Trajectory


def numbered(start, count):
    """Samples that can be told apart."""
    numbers = np.arange(start, start + count)
    return Samples(
        np.repeat(numbers[:, None], 5, axis=1).astype(np.uint64),
        np.repeat(numbers[:, None], 21, axis=1).astype(np.float16),
        numbers.astype(np.float32),
        numbers,
    )


def drawn(replay):
    return {int(v) for v in replay.draw(3000, np.random.default_rng(0)).value_targets}


def test_the_newest_samples_are_drawn_and_fields_stay_together():
    replay = ReplayBuffer(ReplayConfig(capacity=100, min_window=10, window_fraction=0.5), 5, 21)
    replay.add(numbered(0, 8))
    assert drawn(replay) == set(range(8))
    replay.add(numbered(8, 22))
    assert replay.window == 15
    assert drawn(replay) == set(range(15, 30))
    samples = replay.draw(50, np.random.default_rng(1))
    assert (samples.states[:, 0] == samples.value_targets).all()
    assert (samples.policy_targets[:, 3] == samples.value_targets).all()


def test_a_full_buffer_forgets_the_oldest():
    replay = ReplayBuffer(ReplayConfig(capacity=20, min_window=20, window_fraction=1.0), 5, 21)
    replay.add(numbered(0, 15))
    replay.add(numbered(15, 70))
    assert drawn(replay) == set(range(65, 85))


@pytest.mark.parametrize("total", [3, 30, 95, 230])
def test_a_restored_buffer_draws_and_goes_on_alike(total):
    config = ReplayConfig(capacity=60, min_window=10, window_fraction=0.5)
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


def test_value_targets_are_the_movers_chance_of_winning():
    trajectory = Trajectory(
        states=np.zeros((3, 5), np.uint64),
        policy_targets=np.zeros((3, 21), np.float16),
        root_values=np.array([0.5, 0.5, -1], np.float32),
        to_play=np.array([0, 0, 1], np.int8),
        actions=np.zeros(3, np.int16),
        outcome=1,
        random_plies=0,
        game_id=1,
        version=4,
    )
    assert samples_of([trajectory], 0.0).value_targets.tolist() == [1, 1, 0]
    assert samples_of([trajectory], 0.5).value_targets.tolist() == [0.875, 0.875, 0]
