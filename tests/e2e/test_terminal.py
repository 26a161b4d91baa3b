"""A game in the terminal: moves, mistakes, undo, and the end."""

import io
import itertools
import os
import pty
import subprocess
import sys

import numpy as np
import pytest
from rich.console import Console

from lifeline import Rules
from lifeline.notation import parse_move
from lifeline.play.console import Screen
from lifeline.play.engine import Engine, EngineSettings
from lifeline.play.players import RandomPlayer
from lifeline.play.terminal import play_in_terminal, settle_komi
from lifeline.search.evaluator import UniformEvaluator


def game(lines, seat=0, rules=None):
    """Play with these lines, then the first legal move each time; returns the last position and all that was said."""
    given, shown = iter(lines), io.StringIO()

    def ask(prompt):
        try:
            return next(given)
        except StopIteration:
            raise EOFError from None

    screen = Screen(Console(file=shown), ask=ask)
    return play_in_terminal(rules or Rules(3), RandomPlayer(), seat, 0, screen), shown.getvalue()


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
    """By asking for the legal moves and playing the first of them, over and over."""
    shown, turn = io.StringIO(), itertools.count()

    def ask(prompt):
        return "legal" if next(turn) % 2 == 0 else shown.getvalue().splitlines()[-1].split()[0]

    screen = Screen(Console(file=shown), ask=ask)
    position = play_in_terminal(Rules(3), RandomPlayer(), seat, 3, screen)
    assert position.is_over
    assert shown.getvalue().splitlines()[-1] == ("You have won." if position.winner == seat else "You have lost.")


class Scripted:
    """A player that plays these moves."""

    name, batched = "scripted", False

    def __init__(self, rules, text):
        self.actions = [a for move in text.split() for a in parse_move(move, rules.board)]

    def choose(self, env, rows, keys, histories=None, seconds=None):
        return np.array([self.actions.pop(0)])


def dialogue(rules, mine, others, seat=0):
    """A game of given moves on both sides: the last position and all that was shown."""
    shown, given = io.StringIO(), iter(mine)
    screen = Screen(Console(file=shown), ask=lambda prompt: next(given, "quit"))
    return play_in_terminal(rules, Scripted(rules, others), seat, 0, screen), shown.getvalue()


def test_a_swap_gives_the_turn_to_the_other_player():
    position, shown = dialogue(Rules(3), ["c3,a1", "e1,e3"], "swap c5")
    assert "scripted: swap\n" in shown
    assert "white (seat 0) to play, turn 2, first stone of two" in shown
    assert position.text() == "w1w/4/2b1b/4/b2 w 3 0 s 0"


def test_komi_can_be_spent_and_what_is_left_is_told():
    rules = Rules(3, "komi_pie", 2)
    position, shown = dialogue(rules, ["e1", "a1", "komi"], "c3 e3 c5 c1", seat=1)
    assert "komi left 1" in shown
    assert position.komi == 1


def test_captured_stones_are_told():
    rules = Rules(3, "weak_pie")
    _, shown = dialogue(rules, ["a1", "a3", "c3"], "e1 e2")
    assert "scripted: e2, removes 2 white stones" in shown


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


def test_the_command_plays_komi_pie(here, monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.StringIO("quit\n"))
    code, shown, _ = here("play", "--opening", "komi_pie", "--komi", 4, "--opponent", "random")
    assert code == 0
    assert "komi left 4" in shown


@pytest.mark.parametrize("no_color", [None, "1"])
def test_the_command_draws_in_colours_on_a_terminal_that_has_them(no_color):
    ours, theirs = pty.openpty()
    environment = {k: v for k, v in os.environ.items() if k not in ("NO_COLOR", "FORCE_COLOR", "COLORTERM")}
    environment |= {"TERM": "xterm-256color", "COLUMNS": "80", "LINES": "40"}
    game = subprocess.Popen(
        [sys.executable, "-m", "lifeline.cli", "play", "--opponent", "random"],
        stdin=theirs,
        stdout=theirs,
        env=environment | ({"NO_COLOR": no_color} if no_color else {}),
    )
    os.close(theirs)
    os.write(ours, b"quit\n")
    shown = b""
    try:
        while block := os.read(ours, 4096):
            shown += block
    except OSError:  # how a terminal says that nobody is left at its other end
        pass
    os.close(ours)
    assert game.wait(60) == 0
    painted = b"c3 \x1b" in shown  # with its label in a cell
    assert painted == (no_color is None)


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
    screen = Screen(Console(), ask=ask)
    screen.say = said.append
    return settle_komi(engine, seat, screen), said


def test_who_names_the_komi_gets_the_side_that_is_left():
    assert settled(0, ["", "100", "7"], value=0.5)[0] == (Rules(3, "komi_pie", 7), 1)
    assert settled(0, ["7"], value=-0.5)[0] == (Rules(3, "komi_pie", 7), 0)
    assert settled(0, ["quit"])[0] is settled(0, [])[0] is None


def test_a_komi_is_named_and_a_side_chosen():
    assert settled(1, ["w"]) == ((Rules(3, "komi_pie", 0), 1), ["The komi is 0."])
    assert settled(1, ["x", "B"])[0] == (Rules(3, "komi_pie", 0), 0)
    assert settled(1, ["quit"])[0] is None
