"""Networks with the board's symmetries: what they say turns with the board, and learning leaves it so."""

import numpy as np
import pytest
import torch

from lifeline import BatchEnv, CheckpointError, ConfigError, Rules
from training.config import LearnerConfig, NetworkConfig, ReplayConfig, load_config
from training.equivariance import ORDER, Tie, group
from training.learner import Learner
from training.network import Network
from training.replay import ReplayBuffer
from training.samples import batch_of
from training.targets import Samples
from training.weights_file import export_weights, find_weights

CPU = torch.device("cpu")
SIZE = {"blocks": 2, "channels": 24, "pool_every": 2, "head_channels": 24, "value_hidden": 48, "region_planes": True}
ALL = {"reply_weight": 1, "soft_weight": 1, "later_weight": 1, "short_weight": 1, "left_weight": 1}
KEPT = {"none": [0], "turns": range(6), "all": range(12)}


def config(equivariance):
    return NetworkConfig(**SIZE, equivariance=equivariance)


def learner_of(equivariance, **settings):
    return Learner(
        [Rules(3)], config(equivariance), LearnerConfig(batch_size=64, **settings), np.random.default_rng(0), 0, CPU
    )


def played(count=200):
    """Positions of all stages, with arbitrary policies, won where few moves are legal."""
    rules, rng = Rules(3), np.random.default_rng(1)
    env = BatchEnv(rules, count)
    env.step_random(np.arange(count) * rules.num_cells // count, np.array([3], np.uint64))
    legal = env.legal_action_mask & ~env.terminated[:, None]
    targets = (rng.random(legal.shape) * legal).astype(np.float16)
    rows = legal.any(axis=1)
    targets = targets[rows] / targets[rows].sum(axis=1, keepdims=True)
    crowded = legal.sum(axis=1) < np.median(legal.sum(axis=1))
    return Samples.single(env.gather()[rows], targets, crowded[rows].astype(np.float32))


def turned_wrongly(network, symmetry):
    """How far what a network says of turned positions is from what it says of them, turned; and how much it says."""
    rules, samples = Rules(3), played(60)
    network = network.eval()
    where = rules.board.symmetries[symmetry]
    grid = rules.board.cell_to_grid
    said = []
    for s in (0, symmetry):
        batch = batch_of(samples, rules, np.full(len(samples), s), on_grid=True)
        with torch.no_grad():
            cells, both, value = network(torch.from_numpy(batch.planes).view(len(samples), -1, *rules.board.grid_shape))
        said.append((cells.flatten(1)[:, grid].numpy(), both.numpy(), value.numpy()))
    (cells, both, value), (cells_turned, both_turned, value_turned) = said
    wrong = [np.abs(cells_turned[:, where] - cells).max(), np.abs(both_turned - both).max()]
    return max(*wrong, np.abs(value_turned - value).max()), min(cells.std(), value.std())


@pytest.mark.parametrize("equivariance", ["none", "turns", "all"])
def test_learning_keeps_what_it_should_and_nothing_else(equivariance):
    learner = learner_of(equivariance, warmup_steps=1, **ALL)
    samples = played()
    replay = ReplayBuffer(ReplayConfig(capacity=1000), samples.states.shape[1], samples.policy_targets.shape[1])
    replay.add(samples)
    learner.learn(replay, 100)
    network = Network(config(equivariance))
    for weights in (learner.average_weights(), {n: learner.state()[f"weights.{n}"] for n in network.state_dict()}):
        network.load_state_dict(weights)
        for symmetry in range(1, 12):
            wrong, much = turned_wrongly(network, symmetry)
            assert much > 1e-3
            assert (wrong < 2e-3 * much) == (symmetry in KEPT[equivariance]), symmetry


@pytest.mark.parametrize("equivariance", ["turns", "all"])
def test_it_is_a_group(equivariance):
    taps, product = group(equivariance)
    order = ORDER[equivariance]
    assert len({tuple(row) for row in taps}) == order
    assert all(sorted(row) == list(range(7)) and row[3] == 3 for row in taps.tolist())
    for row in [*product, *product.T]:
        assert sorted(row) == list(range(order))
    first, second, third = np.random.default_rng(0).integers(order, size=(3, 50))
    assert (product[product[first, second], third] == product[first, product[second, third]]).all()
    assert (taps[product[first, second]] == np.take_along_axis(taps[first], taps[second], axis=1)).all()


def test_free_numbers_are_a_sixth_and_a_twelfth():
    shapes = {name: p.shape for name, p in Network(config("none")).named_parameters()}
    for equivariance, order in ORDER.items():
        tie = Tie(equivariance, shapes)
        noise = {name: torch.randperm(shape.numel()).float().view(shape) for name, shape in shapes.items()}
        free = {name: len(tie.first(name, tensor).unique()) for name, tensor in noise.items()}
        for name, count in free.items():
            outputs_only = name in ("policy_out.bias", "policy_global.bias", "value_out.bias")
            assert count == noise[name].numel() // (1 if outputs_only else order), name
            assert torch.allclose(tie.average(name, noise[name]).sum(), noise[name].sum())


def test_weights_without_the_symmetry_are_no_beginning():
    learner = learner_of("turns")
    with pytest.raises(CheckpointError, match=r"the weights do not have this network's symmetries: stem\.weight"):
        learner.start_from(Network(config("none")).state_dict())
    half = {name: tensor.half().float() for name, tensor in learner_of("turns").average_weights().items()}
    learner.start_from(half)
    learner_of("none").start_from(half)


@pytest.mark.parametrize(
    "text",
    ["channels: 32", "channels: 36\n  head_channels: 16", "channels: 36\n  head_channels: 18\n  value_hidden: 20"],
)
def test_channels_come_in_whole_groups(tmp_path, text):
    (tmp_path / "bad.yaml").write_text(f"network:\n  equivariance: turns\n  {text}\n")
    with pytest.raises(ConfigError, match=r"network: \w+ must be a multiple of 6 with equivariance: turns, not \d+$"):
        load_config(tmp_path / "bad.yaml")


def test_a_network_with_fewer_symmetries_may_begin_with_the_weights_of_more(tmp_path):
    learner = learner_of("all")
    (tmp_path / "all.safetensors").write_bytes(export_weights(config("all"), learner.average_weights(), {}))
    found = find_weights(tmp_path / "all.safetensors")
    for fewer in ("turns", "none"):
        network = config(fewer)
        found.grown(network).fit(network)
        learner_of(fewer).start_from(found.grown(network).tensors)
    (tmp_path / "none.safetensors").write_bytes(export_weights(config("none"), learner.average_weights(), {}))
    found = find_weights(tmp_path / "none.safetensors")
    with pytest.raises(CheckpointError, match=r"another network than this run: equivariance none, not turns$"):
        found.grown(config("turns")).fit(config("turns"))


def test_a_run_does_not_go_on_from_a_state_without_its_symmetries():
    state = learner_of("none").state()
    with pytest.raises(ValueError, match="do not have this network's symmetries"):
        learner_of("turns").load_state(state, 5)
    learner_of("none").load_state(state, 5)
