"""`lifeline serve` as a user starts it."""

import os
import signal
import socket
import subprocess
import sys

import httpx
import pytest

from tiny_run import kill

WITHOUT_TRAINING = """
import sys
for name in ("torch", "ray", "training", "yaml", "onnx", "tensorboard", "matplotlib"):
    sys.modules[name] = None  # importing it now fails
import lifeline.cli
lifeline.cli.main()
"""
WITHOUT_WEB = WITHOUT_TRAINING.replace('"torch", ', '"starlette", ')


def run_code(code, *arguments, **options):
    return subprocess.run(
        [sys.executable, "-c", code, *arguments], capture_output=True, text=True, timeout=100, check=False, **options
    )


@pytest.fixture
def served(tmp_path):
    """A server without training's packages in an empty folder: its process and address."""
    process = subprocess.Popen(
        [sys.executable, "-c", WITHOUT_TRAINING, "serve", "--port", "0", "--simulations", "4"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=tmp_path,
        env=os.environ | {"OMP_NUM_THREADS": "1"},
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    line = process.stdout.readline()
    yield process, line
    if process.poll() is None:
        kill(process)
    process.stdout.close()
    process.stderr.close()


def test_it_says_where_it_is_answers_there_and_ends_by_ctrl_c(served):
    process, line = served
    address = next(word for word in line.split() if word.startswith("http://"))
    assert address.startswith("http://127.0.0.1:")
    assert "rollouts" in line
    moved = httpx.post(f"{address}api/move", json={"base": 3, "model": "rollouts"}, timeout=60)
    assert moved.status_code == 200
    assert "<title>Lifeline</title>" in httpx.get(address).text
    code, out, err = kill(process, signal.SIGINT)
    assert code in (0, 130)
    assert out == ""
    assert "Traceback" not in err


def test_a_port_that_is_taken_is_told_in_a_line(here):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        code, _, err = here("serve", "--port", port)
    assert code == 1
    assert err == f"lifeline: cannot listen at 127.0.0.1, port {port}: Address already in use\n"


def test_without_its_packages_it_says_what_to_install(tmp_path):
    done = run_code(WITHOUT_WEB, "serve", cwd=tmp_path)
    assert done.returncode == 1
    assert done.stderr == "lifeline: lifeline serve needs starlette, which is not installed: pip install '.[web]'\n"


def test_models_that_cannot_be_used_are_told(here, tmp_path):
    bad = tmp_path / "bad.onnx"
    bad.write_bytes(b"PK\x03\x04")
    code, _, err = here("serve", "--model", bad, "--port", 0)
    assert code == 1
    assert "bad.onnx is no ONNX file but a zip archive" in err


def test_hosts_that_are_nowhere_are_told(here):
    code, _, err = here("serve", "--host", "256.1.1.1", "--port", 0)
    assert code == 1
    assert err.startswith("lifeline: cannot listen at 256.1.1.1")
