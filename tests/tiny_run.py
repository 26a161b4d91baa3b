"""A training run small enough for tests, in a process of its own as a user would start it."""

import signal
import subprocess
import sys
import time

import yaml

TINY = {
    "seed": 5,
    "threads": 1,
    "workers": 0,
    "max_iterations": 8,
    "network": {
        "blocks": 1,
        "channels": 12,
        "pool_every": 1,
        "head_channels": 6,
        "value_hidden": 12,
        "equivariance": "turns",
    },
    "search": {"num_simulations": 4},
    "selfplay": {"batch_size": 16, "plies_per_iteration": 6, "solve_nodes": 30, "drills": 1},
    "replay": {"capacity": 600, "min_window": 200},
    "learner": {"batch_size": 32, "min_samples": 100},
    "checkpoint": {"every": 2, "keep_last": 2, "keep_every": 4},
    "evaluation": {"games": 4, "num_simulations": 4, "opponents": ["random", "rollout:10"]},
}


def write_config(folder, **changes):
    """Write the tiny configuration, with changes of whole sections or top-level keys; returns its path."""
    path = folder / "tiny.yaml"
    path.write_text(yaml.safe_dump(TINY | changes))
    return path


def start(*arguments):
    """Start the `lifeline` command with these arguments."""
    return subprocess.Popen(
        [sys.executable, "-m", "lifeline.cli", *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=_listen,
    )


def _listen():
    """Ctrl-C is heard even where a shell has started these tests in the background, deaf to it."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def lifeline(*arguments):
    """Run the `lifeline` command to its end: (exit code, standard output, standard error)."""
    process = start(*arguments)
    out, err = process.communicate(timeout=240)
    return process.returncode, out, err


def wait_for(path, process, seconds=120):
    """Wait until a file is there while the process runs."""
    end = time.monotonic() + seconds
    while not path.exists():
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < end, f"{path} did not appear"
        time.sleep(0.005)


def kill(process, number=signal.SIGKILL):
    """Send a signal and wait for the end: (exit code, standard output, standard error)."""
    process.send_signal(number)
    out, err = process.communicate(timeout=120)
    return process.returncode, out, err
