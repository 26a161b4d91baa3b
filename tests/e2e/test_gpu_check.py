"""The GPU check: a clear line where there is no GPU, and code that runs."""

import subprocess
import sys
from pathlib import Path

import pytest
import torch

SCRIPT = Path(__file__).parents[2] / "scripts" / "gpu_check.py"


def check(*arguments, timeout=60):
    command = [sys.executable, str(SCRIPT), *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=timeout)


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_without_a_gpu_it_says_so_in_one_line():
    done = check()
    assert done.returncode == 1
    assert done.stderr.count("\n") == 1
    assert "no CUDA device" in done.stderr


@pytest.mark.slow
def test_every_part_runs_on_a_cpu():
    done = check("--device", "cpu", "--quick", "--base", "3", "--blocks", "1", "--channels", "12", timeout=280)
    assert done.returncode == 0, done.stderr + done.stdout
    for part in ("network, bfloat16, compiled", "efficiency", "learner", "training, workers"):
        assert part in done.stdout
    assert "failed" not in done.stdout
