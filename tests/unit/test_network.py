"""The network: blind to what is off the board, of one set of weights for every size, equal in ONNX, able to learn."""

import numpy as np
import pytest
import torch

from game_positions import play_randomly
from lifeline import BatchEnv, ModelError, Position, Rules
from lifeline.search.evaluator import OnnxEvaluator
from training.cell_evaluator import CellEvaluator
from training.cells import features_of_cells, heads_of_cells
from training.config import LearnerConfig, NetworkConfig, ReplayConfig
from training.export import export_onnx
from training.learner import Learner
from training.neighbours import neighbour_table
from training.network import Exportable, Network
from training.replay import ReplayBuffer
from training.targets import Samples
from training.torch_evaluator import TorchEvaluator

SMALL = NetworkConfig(blocks=2, channels=16, pool_every=2, head_channels=8, value_hidden=16)


def lively_network(config=SMALL, seed=0):
    """A network whose every weight matters: as it is made, its blocks do nothing yet."""
    torch.manual_seed(seed)
    network = Network(config)
    with torch.no_grad():
        for parameter in network.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.1)
    return network.eval()


def real_positions(base, count):
    """An environment of games in all stages and all openings of one base."""
    rules = Rules(base)
    env = BatchEnv(rules, count)
    plies = np.arange(count) * rules.num_cells // count
    env.step_random(plies, np.array([base], np.uint64))
    return env


@pytest.fixture(scope="module")
def exported():
    network = lively_network()
    return network, OnnxEvaluator(export_onnx(SMALL, network.state_dict()))


@pytest.mark.parametrize("base", range(3, 13))
def test_onnx_equals_torch_on_real_positions(exported, base):
    network, onnx = exported
    planes = real_positions(base, 256 if base < 8 else 64).observation
    batches = [1, 7, 256] if base < 8 else [1, 7, 64]
    for size in batches:
        with torch.no_grad():
            wanted = Exportable(network)(torch.from_numpy(planes[:size]))
        for got, want in zip(onnx.run(planes[:size]), wanted, strict=True):
            assert np.abs(got - want.numpy()).max() < 1e-4


@pytest.mark.slow
@pytest.mark.parametrize("base", range(8, 13))
def test_onnx_equals_torch_on_large_boards_in_large_batches(exported, base):
    network, onnx = exported
    planes = real_positions(base, 256).observation
    with torch.no_grad():
        wanted = Exportable(network)(torch.from_numpy(planes))
    for got, want in zip(onnx.run(planes), wanted, strict=True):
        assert np.abs(got - want.numpy()).max() < 1e-4


def test_torch_evaluator_equals_onnx_evaluator(exported):
    network, onnx = exported
    env = real_positions(4, 16)
    torch_evaluator = TorchEvaluator(SMALL, network.state_dict(), torch.device("cpu"))
    for got, want in zip(torch_evaluator.evaluate(env), onnx.evaluate(env), strict=True):
        assert got.dtype == want.dtype == np.float32
        assert got.shape == want.shape
        assert np.abs(got - want)[~env.terminated].max() < 1e-4


@pytest.mark.parametrize("threads", [1, 3])
def test_cell_evaluator_equals_onnx_evaluator_on_every_board(exported, threads):
    network, onnx = exported
    cells = CellEvaluator(SMALL, network.state_dict(), torch.float32, threads)
    for base, size in [(3, 150), (5, 2), (4, 16), (3, 1)]:  # more than it takes at once, fewer than it has threads
        env = real_positions(base, size)
        for got, want in zip(cells.evaluate(env), onnx.evaluate(env), strict=True):
            assert got.dtype == want.dtype == np.float32
            assert got.shape == want.shape
            assert np.abs(got - want).max() < 1e-4


def test_in_bfloat16_a_network_says_about_the_same(exported):
    network, onnx = exported
    env = real_positions(4, 64)
    half = CellEvaluator(SMALL, network.state_dict(), torch.bfloat16)
    for got, want in zip(half.evaluate(env), onnx.evaluate(env), strict=True):
        assert got.dtype == np.float32
        assert 0 < np.abs(got - want).max() < 0.05 * np.abs(want).max()


def test_finished_games_are_not_evaluated_and_change_nothing_for_the_others(exported):
    _, onnx = exported
    env = real_positions(3, 24)
    assert 0 < env.terminated.sum() < 24
    alone = BatchEnv(env.rules, 1)
    logits, values = onnx.evaluate(env)
    assert not logits[env.terminated].any()
    assert not values[env.terminated].any()
    for row in np.flatnonzero(~env.terminated):
        alone.scatter(None, env.gather(np.array([row])))
        for got, want in zip(onnx.evaluate(alone), (logits[row], values[row]), strict=True):
            assert (got[0] == want).all()


@pytest.mark.parametrize("base", [3, 4, 7])
def test_over_cells_the_network_is_the_same_function_with_the_same_gradients(base):
    network = lively_network()
    board = Rules(base).board
    planes = torch.from_numpy(real_positions(base, 16).observation)
    to_grid = torch.from_numpy(board.cell_to_grid)
    policy_grid, policy_global, value = network(planes)
    over_grid = (policy_grid.flatten(1)[:, to_grid], policy_global, value)
    by_cells = planes.flatten(2)[:, :, to_grid].permute(1, 2, 0).contiguous()
    over_cells = heads_of_cells(
        network, features_of_cells(network, by_cells, neighbour_table(board.cell_to_grid, board.grid_shape))
    )
    for got, want in zip(over_cells, over_grid, strict=True):
        assert torch.allclose(got, want, atol=1e-4)
    weights = [torch.randn_like(output) for output in over_grid]
    gradients = [
        torch.autograd.grad(
            sum((o * w).sum() for o, w in zip(outputs, weights, strict=True)), list(network.parameters())
        )
        for outputs in (over_cells, over_grid)
    ]
    for got, want in zip(*gradients, strict=True):
        assert torch.allclose(got, want, rtol=1e-3, atol=1e-3 * float(want.abs().max()))


def test_in_bfloat16_gradients_are_about_the_same():
    network = lively_network()
    board = Rules(4).board
    planes = torch.from_numpy(real_positions(4, 64).observation)
    by_cells = planes.flatten(2)[:, :, torch.from_numpy(board.cell_to_grid)].permute(1, 2, 0).contiguous()
    table = neighbour_table(board.cell_to_grid, board.grid_shape)
    parameters = list(network.parameters())
    exact, rounded = (
        torch.autograd.grad(
            sum(
                part.square().mean()
                for part in heads_of_cells(network, features_of_cells(network, by_cells, table, dtype))
            ),
            parameters,
        )
        for dtype in (torch.float32, torch.bfloat16)
    )
    for got, want in zip(rounded, exact, strict=True):
        assert got.dtype == torch.float32
        assert (got - want).norm() < 0.05 * want.norm()


def test_what_lies_off_the_board_does_not_matter():
    """A board laid into a larger grid gives the same answers on its cells."""
    network = lively_network()
    planes = torch.from_numpy(real_positions(3, 20).observation)
    wide = torch.zeros(20, planes.shape[1], 9, 8)
    wide[:, :, 2:7, 1:6] = planes
    with torch.no_grad():
        (grid, other, value), (grid_wide, other_wide, value_wide) = network(planes), network(wide)
    on_board = planes[:, 0] > 0
    assert torch.allclose(grid[on_board], grid_wide[:, 2:7, 1:6][on_board], atol=1e-5)
    assert torch.allclose(other, other_wide, atol=1e-5)
    assert torch.allclose(value, value_wide, atol=1e-5)


def test_a_hex_convolution_sees_the_six_neighbours_and_no_other():
    from training.network import HexConv

    convolution = HexConv(1, 1)
    with torch.no_grad():
        convolution.weight.fill_(1.0)
    board = Rules(4).board
    for cell in (0, 9, 18, 36):
        image = torch.zeros(49)
        image[board.cell_to_grid[cell]] = 1
        with torch.no_grad():
            seen = convolution(image.view(1, 1, 7, 7)).flatten()
        reached = {c for c in range(board.num_cells) if seen[board.cell_to_grid[c]] != 0}
        assert reached == {cell, *board.neighbors[cell]}


def fill(replay, rules, count, seed=0):
    """Positions with arbitrary sharp targets."""
    rng = np.random.default_rng(seed)
    env = BatchEnv(rules, count)
    env.step_random(6 + np.arange(count) % 4, np.array([seed], np.uint64))
    running = np.flatnonzero(~env.terminated)
    policy = np.zeros((len(running), rules.num_actions), np.float16)
    for row, mask in zip(policy, env.legal_action_mask[running], strict=True):
        row[rng.choice(np.flatnonzero(mask))] = 1
    values = rng.integers(0, 2, len(running)).astype(np.float32)
    replay.add(Samples.single(env.gather(running), policy, values))


def test_the_network_overfits_one_batch():
    rules = Rules(3)
    replay = ReplayBuffer(ReplayConfig(capacity=64, min_window=64), 5, rules.num_actions)
    fill(replay, rules, 12)
    learner = Learner(
        [rules],
        NetworkConfig(blocks=3, channels=32),
        LearnerConfig(batch_size=64, warmup_steps=10, learning_rate=4e-3),
        np.random.default_rng(0),
        0,
        torch.device("cpu"),
    )
    first = learner.learn(replay, 5)
    learner.learn(replay, 300)
    last = learner.learn(replay, 20)
    assert first.policy > 2
    assert last.policy < 0.1
    assert last.value < 0.05
    assert last.target_entropy < 1e-6


def test_weights_of_another_size_are_refused():
    with pytest.raises(ModelError, match="do not fit"):
        export_onnx(SMALL, Network(NetworkConfig(blocks=2, channels=8)).state_dict())


def test_random_symmetries_turn_planes_masks_and_targets_together():
    from training.samples import batch_of

    rules = Rules(4)
    position = play_randomly(Position.start(rules), 9, 3)
    env = BatchEnv(rules, 12)
    env.reset(positions=[position] * 12)
    policy = np.random.default_rng(0).random((12, rules.num_actions)).astype(np.float16)
    policy[:] = policy[0]
    samples = Samples.single(env.gather(), policy, np.zeros(12, np.float32))
    batch = batch_of(samples, rules, np.arange(12), on_grid=True)
    cells = batch_of(samples, rules, np.arange(12), on_grid=False)
    for s, symmetry in enumerate(env.symmetries):
        turned = Position(
            rules,
            tuple(position.stones[int(np.flatnonzero(symmetry == c)[0])] for c in range(37)),
            position.turn,
            position.placed,
        )
        mirror = BatchEnv(rules, 1)
        mirror.reset(positions=[turned])
        assert (batch.planes[s].reshape(mirror.observation[0].shape) == mirror.observation[0]).all()
        to_grid = rules.board.cell_to_grid
        assert (cells.planes[s] == batch.planes[s][:, to_grid]).all()
        assert (cells.legal[s, :37] == batch.legal[s, to_grid]).all()
        assert (cells.policy[s, :37] == batch.policy[s, to_grid]).all()
        assert (cells.policy[s, 37:] == batch.policy[s, 49:]).all()
        assert (batch.legal[s, to_grid] == mirror.legal_action_mask[0, :37]).all()
        assert (batch.policy[s, to_grid[symmetry[:37]]] == policy[0, :37]).all()
        assert (batch.policy[s, 49:] == policy[0, 37:]).all()
