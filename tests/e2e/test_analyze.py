"""`lifeline analyze` as another program meets it: through pipes."""

import json
import signal
import subprocess
import sys

import httpx
import pytest
import torch

from lifeline import Position, Rules
from lifeline.notation import action_text, parse_move
from lifeline.play.engine import Engine, EngineSettings
from lifeline.play.server_bots import load_bots
from lifeline.search.evaluator import OnnxEvaluator
from tiny_run import TINY, kill, lifeline
from training.config import NetworkConfig
from training.export import export_onnx
from training.network import Network
from web_server import serving

WITHOUT_TRAINING = """
import sys
for name in ("torch", "ray", "training", "yaml", "onnx", "tensorboard"):
    sys.modules[name] = None  # importing it now fails
from lifeline.cli import main
main()
"""


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    path = tmp_path_factory.mktemp("model") / "tiny.onnx"
    config = NetworkConfig(**TINY["network"])
    torch.manual_seed(1)
    path.write_bytes(export_onnx(config, Network(config).state_dict()))
    return path


def test_queries_are_answered_until_the_input_ends_without_training(model):
    lines = [{"id": n, "base": 3, "moves": ["c3,a1", "swap"], "turns": [0, 1, 2], "seed": n} for n in range(5)]
    text = "\n".join(map(json.dumps, lines)) + '\nnonsense\n{"id": "é", "base": 3, "komi": 2}'
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_TRAINING, "analyze", "--model", str(model), "--simulations", "12"],
        input=text.encode(), capture_output=True, timeout=200,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, b"")
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(answers) == 5 * 3 + 2
    assert [a["id"] for a in answers if "error" in a] == [None, "é"]
    engine = Engine(Rules(3), OnnxEvaluator(model), EngineSettings(12))
    for answer in answers:
        if "error" not in answer:
            position = Position.start(Rules(3))
            for move in ("c3,a1", "swap")[: answer["turn"]]:
                position = position.play(move)
            choice = engine.choose(position, answer["id"])
            assert parse_move(answer["best"], position.rules.board) == (choice.action,)
            assert answer["simulations"] == 12


def test_gtp_with_the_same_seed_plays_the_same(model):
    conversation = "genmove b\n" * 2 + "genmove w\n" * 2
    options = ("--model", str(model), "--base", "3", "--simulations", "12", "--seed", "4")
    process = subprocess.run(
        [sys.executable, "-m", "lifeline.cli", "gtp", *options],
        input=conversation.encode(), capture_output=True, timeout=200,
    )  # fmt: skip
    played = process.stdout.decode().replace("=", "").split()
    query = {"id": 1, "base": 3, "moves": played, "turns": list(range(4)), "seed": 4, "simulations": 12}
    done = subprocess.run(
        [sys.executable, "-m", "lifeline.cli", "analyze", "--model", str(model)],
        input=json.dumps(query).encode(), capture_output=True, timeout=200,
    )  # fmt: skip
    best = {a["turn"]: a["best"] for a in map(json.loads, done.stdout.splitlines())}
    assert [best[turn] for turn in range(4)] == played


def test_the_same_move_comes_from_python_gtp_analysis_and_web(model):
    rules, seed, moves = Rules(3), 4, ["c3", "a1", "e3", "b4", "d4"]
    engine = Engine(rules, OnnxEvaluator(model), EngineSettings(12))
    position, by_python = Position.start(rules), []
    for move in [*moves, None]:
        by_python.append(action_text(engine.choose(position, seed).action, rules.board))
        position = position if move is None else position.play(move)
    conversation, colours = "", "bbwwbw"
    for colour, move in zip(colours, [*moves, None], strict=True):
        conversation += f"reg_genmove {colour}\n" + (f"play {colour} {move}\n" if move else "")
    options = ("--model", str(model), "--base", "3", "--simulations", "12", "--seed", str(seed))
    done = subprocess.run(
        [sys.executable, "-m", "lifeline.cli", "gtp", *options],
        input=conversation.encode(), capture_output=True, timeout=200,
    )  # fmt: skip
    assert done.stdout.decode().replace("=", "").split() == by_python
    query = {"id": 1, "base": 3, "moves": moves, "turns": list(range(6)), "seed": seed, "simulations": 12}
    done = subprocess.run(
        [sys.executable, "-m", "lifeline.cli", "analyze", "--model", str(model)],
        input=json.dumps(query).encode(), capture_output=True, timeout=200,
    )  # fmt: skip
    best = {a["turn"]: a["best"] for a in map(json.loads, done.stdout.splitlines())}
    assert [best[turn] for turn in range(6)] == by_python
    with serving(load_bots([model]), simulations=12) as (address, _), httpx.Client(base_url=address) as client:
        for at, expected in enumerate(by_python):
            game = {"base": 3, "moves": moves, "at": at, "seed": seed, "model": model.stem}
            for path, key in (("/api/move", "move"), ("/api/analyse", "best")):
                assert client.post(path, json=game, timeout=60).json()[key] == expected


def test_ctrl_c_ends_it_quietly(model):
    process = subprocess.Popen(
        [sys.executable, "-m", "lifeline.cli", "analyze", "--model", str(model)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )  # fmt: skip
    process.stdin.write('{"id": 1, "action": "query_version"}\n{"id": 2, "base": 9, "simulations": 100000}\n')
    process.stdin.flush()
    assert json.loads(process.stdout.readline())["model"] == "tiny"
    code, out, err = kill(process, signal.SIGINT)
    assert (code, out, err) == (130, "", "")


def test_it_ends_quietly_when_nobody_hears_it_any_more(model):
    process = subprocess.Popen(
        [sys.executable, "-m", "lifeline.cli", "analyze", "--model", str(model)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    process.stdout.close()
    process.stdin.write(b"nonsense\n" * 10)
    process.stdin.flush()
    assert process.wait(100) == 0
    assert process.stderr.read() == b""
    process.stdin.close()
    process.stderr.close()


def test_wrong_options_are_told_in_one_line(model, tmp_path, here):
    for arguments, says in (
        (["--model", tmp_path / "none.onnx"], "none.onnx"),
        (["--model", model, "--simulations", 1], "simulations are 0"),
        (["--model", model, "--simulations", 50, "--max-simulations", 20], "at most --max-simulations"),
        ([], "model"),
    ):
        code, out, err = here("analyze", *arguments)
        assert (code in (1, 2), out) == (True, "")
        assert says in err
        assert err.count("\n") == 1


def test_levels_and_komi_in_the_terminal(model):
    code, out, err = lifeline("play", "--model", model, "--level", "nobody")
    assert (code, out) == (1, "")
    assert "a level is one of" in err
    process = subprocess.run(
        [sys.executable, "-m", "lifeline.cli", "play", "--model", str(model), "--level", "1", "--opening", "komi_pie"],
        input="no\n3\nquit\n", capture_output=True, timeout=100, text=True,
    )  # fmt: skip
    assert process.returncode == 0
    assert "the komi, 0 to 99 is due, or quit, not 'no'" in process.stdout
    assert "You play seat" in process.stdout
