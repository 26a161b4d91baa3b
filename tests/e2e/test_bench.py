"""`lifeline bench`: figures that can be true, refusals in one line."""

import json
import subprocess
import sys

import numpy as np
import pytest

from lifeline import BatchEnv, Rules
from lifeline.bench import engine_rates
from lifeline.bench_search import PlanesEvaluator, mid_game_states, search_rates, search_work
from lifeline.errors import ConfigError
from lifeline.search.evaluator import OnnxEvaluator, UniformEvaluator
from lifeline.search.gumbel import GumbelPolicy
from lifeline.search.puct import PuctPolicy
from tiny_run import write_config
from training.bench import CountingEvaluator, learner_rates, play_in_turn, selfplay_rates
from training.config import NetworkConfig, load_config
from training.export import export_onnx
from training.network import Network
from training.selfplay import SelfPlay


def run(*arguments):
    return subprocess.run(
        [sys.executable, "-m", "lifeline.cli", "bench", *arguments], capture_output=True, text=True, check=False
    )


def test_the_engine_is_measured():
    done = run("engine", "--base", "4", "--seconds", "0.2", "--threads", "2", "--batch", "32", "--json")
    assert done.returncode == 0, done.stderr
    rates = json.loads(done.stdout)
    assert rates["base"] == 4
    assert rates["threads"] == 2
    assert rates["batch"] == 32
    for name in ("playout_steps_per_second", "games_per_second", "state_steps_per_second", "batch_steps_per_second"):
        assert rates[name] > 0
    # A random game of base 4 has some thirty plies: games and steps must tell of the same play.
    assert 10 < rates["playout_steps_per_second"] / rates["games_per_second"] < 60
    assert "random games a second" in run("engine", "--seconds", "0.1").stdout


@pytest.mark.parametrize("opening", ["weak_pie", "komi_pie"])
def test_other_openings_are_measured_too(opening):
    assert engine_rates(Rules(3, opening), 0.05).state_steps_per_second > 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [(("--base", "2"), "base"), (("--opening", "none"), "opening"), (("--threads", "0"), "--threads"), (("x",), "x")],
)
def test_wrong_input_is_one_line(arguments, message):
    done = run("engine", *arguments)
    assert done.returncode != 0
    assert message in done.stderr
    assert done.stderr.strip().count("\n") == 0


@pytest.fixture
def bench(here):
    """Runs `lifeline bench` in this process."""
    return lambda *arguments: subprocess.CompletedProcess(arguments, *here("bench", *arguments))


class Counting(UniformEvaluator):
    """Counts what it is asked for."""

    rows = 0

    def evaluate(self, leaves):
        self.rows += leaves.batch_size
        return super().evaluate(leaves)


@pytest.fixture(scope="module")
def model():
    network = NetworkConfig(blocks=1, channels=4, pool_every=1, head_channels=2, value_hidden=4)
    return export_onnx(network, Network(network).state_dict())


def test_search_is_measured(bench):
    small = ("--base", "3", "--batch", "16", "--simulations", "8", "--seconds", "0.1")
    done = bench("search", *small, "--evaluator", "null", "--json")
    assert done.returncode == 0, done.stderr
    rates = json.loads(done.stdout)
    assert (rates["base"], rates["batch"], rates["num_simulations"], rates["policy"]) == (3, 16, 8, "gumbel")
    assert 0 < rates["low"] <= rates["leaves_per_second"] <= rates["high"]
    assert rates["leaves_per_second_with_planes"] > 0
    assert "leaves a second, their planes encoded" in bench("search", *small, "--policy", "puct").stdout


def test_search_is_measured_with_a_model(bench, model, tmp_path):
    path = tmp_path / "tiny.onnx"
    path.write_bytes(model)
    done = bench("search", "--base", "3", "--batch", "8", "--simulations", "4", "--seconds", "0.1", "--json")
    given = run(
        "search", "--base", "3", "--batch", "8", "--simulations", "4", "--seconds", "0.1", "--json",
        "--evaluator", str(path),
    )  # fmt: skip
    assert given.returncode == 0, given.stderr
    assert json.loads(given.stdout)["leaves_per_second_with_planes"] is None
    assert json.loads(given.stdout).keys() == json.loads(done.stdout).keys()


@pytest.mark.parametrize("policy", [GumbelPolicy(), PuctPolicy()])
def test_the_leaves_counted_are_those_evaluated(policy):
    judge = Counting()
    work = search_work(Rules(3), 6, 10, policy, judge)
    assert work() + work() == judge.rows == 2 * 6 * 11


def test_searches_are_measured_from_running_games_of_all_stages():
    env = BatchEnv(Rules(5), 300)
    env.scatter(None, mid_game_states(Rules(5), 300, np.random.default_rng(1)))
    assert not env.terminated.any()
    turns = [env.position(row).turn for row in range(300)]
    assert min(turns) < 5
    assert max(turns) > 45


def test_planes_are_encoded_where_they_are_asked_for():
    env, judge = BatchEnv(Rules(3), 2), PlanesEvaluator()
    judge.evaluate(env)
    assert env._planes_are_fresh


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--evaluator", "nowhere.onnx"), "nowhere.onnx"),
        (("--policy", "best"), "gumbel, puct"),
        (("--simulations", "1"), "--simulations"),
        (("--batch", "60000", "--simulations", "9000"), "GB"),
    ],
)
def test_wrong_searches_are_one_line(bench, arguments, message):
    done = bench("search", *arguments)
    assert done.returncode != 0
    assert message in done.stderr
    assert done.stderr.strip().count("\n") == 0


def test_an_unknown_policy_is_refused():
    with pytest.raises(ConfigError, match="gumbel, puct"):
        search_rates(Rules(3), 2, 4, "best", seconds=0.01)


def test_selfplay_is_measured(bench, tmp_path):
    config = write_config(tmp_path)
    done = bench("selfplay", "--config", str(config), "--seconds", "0.3", "--set", "game.base=4", "--json")
    assert done.returncode == 0, done.stderr
    rates = json.loads(done.stdout)
    assert (rates["base"], rates["batch"], rates["num_simulations"]) == (4, 16, 4)
    assert rates["efficiency"] == pytest.approx(rates["evaluations_per_second"] / rates["forward_only_per_second"])
    assert 0 < rates["efficiency_low"] <= rates["efficiency_high"]
    assert 0 < rates["solver_share"] < 1
    assert 1 <= rates["mean_batch"] <= 16
    assert rates["evaluations"] > 0
    assert rates["games_per_hour"] >= 0
    assert rates["peak_memory_mb"] > 50
    assert rates["last_over_first"] is None


def test_a_long_run_compares_its_ends(tmp_path):
    rates = selfplay_rates(load_config(write_config(tmp_path)), minutes=0.01)
    assert rates.slices >= 2
    assert rates.last_over_first > 0
    assert rates.forward_last_over_first > 0
    assert rates.games_per_hour > 0


def test_only_rows_that_have_been_run_are_counted(model, tmp_path):
    """Both in self-play and alone; finished games, which are not run, are left out."""
    run_rows, plain = [], OnnxEvaluator(model)
    config = load_config(write_config(tmp_path))
    evaluator = CountingEvaluator(lambda planes: run_rows.append(len(planes)) or plain.run(planes))
    rules = config.game.rules()
    games = SelfPlay(rules, config.selfplay, config.search, evaluator, np.random.default_rng(0))
    games.play(6)
    assert evaluator.rows == sum(run_rows)
    assert evaluator.calls == len(run_rows)
    run_rows.clear()
    slices = play_in_turn(games, evaluator, BatchEnv(rules, 16).observation.copy(), 0.3, 0.1)
    assert sum(s.rows + s.alone_rows for s in slices) == sum(run_rows)
    for s in slices:
        assert s.rows < s.calls * config.selfplay.batch_size  # some leaves of base 3 are finished games
        assert s.alone_rows % max(1, round(s.rows / s.calls)) == 0


def test_the_learner_is_measured(bench, tmp_path):
    done = bench("learner", "--config", str(write_config(tmp_path)), "--seconds", "0.2", "--json")
    assert done.returncode == 0, done.stderr
    rates = json.loads(done.stdout)
    assert (rates["base"], rates["batch"]) == (3, 32)
    assert rates["samples_per_second"] > 0
    assert rates["samples_per_second_all_cores"] > 0
    assert rates["cores"] >= 1
    shares = [rates[f"{part}_share"] for part in ("forward", "backward", "update")]
    assert all(share > 0 for share in shares)
    assert sum(shares) == pytest.approx(1)


def test_the_learner_counts_whole_batches(tmp_path, monkeypatch):
    amounts = []

    def once(work, seconds, rounds):
        amounts.append(work())
        return np.ones(rounds)

    monkeypatch.setattr("training.bench.rate", once)
    learner_rates(load_config(write_config(tmp_path)), 0.01)
    assert set(amounts) == {32.0}


@pytest.mark.parametrize("command", ["selfplay", "learner"])
def test_wrong_configurations_are_one_line(bench, command, tmp_path):
    config = str(write_config(tmp_path))
    for arguments, message in (
        ((), "--config"),
        (("--config", "nowhere.yaml"), "nowhere.yaml"),
        (("--config", config, "--set", "game.bass=3"), "bass"),
        (("--config", config, "--seconds", "0"), "--seconds"),
    ):
        done = bench(command, *arguments)
        assert done.returncode != 0
        assert message in done.stderr
        assert done.stderr.strip().count("\n") == 0
