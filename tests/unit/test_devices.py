"""Which devices learn, in which numbers, and of which Ray is told; the GPUs are only numbers here."""

import pytest
import torch

from lifeline import ModelError, RunError
from training.cell_evaluator import CellEvaluator
from training.config import build_config
from training.devices import number_type, place
from training.evaluators import evaluator_of
from training.network import Network


def names(placement):
    return [str(device) for device in placement.learners], placement.worker_gpus


@pytest.mark.parametrize(
    ("settings", "gpus", "learners", "worker_gpus"),
    [
        ({}, 0, ["cpu"], None),
        ({"learner_devices": 3}, 0, ["cpu"] * 3, None),
        ({"device": "cpu", "worker_gpus": 0.5}, 2, ["cpu"], None),
        # Without workers on GPUs all of them learn, but none without a sample.
        ({}, 1, ["cuda:0"], None),
        ({}, 4, ["cuda:0", "cuda:1", "cuda:2", "cuda:3"], None),
        ({"learner": {"batch_size": 2}}, 4, ["cuda:2", "cuda:3"], None),
        ({"workers": 0, "worker_gpus": 0.5}, 2, ["cuda:0", "cuda:1"], None),
        ({"learner_devices": 1}, 4, ["cuda:3"], None),
        # Beside workers on GPUs one learns, for itself where there are several.
        ({"worker_gpus": 0.5}, 1, ["cuda:0"], None),
        ({"worker_gpus": 0.5}, 4, ["cuda:3"], 3),
        ({"worker_gpus": 0.5, "learner_devices": 2}, 4, ["cuda:2", "cuda:3"], 2),
        ({"worker_gpus": 0.5, "learner_devices": 4}, 4, ["cuda:0", "cuda:1", "cuda:2", "cuda:3"], None),
    ],
)
def test_learners_take_the_last_gpus_and_workers_those_before(settings, gpus, learners, worker_gpus):
    assert names(place(build_config(settings, "test"), gpus)) == (learners, worker_gpus)


@pytest.mark.parametrize(
    ("settings", "gpus", "message"),
    [
        ({"device": "cuda"}, 0, "finds no CUDA device"),
        ({"learner_devices": 3}, 2, "learner_devices: 3 are asked for, but torch finds 2"),
    ],
)
def test_devices_that_are_not_there_are_refused(settings, gpus, message):
    with pytest.raises(RunError, match=message):
        place(build_config(settings, "test"), gpus)


@pytest.mark.parametrize(
    ("precision", "device", "capabilities", "wanted"),
    [
        ("auto", "cpu", {"avx512_bf16": True, "amx_bf16": False}, torch.bfloat16),
        ("auto", "cpu", {"avx512_bf16": False, "amx_bf16": True}, torch.bfloat16),
        ("auto", "cpu", {"avx512_bf16": False, "avx2": True}, torch.float32),
        ("auto", "cpu", {}, torch.float32),
        ("auto", "cuda", {}, torch.bfloat16),
        ("float32", "cuda", {}, torch.float32),
        ("float32", "cpu", {"avx512_bf16": True}, torch.float32),
        ("bfloat16", "cpu", {}, torch.bfloat16),
    ],
)
def test_bfloat16_is_for_those_that_multiply_it(monkeypatch, precision, device, capabilities, wanted):
    monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: capabilities, raising=False)
    config = build_config({"precision": precision}, "test")
    assert number_type(config, torch.device(device)) == wanted


def test_a_torch_that_does_not_say_what_the_processor_can_do_means_float32(monkeypatch):
    monkeypatch.delattr(torch.cpu, "get_capabilities", raising=False)
    assert number_type(build_config({}, "test"), torch.device("cpu")) == torch.float32


@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
def test_on_a_cpu_games_are_judged_over_cells_by_weights_that_fit(precision):
    config, cpu = build_config({"precision": precision}, "test"), torch.device("cpu")
    assert isinstance(evaluator_of(config, Network(config.network).state_dict(), cpu, 1), CellEvaluator)
    with pytest.raises(ModelError, match="not those of the run's network"):
        evaluator_of(config, {}, cpu, 1)


@pytest.mark.filterwarnings("ignore")  # of Ray's own
def test_ray_started_here_is_told_of_the_workers_gpus_only(monkeypatch):
    import ray

    from training.workers import Cluster

    told = {}
    monkeypatch.setattr(ray, "is_initialized", lambda: False)
    monkeypatch.setattr(ray, "init", lambda **settings: told.update(settings))
    monkeypatch.setattr(ray, "cluster_resources", lambda: {"CPU": 8.0, "GPU": float(told["num_gpus"])})
    cluster = Cluster(build_config({"worker_gpus": 0.25}, "test"), None, 0, gpus=1)
    assert told["num_gpus"] == 1
    assert cluster.wanted == 4
