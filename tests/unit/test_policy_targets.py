"""Samples without a policy target teach the value and the z-loss; the others weigh as if they were the whole batch."""

import numpy as np
import pytest
import torch

from lifeline import BatchEnv, Rules
from training.config import build_config
from training.learner import Learner
from training.replay import ReplayBuffer
from training.replica import Replica
from training.targets import Samples

RULES, CPU = Rules(3), torch.device("cpu")
SMALL = {"blocks": 1, "channels": 8, "pool_every": 1, "head_channels": 4, "value_hidden": 8}
CONFIG = build_config({"network": SMALL, "learner": {"batch_size": 33}}, "test")


def samples(without):
    """Positions with sharp targets, some of them without."""
    env, rng = BatchEnv(RULES, 24), np.random.default_rng(0)
    env.step_random(np.arange(24) % 6, np.zeros(1, np.uint64))
    policy = np.zeros((24, RULES.num_actions), np.float16)
    for row, mask in zip(policy, env.legal_action_mask, strict=True):
        row[rng.choice(np.flatnonzero(mask), 2, replace=False)] = 0.5
    policy[without] = 0
    return Samples.single(env.gather(), policy, rng.random(24).astype(np.float32))


def gradients(replica, of, numbers, policy_share=1.0):
    """Of the loss of some samples, and its figures; a sample's symmetry goes by its number."""
    loss, figures = replica.loss(of, numbers % 12, policy_share)
    return [g.double() for g in torch.autograd.grad(loss, replica.parameters)], [float(x) for x in figures]


def test_the_policy_loss_is_the_mean_over_samples_that_have_one():
    rows = np.arange(24)
    without = rows[5::2]
    part, all_of_them = samples(without), samples([])
    kept = np.setdiff1d(rows, without)
    assert part.policy_share == len(kept) / 24
    replica = Replica([RULES], CONFIG.network, CONFIG.learner, 0, CPU)

    got, figures = gradients(replica, part, rows, part.policy_share)
    assert all_of_them.policy_share == 1
    # Policy alone: all of the chosen ones' loss less their value's; value alone: a batch in which nothing has a policy.
    only_value, value_figures = gradients(replica, samples(rows), rows, 0.0)
    assert value_figures[0] == value_figures[2] == 0
    both, chosen_figures = gradients(replica, all_of_them.take(kept), kept)
    chosen_value, _ = gradients(replica, samples(rows).take(kept), kept, 0.0)
    for a, b, c, d in zip(got, both, chosen_value, only_value, strict=True):
        assert torch.allclose(a, b - c + d, atol=1e-6)
    assert figures[0] == pytest.approx(chosen_figures[0], rel=1e-5)
    assert figures[1] == pytest.approx(value_figures[1], rel=1e-5)
    assert figures[2] == pytest.approx(np.log(2), rel=1e-5)


def test_threads_share_a_batch_whose_targets_lie_unevenly():
    of = samples(np.arange(8, 24))
    learners = []
    for threads in (1, 3):
        replay = ReplayBuffer(CONFIG.replay, 5, RULES.num_actions)
        replay.add(of)
        learner = Learner([RULES], CONFIG.network, CONFIG.learner, np.random.default_rng(7), 0, CPU, threads)
        learners.append((learner, learner.learn(replay, 1)))
        learner.close()
    (one, losses), (three, losses_of_three) = learners
    for a, b in zip(one._replica.parameters, three._replica.parameters, strict=True):
        assert torch.allclose(a.grad, b.grad, atol=1e-6)
    assert losses_of_three.auxiliary == losses.auxiliary == {}
    means = [[v for k, v in vars(x).items() if k != "auxiliary"] for x in (losses, losses_of_three)]
    assert means[1] == pytest.approx(means[0], rel=1e-5)
    assert losses.target_entropy == pytest.approx(np.log(2), rel=1e-5)


def test_a_batch_without_any_policy_target_teaches_the_value():
    replay = ReplayBuffer(CONFIG.replay, 5, RULES.num_actions)
    replay.add(samples(np.arange(24)))
    learner = Learner([RULES], CONFIG.network, CONFIG.learner, np.random.default_rng(7), 0, CPU)
    losses = learner.learn(replay, 3)
    learner.close()
    assert (losses.policy, losses.target_entropy) == (0, 0)
    assert losses.value > 0
    assert losses.grad_norm > 0


@pytest.mark.parametrize("z_weight", [0.0, 1e-2])
def test_policies_shifted_alike_come_back_by_the_z_loss_alone(z_weight):
    config = build_config(
        {"network": SMALL, "learner": {"batch_size": 24, "z_weight": z_weight, "learning_rate": 0.01}}, "test"
    )
    replay = ReplayBuffer(config.replay, 5, RULES.num_actions)
    replay.add(samples([]))
    learner = Learner([RULES], config.network, config.learner, np.random.default_rng(7), 0, CPU)
    plain = learner.learn(replay, 1)
    with torch.no_grad():
        learner._replica.network.policy_out.bias += 20
        learner._replica.network.policy_global.bias += 20
    shifted = learner.learn(replay, 1)
    assert shifted.policy == pytest.approx(plain.policy, abs=0.1)
    assert shifted.z > 300 > 30 > plain.z
    later = learner.learn(replay, 300)
    assert (learner.learn(replay, 1).z < 100) == (z_weight > 0)
    assert later.policy < plain.policy
