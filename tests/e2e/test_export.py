"""`lifeline export` as a user meets it: a run trained, exported, played with; and what it refuses."""

import json
import shlex
import shutil

import numpy as np
import pytest

from lifeline import BatchEnv, Rules
from lifeline.search.evaluator import OnnxEvaluator
from tiny_run import TINY, lifeline, write_config


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A run of three iterations."""
    folder = tmp_path_factory.mktemp("run")
    path = write_config(folder, max_iterations=3, evaluation=TINY["evaluation"] | {"games": 0})
    code, _, err = lifeline("train", path, "--run-dir", folder / "run")
    assert code == 0, err
    return folder / "run"


def test_an_exported_run_is_the_bot_of_the_run(run, tmp_path):
    code, out, err = lifeline("export", run, "--out", tmp_path / "mine.onnx")
    assert (code, err) == (0, "")
    assert out.splitlines()[0].startswith("1000 positions of bases 3 to 12")
    bot, mine = OnnxEvaluator(run / "bot.onnx"), OnnxEvaluator(tmp_path / "mine.onnx")
    env = BatchEnv(Rules(5), 8)
    env.step_random(np.arange(8) * 3, np.array([1], np.uint64))
    for got, want in zip(mine.evaluate(env), bot.evaluate(env), strict=True):
        assert (got == want).all()
    # What training writes and what is exported of it say the same of themselves.
    assert mine.metadata.keys() == bot.metadata.keys()
    differing = {key for key in bot.metadata if mine.metadata[key] != bot.metadata[key]}
    assert differing <= {"date", "sha256"}
    assert bot.metadata["learner_device"] in ("cpu, float32", "cpu, bfloat16")  # as the processor is
    assert bot.metadata["iterations"] == "3"


def test_refusals_are_one_line(tmp_path):
    code, out, err = lifeline("export", tmp_path, "--out", tmp_path / "x.onnx")
    assert (code, out) == (1, "")
    assert err == f"lifeline: {tmp_path} is no checkpoint and holds none\n"
    assert not list(tmp_path.iterdir())
    path = tmp_path / "x.safetensors"
    code, out, err = lifeline("export", path, "--out", tmp_path / "x.onnx")
    assert (code, out, err) == (1, "", f"lifeline: cannot read {path}: No such file or directory\n")
    path.write_bytes(b"{}")
    code, out, err = lifeline("export", path, "--out", tmp_path / "x.onnx")
    assert (code, out) == (1, "")
    assert err.startswith(f"lifeline: cannot read {path}: ")
    assert err.count("\n") == 1


def made_again(metadata, folder):
    """The bot of a run made anew from what a model says of itself, and nothing else."""
    (folder / "config.yaml").write_text(metadata["config"])
    commands = [f"{metadata['command'].replace('config.yaml', str(folder / 'config.yaml'))} --run-dir {folder / 'r'}"]
    commands += [
        again["command"].replace("RUN", str(folder / "r")) for again in json.loads(metadata.get("resumed", "[]"))
    ]
    for command in commands:
        code, _, err = lifeline(*shlex.split(command)[1:])
        assert code == 0, err
    return OnnxEvaluator(folder / "r" / "bot.onnx")


@pytest.mark.parametrize("changes", [[], ["search.num_simulations=6", "learner.average_decay=0.9"]])
def test_a_run_can_be_made_again_from_its_model_alone(run, tmp_path, changes):
    if changes:
        run = shutil.copytree(run, tmp_path / "changed")
        settings = [part for change in [*changes, "max_iterations=5"] for part in ("--set", change)]
        code, _, err = lifeline("train", "--resume", run, "--workers", "0", *settings)
        assert code == 0, err
    bot = OnnxEvaluator(run / "bot.onnx")
    assert bot.metadata["command"] == "lifeline train config.yaml"
    assert bot.metadata["seed"] == str(TINY["seed"])
    assert {"commit", "versions"} <= bot.metadata.keys()
    assert ("resumed" in bot.metadata) == bool(changes)
    again = made_again(bot.metadata, tmp_path)
    env = BatchEnv(Rules(3), 8)
    for got, want in zip(again.evaluate(env), bot.evaluate(env), strict=True):
        assert (got == want).all()
    differing = {key for key in bot.metadata if again.metadata[key] != bot.metadata[key]}
    assert differing <= {"date", "sha256", "training_seconds"}
