"""The other commands, and the front door itself."""

import subprocess
import sys

import pytest

from tiny_run import lifeline


def test_perft_prints_the_known_counts():
    code, out, _ = lifeline("perft", "--base", "3", "--turns", "4")
    assert code == 0
    assert [line.split()[1] for line in out.splitlines()] == ["129", "13236", "198540", "2801736"]
    code, out, _ = lifeline("perft", "--opening", "weak_pie", "--adjacent-setup", "forbidden", "--turns", "4")
    assert [line.split()[1] for line in out.splitlines()] == ["19", "342", "4386", "52944"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["perft", "--base", "2"], "3 to 12, not 2"),
        (["perft", "--base", "13"], "3 to 12, not 13"),
        (["perft", "--base", "three"], "--base"),
        (["perft", "--opening", "hex"], "opening must be one of"),
        (["dance"], "dance"),
    ],
)
def test_bad_input_gets_one_line_and_a_non_zero_exit(arguments, message):
    code, out, err = lifeline(*arguments)
    assert code in (1, 2)
    assert out == ""
    assert err.startswith("lifeline: ")
    assert message in err
    assert err.count("\n") == 1


def test_help_is_given_at_every_door():
    for arguments in (["--help"], [], ["train", "--help"], ["perft", "--help"]):
        code, out, err = lifeline(*arguments)
        assert "Usage" in out + err
        assert "lifeline: " not in err
        assert code == 0 or arguments == []


PLAY_WITHOUT_TRAINING = """
import sys
for name in ("torch", "ray", "training", "yaml", "onnx", "tensorboard"):
    sys.modules[name] = None  # importing it now fails
import lifeline.cli
from lifeline import Position, Rules
from lifeline.play.players import choose_move, make_player
rules = Rules(3)
position = Position.start(rules)
players = [make_player("rollout:50", rules), make_player("random", rules)]
while not position.is_over:
    position = position.play(choose_move(players[position.to_play], position, seed=0))
print("winner", position.winner)
sys.argv = ["lifeline", "train", "configs/base3.yaml"]
lifeline.cli.main()
"""


def test_playing_needs_neither_torch_nor_ray():
    done = subprocess.run([sys.executable, "-c", PLAY_WITHOUT_TRAINING], capture_output=True, text=True, check=False)
    assert "winner" in done.stdout
    assert done.returncode == 1
    assert done.stderr.startswith("lifeline: training needs")
    assert done.stderr.count("\n") == 1
