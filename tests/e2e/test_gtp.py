"""`lifeline gtp` as another program meets it: through pipes."""

import subprocess
import sys

import pytest
import torch

from lifeline import Position, Rules
from lifeline.notation import action_text
from lifeline.play.gtp_player import GtpPlayer
from lifeline.play.players import choose_move, make_player
from tiny_run import TINY, lifeline
from training.config import NetworkConfig
from training.export import export_onnx
from training.network import Network

PROGRAM = [sys.executable, "-m", "lifeline.cli", "gtp"]


def start(*arguments, program=PROGRAM):
    return subprocess.Popen(
        [*program, *map(str, arguments)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )


def test_a_conversation_to_the_end_of_the_input():
    process = start("--player", "random", "--base", "3", "--seed", "5")
    said = b"1 name\r\n\n# hello\nplay b c3\n\xff\x00\ngenmove b\n2 play b a1\n3 lifeline-to_play"
    out, err = process.communicate(said, timeout=100)
    rules = Rules(3)
    second = choose_move(make_player("random", rules), Position.start(rules).play("c3"), 5)
    assert out.decode().split("\n\n") == [
        "=1 Lifeline random",
        "=",
        "? unknown command",
        f"= {action_text(second, rules.board)}",
        "?2 illegal move: white is to play",
        "=3 white 1",
        "",
    ]
    assert err == b""
    assert process.returncode == 0


def test_quit_ends_it_while_the_input_stays_open():
    process = start("--player", "random")
    process.stdin.write(b"quit\n")
    process.stdin.flush()
    assert process.wait(100) == 0
    assert process.stdout.read() == b"=\n\n"
    assert process.stderr.read() == b""
    process.stdin.close()
    process.stdout.close()
    process.stderr.close()


def test_it_ends_quietly_when_nobody_hears_it_any_more():
    process = start("--player", "random")
    process.stdin.write(b"name\n")
    process.stdin.flush()
    assert process.stdout.readline() == b"= Lifeline random\n"
    process.stdout.close()
    process.stdin.write(b"name\n" * 3)
    process.stdin.flush()
    assert process.wait(100) == 0
    assert process.stderr.read() == b""
    process.stdin.close()
    process.stderr.close()


WITHOUT_TRAINING = """
import sys
for name in ("torch", "ray", "training", "yaml", "onnx", "tensorboard"):
    sys.modules[name] = None  # importing it now fails
import lifeline.cli
import lifeline.play.gtp_commands as commands
board_text = commands.board_text
def noisy(*arguments, **named):
    print("a library's chatter")
    return board_text(*arguments, **named)
commands.board_text = noisy
sys.argv = ["lifeline", "gtp", *sys.argv[1:]]
lifeline.cli.main()
"""


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    config = NetworkConfig(**TINY["network"])
    torch.manual_seed(3)
    path = tmp_path_factory.mktemp("model") / "bot.onnx"
    path.write_bytes(export_onnx(config, Network(config).state_dict()))
    return path


def test_a_model_plays_without_torch_and_has_the_standard_output_to_itself(model):
    process = start(
        "--model", model, "--base", 3, "--simulations", 20, program=[sys.executable, "-c", WITHOUT_TRAINING]
    )
    out, err = process.communicate(
        b"genmove b\nshowboard\nlifeline-analyze\ntime_settings 20 0 0\ngenmove b\n", timeout=100
    )
    rules = Rules(3)
    first = choose_move(make_player(str(model), rules, 20), Position.start(rules), 1)
    blocks = out.decode().split("\n\n")
    assert blocks[0] == f"= {action_text(first, rules.board)}"
    assert blocks[1].startswith("=\n    ")
    assert blocks[2].startswith("=\ninfo move ")
    assert blocks[3] == "="
    assert blocks[4].startswith("= ")
    assert err.decode().strip() == "a library's chatter"


def test_it_is_a_player_of_the_arena():
    rules = Rules(3, "weak_pie", 0, "forbidden")
    twin, position, history = make_player("random", rules), Position.start(rules), []
    with GtpPlayer(rules, f"{sys.executable} -m lifeline.cli gtp --player random --seed 9") as player:
        for _ in range(6):
            action = choose_move(twin, position, 9, history)
            assert choose_move(player, position, 0, history) == action
            position, history = position.play(action), [*history, action]
        assert choose_move(player, position, 0, history, seconds=1) == choose_move(twin, position, 9, history)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--model", "a.onnx", "--player", "random"], "give one of --model and --player"),
        (["--model", "missing.onnx"], "missing.onnx"),
        (["--player", "gtp:cat"], "--player is random, rollout:N or solver"),
    ],
)
def test_options_that_do_not_go_together_get_one_line(arguments, message):
    code, out, err = lifeline("gtp", *arguments)
    assert code in (1, 2)
    assert out == ""
    assert err.startswith("lifeline: ")
    assert message in err
    assert err.count("\n") == 1
