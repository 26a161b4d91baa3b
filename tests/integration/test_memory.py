"""A slow learner with fast workers: what is made faster than it is used piles up nowhere."""

import time

import numpy as np
import pytest
import ray

from tiny_run import TINY
from training.config import build_config
from training.network import Network
from training.replay import ReplayBuffer
from training.shards import ShardStore
from training.sources import resident_bytes
from training.targets import samples_of
from training.workers import Cluster

pytestmark = pytest.mark.filterwarnings("ignore")


def run_for(seconds, folder):
    """Collect slowly, as a busy learner does; returns memory of driver, workers and object store over time."""
    tiny = build_config(TINY | {"workers": 2}, "test")
    ray.init(address="local", num_cpus=2, include_dashboard=False, log_to_driver=False, logging_level="ERROR")
    cluster = Cluster(tiny, None, session=0)
    replay, shards = ReplayBuffer(tiny.replay, 5, 21), ShardStore(folder, 2e5)
    network, seen = Network(tiny.network), []
    end = time.monotonic() + seconds
    try:
        version = 0
        while time.monotonic() < end:
            cluster.publish(network.state_dict(), version)
            version += 1
            games = cluster.collect()
            if games:
                replay.add(samples_of(games, 0.3, 0.0))
                shards.append(games)
                shards.flush(replay.window)
            time.sleep(0.2)  # the learner's steps
            store = sum(n["Resources"].get("object_store_memory", 0) for n in ray.nodes())
            used = store - ray.available_resources().get("object_store_memory", 0)
            seen.append((resident_bytes(), cluster.figures().worker_bytes, used, shards.bytes))
    finally:
        cluster.close()
        ray.shutdown()
    return np.array(seen, float)


def assert_flat(seen):
    early, late = seen[len(seen) // 3 : len(seen) // 2], seen[-len(seen) // 6 :]
    driver, workers, store, disk = late.mean(axis=0) - early.mean(axis=0)
    assert driver < 20e6
    assert workers < 30e6
    assert store < 20e6
    assert disk < 1e5


def test_memory_is_flat_over_a_quarter_of_a_minute(tmp_path):
    assert_flat(run_for(15, tmp_path))


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_memory_is_flat_over_ten_minutes(tmp_path):
    assert_flat(run_for(600, tmp_path))
