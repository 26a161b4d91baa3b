"""A run with everything on: several sizes of board, starts of all kinds, auxiliary heads, a falling rate."""

import json

import numpy as np
import pytest
import safetensors.numpy

from lifeline import BatchEnv, Rules
from lifeline.play.players import make_player
from tiny_run import TINY, kill, lifeline, start, wait_for, write_config

EVERYTHING = {
    "game": {"base": 4, "mix": {3: 1, 4: 2}, "curriculum_steps": 6},
    "selfplay": {
        **TINY["selfplay"],
        "random_opening_share": 0.2,
        "random_start_share": 0.3,
        "branch_share": 0.3,
        "full_search_share": 0.5,
        "cheap_simulations": 2,
    },
    "replay": {"capacity": 300, "min_window": 100, "window_exponent": 0.7, "surprise_share": 0.5},
    "learner": {
        **TINY["learner"],
        "samples_per_sample": 2,
        "anneal_share": 0.5,
        "reply_weight": 0.2,
        "soft_weight": 0.2,
        "later_weight": 0.2,
        "short_weight": 0.2,
        "left_weight": 0.2,
    },
    "evaluation": {**TINY["evaluation"], "games": 2, "opponents": ["random"]},
    "max_iterations": 10,
}
LAST = "checkpoints/iteration-00000010"


@pytest.fixture(scope="module")
def whole_run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("whole")
    code, _, err = lifeline("train", write_config(folder, **EVERYTHING), "--run-dir", folder / "run")
    assert code == 0, err
    return folder / "run"


def contents(run):
    manifest = json.loads((run / LAST / "manifest.json").read_text())
    manifest["counters"].pop("seconds")
    return manifest["counters"], {f.name: safetensors.numpy.load_file(f) for f in (run / LAST).glob("*.safetensors")}


def test_both_sizes_are_played_and_learnt(whole_run):
    counters, arrays = contents(whole_run)
    small, large = (Rules(base).num_actions for base in (3, 4))
    sizes = {int(size): total for size, total in counters["sizes"].items()}
    assert sizes.keys() == {small, large}
    assert min(sizes.values()) > 20
    assert sum(sizes.values()) == counters["samples"]
    assert any(name.startswith("weights.auxiliary.") for name in arrays["learner.safetensors"])
    for base in (3, 4, 5):
        env = BatchEnv(Rules(base), 1)
        bot = make_player(str(whole_run / "bot.onnx"), Rules(base), budget=4)
        assert env.legal_action_mask[0, bot.choose(env, np.array([0]), np.array([1], np.uint64))[0]]


def test_auxiliary_losses_and_the_divergence_of_policies_are_logged(whole_run):
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    events = EventAccumulator(str(whole_run / "tensorboard"))
    events.Reload()
    for name in ("reply", "soft", "later", "short", "left", "policy_divergence"):
        values = [e.value for e in events.Scalars(f"loss/{name}")]
        assert values
        assert np.isfinite(values).all()


def test_killed_and_resumed_equals_uninterrupted_bit_for_bit(whole_run, tmp_path):
    process = start("train", write_config(tmp_path, **EVERYTHING), "--run-dir", tmp_path / "run")
    wait_for(tmp_path / "run/checkpoints/iteration-00000006/manifest.json", process)
    kill(process)
    code, _, err = lifeline("train", "--resume", tmp_path / "run")
    assert code == 0, err
    (counters, arrays), (counters_2, arrays_2) = contents(whole_run), contents(tmp_path / "run")
    for file, values in arrays.items():
        for name, array in values.items():
            assert np.array_equal(array, arrays_2[file][name]), f"{file}: {name}"
    assert counters == counters_2
