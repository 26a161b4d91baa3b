"""`lifeline train`: a run from start to end, killed and resumed, stopped and refused."""

import json
import signal

import numpy as np
import pytest
import safetensors.numpy

from lifeline import BatchEnv, Rules
from lifeline.play.players import make_player
from tiny_run import TINY, kill, lifeline, start, wait_for, write_config
from training import checkpoint
from training.shards import ShardStore

LAST = "checkpoints/iteration-00000008"


@pytest.fixture(scope="module")
def whole_run(tmp_path_factory):
    """A tiny run that was never interrupted: its directory and what it printed."""
    folder = tmp_path_factory.mktemp("whole")
    code, out, err = lifeline("train", write_config(folder), "--run-dir", folder / "run")
    assert code == 0, err
    return folder / "run", out


def contents(run):
    """All arrays and counters of a run's last checkpoint, but for its clock."""
    folder = run / LAST
    manifest = json.loads((folder / "manifest.json").read_text())
    manifest["counters"].pop("seconds")
    arrays = {f.name: safetensors.numpy.load_file(f) for f in folder.glob("*.safetensors")}
    return manifest["iteration"], manifest["counters"], manifest["files"], arrays


def assert_equal_runs(one, other):
    iteration, counters, digests, arrays = contents(one)
    iteration_2, counters_2, digests_2, arrays_2 = contents(other)
    assert iteration == iteration_2
    for file, values in arrays.items():
        for name, array in values.items():
            assert np.array_equal(array, arrays_2[file][name]), f"{file}: {name}"
    assert counters == counters_2
    assert digests == digests_2
    # The names of the games' files carry the sums of their bytes.
    assert sorted(p.name for p in (one / "games").iterdir()) == sorted(p.name for p in (other / "games").iterdir())


def test_a_run_leaves_a_model_a_summary_and_curves(whole_run):
    run, out = whole_run
    summary = json.loads((run / "summary.json").read_text())
    assert summary["iterations"] == 8
    assert summary["learner_steps"] > 10
    assert [m["opponent"] for m in summary["matches"]] == ["random", "rollout:10"]
    assert all(m["games"] == m["distinct_games"] == 4 for m in summary["matches"])
    assert "bot against random" in out
    assert "95 % interval" in out
    assert list((run / "tensorboard").glob("events*"))
    facts = json.loads((run / "run.json").read_text())
    assert facts["seed"] == TINY["seed"]
    assert set(facts["versions"]) == {"lifeline", "torch", "numpy"}
    env = BatchEnv(Rules(3), 1)
    bot = make_player(str(run / "bot.onnx"), Rules(3), budget=4)
    assert env.legal_action_mask[0, bot.choose(env, np.array([0]), np.array([1], np.uint64))[0]]


def test_drills_are_samples_and_no_games(whole_run):
    run = whole_run[0]
    kept = [game for part in ShardStore(run / "games", 1e9).newest_first() for game in part]
    drills = [game for game in kept if game.drill]
    summary = json.loads((run / "summary.json").read_text())
    assert len(drills) > 5
    assert summary["games"] == len(kept) - len(drills)
    assert summary["samples"] == sum(map(len, kept))
    records = [json.loads(line) for line in (run / "recent_games.jsonl").read_text().splitlines()]
    assert not {record["id"] for record in records} & {f"{drill.game_id:016x}" for drill in drills}


def test_losses_are_logged_as_finite_scalars(whole_run):
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    events = EventAccumulator(str(whole_run[0] / "tensorboard"))
    events.Reload()
    for name in ("loss/policy", "loss/value", "rates/plies_per_second", "selfplay/games"):
        values = [e.value for e in events.Scalars(name)]
        assert values
        assert np.isfinite(values).all()


def test_checkpoints_are_kept_as_configured(whole_run):
    kept = [checkpoint.load(p) for p in checkpoint.list_all(whole_run[0] / "checkpoints")]
    assert [(c.iteration, c.is_whole) for c in kept] == [(4, False), (6, True), (8, True)]


def test_checkpoints_are_written_by_the_clock_too(tmp_path):
    often = {"every": 100, "keep_last": 9, "keep_every": 100, "minutes": 1e-6}
    config = write_config(tmp_path, max_iterations=3, checkpoint=often, evaluation={"games": 0})
    code, _, err = lifeline("train", config, "--run-dir", tmp_path / "run")
    assert code == 0, err
    kept = [checkpoint.load(p) for p in checkpoint.list_all(tmp_path / "run/checkpoints")]
    assert [(c.iteration, c.is_whole) for c in kept] == [(1, True), (2, True), (3, True)]


def test_going_on_with_fewer_samples_a_sample_holds_for_new_ones_alone(tmp_path):
    run, quick = tmp_path / "run", {"max_iterations": 4, "evaluation": {"games": 0}}
    config = write_config(tmp_path, learner=TINY["learner"] | {"samples_per_sample": 16}, **quick)
    assert lifeline("train", config, "--run-dir", run)[0] == 0
    before = checkpoint.newest_whole(run / "checkpoints").counters
    more = ["--set", "max_iterations=8", "--set", "learner.samples_per_sample=2"]
    code, _, err = lifeline("train", "--resume", run, *more)
    assert code == 0, err
    after = checkpoint.newest_whole(run / "checkpoints").counters
    made, used = (after[name] - before[name] for name in ("samples", "samples_used"))
    assert abs(used - 2 * made) < TINY["learner"]["batch_size"] + 1


@pytest.mark.parametrize("after", [pytest.param(2, marks=pytest.mark.slow), 6])
def test_killed_and_resumed_equals_uninterrupted_bit_for_bit(whole_run, tmp_path, after):
    run = tmp_path / "run"
    process = start("train", write_config(tmp_path), "--run-dir", run)
    wait_for(run / f"checkpoints/iteration-{after:08d}", process)
    assert kill(process)[0] == -signal.SIGKILL
    assert not (run / "summary.json").exists()
    code, out, err = lifeline("train", "--resume", run)
    assert code == 0, err
    assert "going on with" in out
    assert_equal_runs(whole_run[0], run)


@pytest.mark.slow
def test_killed_before_the_first_checkpoint_starts_over_alike(whole_run, tmp_path):
    run = tmp_path / "run"
    process = start("train", write_config(tmp_path), "--run-dir", run)
    wait_for(run / "config.yaml", process)
    kill(process)
    code, _, err = lifeline("train", "--resume", run)
    assert code == 0, err
    assert_equal_runs(whole_run[0], run)


@pytest.mark.parametrize("number", [signal.SIGTERM, pytest.param(signal.SIGINT, marks=pytest.mark.slow)])
def test_a_polite_signal_saves_and_ends_cleanly(whole_run, tmp_path, number):
    run = tmp_path / "run"
    process = start("train", write_config(tmp_path), "--run-dir", run)
    wait_for(run / "checkpoints/iteration-00000002", process)
    code, out, err = kill(process, number)
    assert code == 0, err
    assert "finishing this iteration" in out
    summary = json.loads((run / "summary.json").read_text())
    assert summary["stopped_by_signal"]
    assert checkpoint.newest_whole(run / "checkpoints").iteration == summary["iterations"]
    code, _, err = lifeline("train", "--resume", run)
    assert code == 0, err
    assert_equal_runs(whole_run[0], run)


def assert_one_line(err, *parts):
    assert err.startswith("lifeline: ")
    assert err.count("\n") == 1
    for part in parts:
        assert part in err


def test_a_loss_that_is_not_finite_stops_the_run_and_names_the_last_good_checkpoint(tmp_path):
    # The target of an absurd rate is reached only after a few iterations of warm-up: a good checkpoint exists by then.
    learner = TINY["learner"] | {"learning_rate": 1e30, "warmup_steps": 1000, "min_samples": 400}
    config = write_config(tmp_path, learner=learner, max_iterations=50)
    code, _, err = lifeline("train", config, "--run-dir", tmp_path / "run")
    assert code == 1
    assert_one_line(err, "not finite", "last good checkpoint is", "iteration-")
    kept = checkpoint.newest_whole(tmp_path / "run" / "checkpoints")
    assert all(np.isfinite(w.numpy()).all() for w in kept.weights().values())


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (["--set", "game.bsae=4"], "unknown key game.bsae"),
        (["--set", "game.base=2"], "3 to 12"),
        (["--set", "game.base=13"], "3 to 12"),
        (["--set", "nonsense"], "key=value"),
        (["--workers", "-3"], "workers"),
        (["--workers", "many"], "workers"),
        (["--minutes", "x"], "minutes"),
        (["--frobnicate"], "frobnicate"),
    ],
)
def test_wrong_settings_get_one_line(here, tmp_path, settings, message):
    code, _, err = here("train", write_config(tmp_path), "--run-dir", tmp_path / "run", *settings)
    assert code in (1, 2)
    assert_one_line(err, message)
    assert not (tmp_path / "run").exists()


def test_an_address_without_workers_is_refused(here, tmp_path):
    code, _, err = here("train", write_config(tmp_path), "--run-dir", tmp_path / "run", "--address", "auto")
    assert code == 1
    assert_one_line(err, "workers: 0")
    assert not (tmp_path / "run").exists()


def test_a_missing_configuration_gets_one_line(tmp_path):
    code, _, err = lifeline("train", tmp_path / "none.yaml")
    assert code == 1
    assert_one_line(err, "cannot read", "none.yaml")
    code, _, err = lifeline("train")
    assert code == 2
    assert_one_line(err, "configs/base3.yaml")


def test_a_used_or_unwritable_run_directory_gets_one_line(whole_run, tmp_path):
    config = write_config(tmp_path)
    code, _, err = lifeline("train", config, "--run-dir", whole_run[0])
    assert code == 1
    assert_one_line(err, "in use already", "--resume")
    (tmp_path / "file").write_text("")
    code, _, err = lifeline("train", config, "--run-dir", tmp_path / "file" / "run")
    assert code == 1
    assert_one_line(err, "cannot write")


def test_two_processes_do_not_train_the_same_run(tmp_path):
    run = tmp_path / "run"
    process = start("train", write_config(tmp_path), "--run-dir", run, "--set", "max_iterations=100000")
    wait_for(run / "checkpoints/iteration-00000002", process)
    before = (run / "config.yaml").read_bytes()
    code, _, err = lifeline("train", "--resume", run, "--set", "learner.learning_rate=1e-4")
    assert code == 1
    assert_one_line(err, f"{run}: another process trains this run")
    assert (run / "config.yaml").read_bytes() == before
    kill(process)
    code, _, err = lifeline("train", "--resume", run, "--minutes", "0.01")
    assert code == 0, err


def test_resuming_what_is_no_run_or_damaged_gets_one_line(whole_run, tmp_path):
    import shutil

    code, _, err = lifeline("train", "--resume", tmp_path)
    assert code == 1
    assert_one_line(err, "holds no run")
    code, _, err = lifeline("train", "--resume", whole_run[0], "--seed", "3")
    assert code == 2
    assert_one_line(err, "--resume")
    copy = tmp_path / "copy"
    shutil.copytree(whole_run[0], copy)
    weights = copy / LAST / "weights.safetensors"
    data = bytearray(weights.read_bytes())
    data[len(data) // 2] ^= 4
    weights.write_bytes(data)
    code, _, err = lifeline("train", "--resume", copy)
    assert code == 1
    assert_one_line(err, "damaged", "weights.safetensors")
