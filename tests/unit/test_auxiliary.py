"""Auxiliary heads: the same over cells and grid, each held against its own target, of no effect on what is exported."""

import numpy as np
import pytest
import torch

from lifeline import BatchEnv, Rules
from lifeline.search.evaluator import UniformEvaluator
from training.auxiliary import NAMES, AuxiliaryHeads, Extras, Targets, auxiliary_losses
from training.cells import extras_of_cells, features_of_cells
from training.config import LearnerConfig, NetworkConfig, ReplayConfig, SearchConfig, SelfPlayConfig
from training.learner import Learner
from training.neighbours import neighbour_table
from training.network import Network
from training.replay import Replay
from training.replica import AUXILIARY, Replica
from training.samples import batch_of
from training.selfplay import SelfPlay
from training.targets import samples_of

SMALL = NetworkConfig(blocks=1, channels=12, pool_every=1, head_channels=6, value_hidden=8)
RULES, CPU = Rules(3), torch.device("cpu")
ALL = dict.fromkeys([f"{name}_weight" for name in NAMES], 1.0)


def filled(rules=RULES):
    """A buffer of some real games."""
    config = SelfPlayConfig(batch_size=16)
    search = SearchConfig(num_simulations=4)
    games = SelfPlay(rules, config, search, UniformEvaluator(), np.random.default_rng(0)).play(40)
    replay = Replay(ReplayConfig(min_window=4), {rules: 1.0})
    replay.add(samples_of(games, 0.3, 0.0))
    return replay


def test_over_cells_the_heads_say_the_same():
    board = Rules(4).board
    torch.manual_seed(0)
    network, heads = Network(SMALL), AuxiliaryHeads(SMALL)
    with torch.no_grad():
        for parameter in [*network.parameters(), *heads.parameters()]:
            parameter.add_(torch.randn_like(parameter) * 0.1)
    env = BatchEnv(Rules(4), 20)
    env.step_random(np.arange(20), np.array([1], np.uint64))
    planes, to_grid = torch.from_numpy(env.observation), torch.from_numpy(board.cell_to_grid)
    over_grid = heads(network.features(planes))
    cells = planes.flatten(2)[:, :, to_grid].permute(1, 2, 0).contiguous()
    over_cells = extras_of_cells(
        heads, features_of_cells(network, cells, neighbour_table(board.cell_to_grid, board.grid_shape))
    )
    assert torch.allclose(over_cells.policies, over_grid.policies[:, :, to_grid], atol=1e-4)
    assert torch.allclose(over_cells.policies_global, over_grid.policies_global, atol=1e-4)
    assert torch.allclose(over_cells.stones, over_grid.stones[:, :, to_grid], atol=1e-4)
    assert torch.allclose(over_cells.scalars, over_grid.scalars, atol=1e-4)


@pytest.mark.parametrize("name", NAMES)
def test_each_loss_is_least_at_its_own_target_and_blind_to_the_others(name):
    rng = torch.Generator().manual_seed(0)
    board = torch.tensor([[True, True, True, False]]).repeat(5, 1)
    policy = torch.rand(5, 6, generator=rng)
    legal = torch.cat([board, torch.ones(5, 2, dtype=torch.bool)], dim=1)
    policy = policy * legal / (policy * legal).sum(dim=1, keepdim=True)
    stones, all_known = torch.rand(5, 2, 4, generator=rng), torch.ones(5)
    targets = Targets(board, policy.flip(0), stones, torch.rand(5), torch.rand(5), all_known)
    config = LearnerConfig(z_weight=0, **{f"{name}_weight": 2.0})
    extras = Extras(*(torch.zeros(5, *shape, requires_grad=True) for shape in ((2, 4), (2, 2), (2, 4), (2,))))
    optimizer = torch.optim.Adam(extras, lr=0.05)
    for _ in range(600):
        optimizer.zero_grad()
        total, losses = auxiliary_losses(extras, targets, policy, legal, config)
        total.backward()
        optimizer.step()
    assert float(total.detach()) == pytest.approx(2 * float(losses[NAMES.index(name)]))
    logits = torch.cat([extras.policies, extras.policies_global], dim=2).masked_fill(~legal[:, None], -1e9)
    said = logits.softmax(dim=2)
    soft = policy**0.25
    found = {
        "reply": (said[:, 0], targets.reply),
        "soft": (said[:, 1], soft / soft.sum(dim=1, keepdim=True)),
        "later": (extras.stones.sigmoid()[:, :, :3], targets.stones[:, :, :3]),
        "short": (extras.scalars[:, 0].sigmoid(), targets.value),
        "left": (extras.scalars[:, 1], targets.left),
    }
    for other, (got, wanted) in found.items():
        assert torch.allclose(got, wanted, atol=0.02) == (other == name), other


def test_what_is_not_known_of_later_plies_is_not_learnt():
    board, legal = torch.ones(2, 4, dtype=torch.bool), torch.ones(2, 6, dtype=torch.bool)
    policy = torch.full((2, 6), 1 / 6)
    stones, known = torch.rand(2, 2, 4, generator=torch.Generator().manual_seed(0)), torch.tensor([1.0, 0.0])
    targets = Targets(board, policy, stones, torch.rand(2), torch.rand(2), known)
    extras = Extras(*(torch.zeros(2, *shape, requires_grad=True) for shape in ((2, 4), (2, 2), (2, 4), (2,))))
    config = LearnerConfig(later_weight=1, left_weight=1)
    auxiliary_losses(extras, targets, policy, legal, config)[0].backward()
    assert extras.stones.grad[0].any()
    assert extras.scalars.grad[0, 1] != 0
    assert not extras.stones.grad[1].any()
    assert extras.scalars.grad[1, 1] == 0


def test_only_the_policies_of_heads_that_are_on_are_kept_from_running_off():
    board, legal = torch.ones(3, 4, dtype=torch.bool), torch.ones(3, 6, dtype=torch.bool)
    board[:, 3] = legal[:, 3] = False
    policy = torch.where(legal, 1 / 5, 0.0)
    targets = Targets(board, policy, torch.rand(3, 2, 4), torch.rand(3), torch.rand(3), torch.ones(3))
    for row, name in enumerate(("reply", "soft")):
        gradients = []
        for z_weight in (0.0, 1e-2):
            # Both heads say of all moves that they are alike likely, and lie 20 too high.
            extras = Extras(*(torch.full((3, *s), 20.0, requires_grad=True) for s in ((2, 4), (2, 2), (2, 4), (2,))))
            config = LearnerConfig(z_weight=z_weight, **{f"{name}_weight": 1.0})
            auxiliary_losses(extras, targets, policy, legal, config)[0].backward()
            gradients.append(torch.cat([extras.policies.grad, extras.policies_global.grad], dim=2))
        pull = gradients[1] - gradients[0]
        wanted = 1e-2 * 2 * (20 + np.log(5)) / 3 / 5
        assert torch.allclose(pull[:, row], torch.where(legal, wanted, 0.0), rtol=1e-3)
        assert not pull[:, 1 - row].any()


@pytest.mark.parametrize("on_grid", [False, True])
def test_stones_and_replies_are_turned_with_their_position(on_grid):
    rules = Rules(3)
    samples = filled().draw(60, np.random.default_rng(1), horizon=4)
    symmetries = np.arange(60) % 12
    batch = batch_of(samples, rules, symmetries, on_grid)
    to_place = rules.board.cell_to_grid if on_grid else np.arange(rules.num_cells)
    now, then = BatchEnv(rules, 60), BatchEnv(rules, 60)
    now.scatter(None, samples.states)
    then.scatter(None, samples.later.states)
    for row in range(60):
        colour, turned = now.position(row).colour, rules.board.symmetries[symmetries[row]]
        for cell, stone in enumerate(then.position(row).stones):
            at = to_place[turned[cell]]
            assert batch.stones[row, 0, at] == (stone == colour)
            assert batch.stones[row, 1, at] == (stone not in (".", colour))
            assert batch.reply[row, at] == np.float32(samples.later.replies[row, cell])
    assert batch.stones.any()


def test_heads_learn_and_leave_the_exported_weights_alone():
    learner = Learner([Rules(3)], SMALL, LearnerConfig(batch_size=64, **ALL), np.random.default_rng(0), 0, CPU)
    replay = filled()
    first = learner.learn(replay, 5)
    learner.learn(replay, 300)
    last = learner.learn(replay, 20)
    assert set(last.auxiliary) == set(NAMES)
    for name in NAMES:
        assert last.auxiliary[name] < first.auxiliary[name], name
    assert learner.average_weights().keys() == Network(SMALL).state_dict().keys()
    learner.close()


def test_without_any_weight_there_are_no_heads():
    plain = Replica([Rules(3)], SMALL, LearnerConfig(), 0, CPU)
    assert not any(name.startswith(AUXILIARY) for name in plain.names)
    one = Replica([Rules(3)], SMALL, LearnerConfig(later_weight=0.5), 0, CPU)
    assert any(name.startswith(AUXILIARY) for name in one.names)
    for name, parameter in zip(plain.names, plain.parameters, strict=True):
        assert torch.equal(parameter, one.parameters[one.names.index(name)])


def test_a_learner_goes_on_with_its_heads():
    """Bit for bit, though the threads of one have worked before and those of the other have not."""
    torch.set_num_threads(1)  # as a run does
    config = LearnerConfig(batch_size=32, **ALL)
    one, other = (Learner([Rules(3)], SMALL, config, np.random.default_rng(0), seed, CPU) for seed in (0, 1))
    replay = filled()
    one.learn(replay, 3)
    other.load_state(one.state(), one.steps)
    for learner in (one, other):
        learner._rng = np.random.default_rng(5)
        learner.learn(replay, 3)
    for name, tensor in one.state().items():
        assert torch.equal(tensor, other.state()[name]), name
    one.close()
    other.close()


def test_one_network_learns_several_sizes():
    sizes = {Rules(3): 0.5, Rules(4): 0.5}
    replay = Replay(ReplayConfig(min_window=4), sizes)
    for rules in sizes:
        replay.add(filled(rules).draw(100, np.random.default_rng(0)))
    learner = Learner(
        list(sizes), SMALL, LearnerConfig(batch_size=32, later_weight=1.0), np.random.default_rng(0), 0, CPU
    )
    first = learner.learn(replay, 5)
    learner.learn(replay, 100)
    assert learner.learn(replay, 10).policy < first.policy
    learner.close()
