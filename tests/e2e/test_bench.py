"""`lifeline bench`: figures that can be true, refusals in one line."""

import json
import subprocess
import sys

import pytest

from lifeline import Rules
from lifeline.bench import engine_rates


def run(*arguments):
    return subprocess.run(
        [sys.executable, "-m", "lifeline.cli", "bench", *arguments], capture_output=True, text=True, check=False
    )


def test_the_engine_is_measured():
    done = run("engine", "--base", "4", "--seconds", "0.2", "--threads", "2", "--batch", "32", "--json")
    assert done.returncode == 0, done.stderr
    rates = json.loads(done.stdout)
    assert rates["base"] == 4
    assert rates["threads"] == 2
    assert rates["batch"] == 32
    for name in ("playout_steps_per_second", "games_per_second", "state_steps_per_second", "batch_steps_per_second"):
        assert rates[name] > 0
    # A random game of base 4 has some thirty plies: games and steps must tell of the same play.
    assert 10 < rates["playout_steps_per_second"] / rates["games_per_second"] < 60
    assert "random games a second" in run("engine", "--seconds", "0.1").stdout


@pytest.mark.parametrize("opening", ["weak_pie", "komi_pie"])
def test_other_openings_are_measured_too(opening):
    assert engine_rates(Rules(3, opening), 0.05).state_steps_per_second > 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [(("--base", "2"), "base"), (("--opening", "none"), "opening"), (("--threads", "0"), "--threads"), (("x",), "x")],
)
def test_wrong_input_is_one_line(arguments, message):
    done = run("engine", *arguments)
    assert done.returncode != 0
    assert message in done.stderr
    assert done.stderr.strip().count("\n") == 0
