"""The code in the documents runs, and prints what they say it does."""

import importlib.util
import re
from pathlib import Path

import pytest

from training.config import NetworkConfig
from training.export import export_onnx
from training.network import Network

ROOT = Path(__file__).parents[2]


def document(name):
    return (ROOT / "docs" / name).read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def script():
    """scripts/fill_document.py, which runs documents."""
    spec = importlib.util.spec_from_file_location("fill_document", ROOT / "scripts/fill_document.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_examples_of_the_adapters_run(script):
    pettingzoo, open_spiel = script.run(document("adapters.md"), "adapters.md")
    assert re.fullmatch(r"(seat_[01] is paid -?1\.0\n){2}", pettingzoo)
    assert re.search(r"has won after \d+ turns \[-?1\.0, -?1\.0\]\n$", open_spiel)


def test_the_tutorial_runs_with_any_model_and_prints_what_it_shows(script, tmp_path, monkeypatch):
    text = document("tutorial.md")
    assert text.count("few, many = 10, 100") == 1
    monkeypatch.chdir(tmp_path)
    tiny = NetworkConfig(blocks=1, channels=8)
    Path("checkpoints").mkdir()
    Path("checkpoints/base3.onnx").write_bytes(export_onnx(tiny, Network(tiny).state_dict()))
    printed = script.run(text.replace("few, many = 10, 100", "few, many = 1, 2"), "tutorial.md")
    shown = [block["shown"] for block in script.BLOCK.finditer(text)]
    assert [answer != "" for answer in printed] == [answer is not None for answer in shown]
    # Opinions are the model's, but not their form, nor the board, nor who has won, nor what is left to solve.
    forms = [re.sub(r"\d+(\\\.\d+)?", r"[\\d.]+", re.escape(answer)) for answer in shown if answer]
    board, thoughts, game, truth, matches = [answer for answer in printed if answer]
    assert board.splitlines()[:8] == shown[1].splitlines()[:8]
    assert re.fullmatch(r"chance of the player to move: \d+%\n(trust +\d+%, wins +\d+%: [a-e\dswap ]+\n){4}", thoughts)
    assert game.startswith("seat 1 has won\n")
    assert re.fullmatch(forms[3], truth)
    assert truth.endswith("of 19 positions\n")
    assert re.fullmatch(forms[4], matches)
    assert Path("win_probability.png").read_bytes().startswith(b"\x89PNG")


def test_what_is_printed_is_put_under_its_block(script):
    text = "One.\n```python\na = 1\n```\nTwo.\n```python\nprint(a)\n```\n\n```text\nold\nlines\n```\nThree.\n"
    assert script.run(text, "x") == ["", "1\n"]
    assert script.filled(text, ["", "1\n"]) == text.replace("old\nlines\n", "1\n")
    assert script.filled(document("tutorial.md"), ["shown"] * 9) != document("tutorial.md")


def test_mistakes_are_reported_at_the_line_of_the_document(script):
    with pytest.raises(ZeroDivisionError) as error:
        script.run("Text.\n\n```python\na = 0\nb = 1 / a\n```\n", "page.md")
    assert str(error.traceback[-1].path) == "page.md"
    assert error.traceback[-1].lineno + 1 == 5
