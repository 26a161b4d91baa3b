"""A game in the terminal: moves, mistakes, undo, and the end."""

import subprocess
import sys

import numpy as np
import pytest

from lifeline import Rules
from lifeline.play.engine import Engine, EngineSettings
from lifeline.play.players import RandomPlayer
from lifeline.play.terminal import play_in_terminal, settle_komi
from lifeline.search.evaluator import UniformEvaluator


def game(lines, seat=0, rules=None):
    """Play with these lines, then the first legal move each time; returns the last position and all that was said."""
    rules, said = rules or Rules(3), []
    given = iter(lines)

    def ask(prompt):
        try:
            return next(given)
        except StopIteration:
            raise EOFError from None

    return play_in_terminal(rules, RandomPlayer(), seat, 0, ask, said.append), "\n".join(said)


def test_moves_are_played_and_mistakes_explained():
    position, said = game(["z9", "c3,c4", "c3", "c4", "a1", "quit"])
    assert "no cell 'z9'" in said
    assert said.count("illegal move: c4") == 2
    assert position.turn >= 1
    assert position.stones[position.rules.board.cell("c3")] == "b"


def test_undo_goes_back_to_the_persons_last_choice():
    position, _ = game(["c3,a1", "undo", "undo", "text", "quit"])
    assert position.text() == "3/4/5/4/3 b 0 0 - 0"


def test_legal_moves_and_the_position_can_be_asked_for():
    _, said = game(["legal", "text"])
    assert "a1 a2 a3" in " ".join(sorted(said.split()))
    assert "3/4/5/4/3 b 0 0 - 0" in said


@pytest.mark.parametrize("seat", [0, 1])
def test_a_whole_game_is_played_to_its_end(seat):
    said = []
    position = _first_legal_game(Rules(3), seat, said)
    assert position.is_over
    assert said[-1] == ("You have won." if position.winner == seat else "You have lost.")


def _first_legal_game(rules, seat, said):
    """Ask for the legal moves, then play the first of them, over and over."""
    turn = iter(range(10_000))

    def ask(prompt):
        return "legal" if next(turn) % 2 == 0 else said[-1].split()[0]

    return play_in_terminal(rules, RandomPlayer(), seat, 3, ask, said.append)


def test_the_command_plays_from_standard_input():
    done = subprocess.run(
        [sys.executable, "-m", "lifeline.cli", "play", "--opponent", "random", "--seed", "1", "--ascii"],
        input="c3\na1\nquit\n",
        capture_output=True,
        text=True,
        check=True,
    )
    assert "random: " in done.stdout
    assert "X" in done.stdout


def settled(seat, lines, value=0.0):
    """What `settle_komi` makes of these lines, and what was said."""
    given, said = iter(lines), []

    def ask(prompt):
        try:
            return next(given)
        except StopIteration:
            raise EOFError from None

    evaluator = UniformEvaluator()
    engine = Engine(Rules(3, "komi_pie"), evaluator, EngineSettings(0))
    evaluator.evaluate = lambda leaves: (
        np.zeros((leaves.batch_size, leaves.num_actions), np.float32),
        np.full(leaves.batch_size, value, np.float32),
    )
    return settle_komi(engine, seat, ask, said.append), said


def test_who_names_the_komi_gets_the_side_that_is_left():
    assert settled(0, ["", "100", "7"], value=0.5)[0] == (Rules(3, "komi_pie", 7), 1)
    assert settled(0, ["7"], value=-0.5)[0] == (Rules(3, "komi_pie", 7), 0)
    assert settled(0, ["quit"])[0] is settled(0, [])[0] is None


def test_a_komi_is_named_and_a_side_chosen():
    assert settled(1, ["w"]) == ((Rules(3, "komi_pie", 0), 1), ["The komi is 0."])
    assert settled(1, ["x", "B"])[0] == (Rules(3, "komi_pie", 0), 0)
    assert settled(1, ["quit"])[0] is None
