"""Workers on Ray: deaths cost the games under way and no other, no game is counted twice, memory stays flat."""

import os
import signal
import time

import pytest
import ray
from ray.cluster_utils import Cluster as Nodes

from lifeline import Rules, RunError
from lifeline.play.players import Budget
from tiny_run import TINY
from training.config import build_config
from training.entrants import parse_entrants
from training.evaluation import Contestant, Job
from training.export import export_onnx
from training.network import Network
from training.tournament import Tournament, opening_set
from training.tournament_store import create, units
from training.workers import Cluster, MatchCluster, _connect

# Ray and what it brings warn of their own matters.
pytestmark = pytest.mark.filterwarnings("ignore")


def config(**changes):
    return build_config(TINY | {"workers": 2} | changes, "test")


@pytest.fixture(scope="module")
def machine():
    """Ray on this machine with two cores, for all tests of this file that do not need a cluster of their own."""
    ray.init(address="local", num_cpus=2, include_dashboard=False, log_to_driver=False, logging_level="ERROR")
    yield
    ray.shutdown()


def weights():
    return Network(config().network).state_dict()


def collect(cluster, games, seconds=90):
    """Collect until there are so many games; fails if it takes too long."""
    found, end = [], time.monotonic() + seconds
    while len(found) < games:
        assert time.monotonic() < end, f"{len(found)} games"
        found += cluster.collect()
    return found


def actor_pids(cluster):
    """Ask each worker for its process id."""
    return [ray.get(a.pid.remote()) for a in cluster._actors.values()]


def test_workers_make_different_games_with_unique_numbers(machine):
    cluster = Cluster(config(), None, session=0)
    try:
        cluster.publish(weights(), 0)
        games = collect(cluster, 100)
        assert len({g.game_id for g in games}) == len(games)
        assert len({g.actions.tobytes() for g in games}) > 0.95 * len(games)
        figures = cluster.figures()
        assert figures.workers_alive == figures.workers_wanted == 2
        assert figures.duplicates == figures.restarts == 0
        assert figures.queue <= 4
    finally:
        cluster.close()


@pytest.mark.slow
def test_sessions_do_not_repeat_games(machine):
    seen = []
    for session in (0, 1):
        cluster = Cluster(config(), None, session)
        try:
            cluster.publish(weights(), 0)
            seen.append({g.game_id for g in collect(cluster, 60)})
        finally:
            cluster.close()
    assert not seen[0] & seen[1]


@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
def test_new_weights_reach_the_games(machine, precision):
    cluster = Cluster(config(precision=precision), None, session=2)
    try:
        cluster.publish(weights(), 5)
        collect(cluster, 10)
        cluster.publish(weights(), 9)
        assert 9 in {g.version for g in collect(cluster, 150)}
    finally:
        cluster.close()


def test_a_worker_killed_in_mid_game_is_replaced_and_nothing_reported_is_lost_or_doubled(machine):
    cluster = Cluster(config(), None, session=3)
    try:
        cluster.publish(weights(), 0)
        games = collect(cluster, 20)
        for pid in actor_pids(cluster)[:1]:
            os.kill(pid, signal.SIGKILL)
        games += collect(cluster, 150)
        assert cluster.restarts >= 1
        end = time.monotonic() + 60
        while cluster.figures().workers_alive < 2:
            assert time.monotonic() < end
            games += cluster.collect()
        assert len({g.game_id for g in games}) == len(games)
    finally:
        cluster.close()


def test_an_error_of_the_games_own_ends_the_run_in_one_line(machine):
    cluster = Cluster(config(), None, session=4)
    try:
        cluster.publish({}, 0)
        with pytest.raises(RunError, match="not those of the run's network"):
            collect(cluster, 1)
    finally:
        cluster.close()


def test_rating_matches_are_played_beside(machine):
    cluster = Cluster(config(), None, session=5)
    try:
        cluster.publish(weights(), 0)
        one, other = Contestant("iteration-00000001", export_onnx(config().network, weights())), Contestant("random")
        cluster.rate(Job(one, other, pairs=20, seed=1, known=()))
        assert cluster.is_rating
        end = time.monotonic() + 60
        while (result := cluster.rated()) is None:
            assert time.monotonic() < end
            cluster.collect()
        assert len(result.pairs) == 20
        assert result.distinct_games == 40
        assert set(result.ratings.players) == {"iteration-00000001", "random"}
        assert not cluster.is_rating
    finally:
        cluster.close()


def test_a_driver_that_does_not_collect_holds_the_workers_up(machine):
    """However long it learns: reports wait, two a worker, and no more are made."""
    cluster = Cluster(config(), None, session=6)
    try:
        cluster.publish(weights(), 0)
        collect(cluster, 20)
        time.sleep(3)
        plies = cluster.figures().plies
        time.sleep(3)
        cluster.collect()
        each = TINY["selfplay"]["batch_size"] * TINY["selfplay"]["plies_per_iteration"]
        assert cluster.figures().plies - plies <= 4 * each
    finally:
        cluster.close()


@pytest.mark.slow
def test_a_node_that_leaves_takes_only_its_games_under_way(machine):
    ray.shutdown()
    nodes = Nodes(initialize_head=True, head_node_args={"num_cpus": 1})
    other = nodes.add_node(num_cpus=1)
    cluster = None
    try:
        ray.init(address=nodes.address, log_to_driver=False, logging_level="ERROR")
        cluster = Cluster(config(), None, session=7)
        cluster.publish(weights(), 0)
        games = collect(cluster, 60)
        nodes.remove_node(other, allow_graceful=False)
        games += collect(cluster, 100, seconds=150)
        deadline = time.monotonic() + 90  # Ray misses a node only after some seconds; the other worker plays on
        while not cluster.restarts and time.monotonic() < deadline:
            games += cluster.collect()
        nodes.add_node(num_cpus=1)
        games += collect(cluster, 100, seconds=150)
        assert cluster.restarts >= 1
        assert len({g.game_id for g in games}) == len(games)
    finally:
        if cluster:
            cluster.close()
        ray.shutdown()
        nodes.shutdown()
        ray.init(address="local", num_cpus=2, include_dashboard=False, log_to_driver=False, logging_level="ERROR")


def test_a_tournament_ends_though_the_cluster_has_fewer_cores_than_workers_were_asked_for(machine, tmp_path):
    openings, source = opening_set(Rules(3), 8, None, 0)
    entrants = tuple(parse_entrants(("random", "rollout:5"), Budget()))
    store = create(tmp_path / "t", Tournament(Rules(3), entrants, openings, 8, False, 0, source))
    players, end = MatchCluster(store.tournament, 4, None), time.monotonic() + 90
    try:
        for records in players.run(units(store, players.workers, 64)):
            assert time.monotonic() < end, f"{len(store.done)} games"
            if records:
                store.add(records)
    finally:
        players.close()
    assert store.left() == []
    assert players.restarts == 0


@pytest.mark.parametrize("address", ["127.0.0.1:1", "127.0.0.1:99999"])
def test_an_address_where_nothing_listens_is_told_at_once(address):
    began = time.monotonic()
    with pytest.raises(RunError, match=f"cannot join {address}: "):
        _connect(1, address, None)
    assert time.monotonic() - began < 15
