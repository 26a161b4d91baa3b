"""Several devices learn as one, here processes on a CPU: the same weights as one, and no process left behind."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import torch

from lifeline import BatchEnv, Rules, RunError
from tiny_run import TINY, kill, lifeline, start, wait_for, write_config
from training import checkpoint
from training.config import build_config
from training.learner import Learner
from training.replay import ReplayBuffer
from training.targets import Samples

RULES, CPU = Rules(3), torch.device("cpu")
# A batch that does not go evenly in two.
CONFIG = build_config(TINY | {"learner": {"batch_size": 33, "warmup_steps": 10}}, "test")


def make_learner(others=(), seed=0, threads=1):
    return Learner([RULES], CONFIG.network, CONFIG.learner, np.random.default_rng(7), seed, CPU, threads, others)


@pytest.fixture(scope="module")
def replay():
    """Positions with sharp targets, or here and there with none."""
    buffer, rng, env = ReplayBuffer(CONFIG.replay, 5, RULES.num_actions), np.random.default_rng(0), BatchEnv(RULES, 64)
    env.step_random(6 + np.arange(64) % 4, np.zeros(1, np.uint64))
    running = np.flatnonzero(~env.terminated)
    policy = np.zeros((len(running), RULES.num_actions), np.float16)
    for row, mask in zip(policy, env.legal_action_mask[running], strict=True):
        row[rng.choice(np.flatnonzero(mask))] = 1
    policy[::5] = 0
    values = rng.integers(0, 2, len(running)).astype(np.float32)
    buffer.add(Samples.single(env.gather(running), policy, values))
    return buffer


@pytest.fixture(scope="module")
def two():
    """A learner of two devices; the tests load into it what they need."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # as in a run and in the helpers: sums come out alike to the last bit
    learner = make_learner([CPU])
    yield learner
    learner.close()
    torch.set_num_threads(threads)


def pids(learner):
    return [helper.process.pid for helper in learner._team._helpers]


def is_running(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def assert_gone(processes, seconds=20):
    end = time.monotonic() + seconds
    while any(map(is_running, processes)):
        assert time.monotonic() < end
        time.sleep(0.05)


def assert_equal(one, other):
    """Bit for bit: two devices share a batch as two threads do, and halving and doubling are exact."""
    state, other_state = one.state(), other.state()
    assert state.keys() == other_state.keys()
    for name, tensor in state.items():
        assert torch.equal(tensor, other_state[name]), name


def restart(learner, state, steps):
    """Go on from a state with the generator that a new learner has."""
    learner.load_state(state, steps)
    learner._rng.bit_generator.state = np.random.default_rng(7).bit_generator.state


def test_two_devices_make_the_gradient_of_one(replay, two):
    one = make_learner()
    restart(two, one.state(), 0)
    losses, losses_of_two = one.learn(replay, 1), two.learn(replay, 1)
    for parameter, other in zip(one._replica.parameters, two._replica.parameters, strict=True):
        assert torch.allclose(parameter.grad, other.grad, atol=1e-6)
    for name, value in vars(losses).items():
        assert getattr(losses_of_two, name) == pytest.approx(value, rel=1e-5), name


def test_two_devices_draw_and_learn_what_two_threads_do(replay, two):
    threads = make_learner(threads=2)
    restart(two, threads.state(), 0)
    assert threads.learn(replay, 30) == two.learn(replay, 30)
    assert_equal(threads, two)
    assert two._rng.bit_generator.state == threads._rng.bit_generator.state


def test_two_devices_go_on_from_a_state_and_from_weights(replay, two):
    """Weights and moments reach both: a helper with other ones would pull the common gradient elsewhere."""
    threads = make_learner(seed=1, threads=2)
    threads.learn(replay, 30)
    restart(two, threads.state(), threads.steps)
    restart(threads, threads.state(), threads.steps)
    threads.learn(replay, 10)
    two.learn(replay, 10)
    assert_equal(threads, two)
    for learner in (threads, two):
        learner.start_from(make_learner(seed=2).average_weights())
        learner.learn(replay, 10)
    assert_equal(threads, two)


def test_a_loss_that_is_not_finite_stops_both_before_the_step(replay, two):
    threads = make_learner(seed=3, threads=2)
    good = threads.state()
    bad = {name: torch.full_like(t, torch.nan) if name == "weights.value_out.bias" else t for name, t in good.items()}
    restart(two, bad, 0)
    with pytest.raises(RunError, match="not finite at learner step 1 "):
        two.learn(replay, 1)
    assert two.steps == 0
    assert torch.equal(two.state()["weights.stem.weight"], good["weights.stem.weight"])
    restart(two, good, 0)
    threads.learn(replay, 10)
    two.learn(replay, 10)
    assert_equal(threads, two)


def test_a_second_learner_of_several_devices_is_refused(two):
    with pytest.raises(RunError, match="another learner"):
        make_learner([CPU])


# Here a helper ends, and the learner of the tests above with it.


def test_a_killed_helper_ends_learning_in_one_line_and_leaves_no_process(replay, two):
    (helper,) = processes = pids(two)
    os.kill(helper, signal.SIGTERM)  # as a terminal or a batch system may do to all: not the helper's to answer
    two.learn(replay, 1)
    os.kill(helper, signal.SIGKILL)
    began = time.monotonic()
    with pytest.raises(RunError, match="learner process 1 on cpu: killed by SIGKILL") as caught:
        two.learn(replay, 1000)
    assert time.monotonic() - began < 20
    assert "\n" not in str(caught.value)
    two.close()
    assert_gone(processes)


@pytest.mark.slow
def test_a_helper_killed_within_a_step_ends_it(replay):
    learner = make_learner([CPU, CPU])
    processes = pids(learner)
    killer = subprocess.Popen([sys.executable, "-c", f"import os, time; time.sleep(2); os.kill({processes[1]}, 9)"])
    try:
        with pytest.raises(RunError, match="learner process 2 on cpu: killed by SIGKILL"):
            learner.learn(replay, 1_000_000)
    finally:
        killer.wait()
        learner.close()
    assert_gone(processes)


def test_helpers_that_cannot_start_leave_no_process_and_no_group(monkeypatch):
    import training.team

    monkeypatch.setattr(training.team, "_help", ends_at_once)
    with pytest.raises(RunError, match="learner process 1 on cpu: ended with exit code 3"):
        make_learner([CPU])
    assert not torch.distributed.is_initialized()


def ends_at_once(*arguments):
    os._exit(3)


# Starts a helper, tells its pid, and does more. Imports stand in `main`: the helper runs the rest of this file, too.
DRIVER = """
def main():
    import sys
    sys.path[:0] = {paths!r}
    import test_team
    learner = test_team.make_learner([test_team.CPU])
    replay = test_team.replay.__wrapped__()
    learner.learn(replay, 1)
    print(*test_team.pids(learner), flush=True)
    {then}

if __name__ == "__main__":
    main()
"""


def start_driver(folder, then):
    here = Path(__file__).parent
    (folder / "driver.py").write_text(DRIVER.format(paths=[str(here), str(here.parent)], then=then))
    return subprocess.Popen(
        [sys.executable, folder / "driver.py"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )


@pytest.mark.parametrize("then", ["learner.learn(replay, 1_000_000)", pytest.param("input()", marks=pytest.mark.slow)])
def test_a_killed_driver_leaves_no_helper(tmp_path, then):
    """Whether it is killed within a step or between two."""
    driver = start_driver(tmp_path, then)
    processes = [int(pid) for pid in driver.stdout.readline().split()]
    assert len(processes) == 1
    assert all(map(is_running, processes))
    time.sleep(0.2)
    driver.kill()
    driver.communicate()
    assert_gone(processes)


@pytest.mark.slow
def test_a_driver_that_forgets_to_close_still_ends(tmp_path):
    driver = start_driver(tmp_path, "pass")
    out, _ = driver.communicate(timeout=60)
    assert driver.returncode == 0
    assert_gone([int(pid) for pid in out.split()])


@pytest.mark.slow
def test_a_whole_run_with_two_devices_killed_and_resumed_equals_uninterrupted(tmp_path):
    config, run, whole = write_config(tmp_path, learner_devices=2), tmp_path / "run", tmp_path / "whole"
    process = start("train", config, "--run-dir", run)
    wait_for(run / "checkpoints/iteration-00000004", process)
    assert kill(process)[0] == -signal.SIGKILL
    for arguments in (("--resume", run), (config, "--run-dir", whole)):
        code, out, err = lifeline("train", *arguments)
        assert code == 0, err
        assert "learning on cpu, cpu" in out
    summary = json.loads((run / "summary.json").read_text())
    assert summary["iterations"] == 8
    assert summary["learner_steps"] > 10
    state, whole_state = (checkpoint.newest_whole(r / "checkpoints").learner_state() for r in (run, whole))
    assert all(torch.equal(tensor, whole_state[name]) for name, tensor in state.items())


@pytest.mark.slow
def test_a_helper_killed_in_a_run_ends_it_in_one_line_that_names_the_last_checkpoint(tmp_path):
    run = tmp_path / "run"
    process = start("train", write_config(tmp_path, learner_devices=2, max_iterations=100_000), "--run-dir", run)
    wait_for(run / "checkpoints/iteration-00000004", process)
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    (helper,) = [c for c in children if "spawn_main" in Path(f"/proc/{c}/cmdline").read_text()]
    os.kill(int(helper), signal.SIGKILL)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 1
    assert err.startswith("lifeline: learner process 1 on cpu: killed by SIGKILL; the last good checkpoint is ")
    assert err.count("\n") == 1
    assert_gone([int(pid) for pid in children])
