"""The GTP engine: its lines, its commands, its refusals, its clocks, its analysis."""

import io
import os
import re
import threading
from pathlib import Path

import numpy as np
import pytest

from game_records import random_moves
from gtp_talk import ask, engine, network, play, refusal, snapshot, talk
from lifeline import Position, Rules, __version__
from lifeline.notation import action_text
from lifeline.play.clock import Clock, TimeSettings, allotment
from lifeline.play.gtp import serve
from lifeline.play.gtp_analysis import MOST_SIMULATIONS
from lifeline.play.gtp_commands import COMMANDS
from lifeline.play.lines import MAX_LINE, LineReader
from lifeline.play.players import RandomPlayer, choose_move, make_player

GUIDE = (Path(__file__).parents[2] / "docs/gtp.md").read_text(encoding="utf-8")
# White to place his second stone, Black's stones swapped.
SWAPPED = ("b1", "d3", "swap", "c3")
OVER = "3/4/b4/4/1b1 w 9 0 - 0"
ANALYSED = re.compile(
    r"info move (\S+) visits (\d+) winrate (\d\.\d{4}) prior (\d\.\d{4}) order (\d+) pv ((?:(?!info)\S+ ?)+)"
)


# Lines.


@pytest.mark.parametrize(
    "line",
    [
        "version",
        "  version ",
        "\tversion\t",
        "version # of what?",
        "ver\x07sion",
        "version\r\n",
        "\x00version\x7f",
        "#",
    ],
)
def test_a_line_is_cleaned_before_it_is_read(line):
    assert (answer := engine().handle(line)) is None or (answer.ok and answer.text == __version__)
    assert (answer is None) == (line == "#")


@pytest.mark.parametrize("line", ["", " ", "\t \t", "\r\n", "# nothing", "   #", "\x01\x02", "#" + "x" * 100_000])
def test_lines_without_content_are_not_answered(line):
    assert engine().handle(line) is None


@pytest.mark.parametrize(
    ("line", "answer"),
    [
        ("12 protocol_version", "=12 2"),
        ("0 protocol_version", "=0 2"),
        ("007 protocol_version", "=007 2"),
        ("2147483648 protocol_version", "=2147483648 2"),
        ("3 clear_board", "=3"),
        ("4 dance", "?4 unknown command"),
        ("5", "?5 syntax error: a number and no command"),
        ("9" * 30 + " name", "? unknown command"),
        ("-1 name", "? unknown command"),
        ("1 2 name", "?1 unknown command"),
        ("\u0663 name", "? unknown command"),
        ("NAME", "? unknown command"),
    ],
)
def test_the_number_of_a_line_is_in_its_answer(line, answer):
    assert engine().handle(line).head() == answer


def test_lines_that_are_too_long_are_refused_with_their_number():
    text = refusal(engine(), "8 play b c3" + " " * MAX_LINE)
    assert text == f"syntax error: a line has at most {MAX_LINE} characters"
    assert engine().handle("8 name " + "x" * MAX_LINE).number == "8"
    assert engine().handle("name #" + "x" * MAX_LINE).ok


def test_whatever_way_bytes_come_they_are_the_same_lines():
    data = (
        b"1 name\r\n\n# c\n2 \xff\xfe\x00\n3 "
        + b"y" * 1_000_000
        + b"\n4 protocol_version # "
        + b"z" * 70_000
        + b"\n5 name"
    )
    whole = talk(engine(), data)
    assert [block.split()[0] for block in whole.split("\n\n") if block] == ["=1", "?2", "?3", "=4", "=5"]
    for size in (1_000, 4_096, 65_536):
        file, out = io.BytesIO(data), io.BytesIO()
        serve(engine(), LineReader(lambda most, file=file, size=size: file.read(min(size, most))), out)
        assert out.getvalue().decode() == whole


def test_a_broken_input_is_an_end():
    def read(size):
        raise OSError("gone")

    assert LineReader(read).next() is None


def test_nothing_is_read_behind_quit():
    assert talk(engine(), b"quit\nname\n") == "=\n\n"


class Closed(io.BytesIO):
    """An output that is closed after so many answers."""

    def __init__(self, answers):
        super().__init__()
        self.answers = answers

    def flush(self):
        self.answers -= 1
        if self.answers < 0:
            raise BrokenPipeError


@pytest.mark.parametrize("lines", [b"name\n" * 50, b"name\nlifeline-analyze 0\n"])
@pytest.mark.parametrize("answers", [0, 1, 3])
def test_a_closed_output_ends_it(lines, answers):
    serve(engine(player=network), LineReader(io.BytesIO(lines).read), Closed(answers))


# Commands.


def test_it_says_what_it_is():
    of = engine(player="rollout:7")
    assert ask(of, "name") == "Lifeline rollout:7"
    assert ask(of, "version") == __version__
    assert ask(of, "protocol_version") == "2"
    assert ask(of, "known_command genmove") == "true"
    assert ask(of, "known_command genmoves") == "false"
    assert ask(of, "quit") == ""


def test_every_listed_command_is_known_and_in_the_guide():
    listed = ask(engine(), "list_commands").split("\n")
    assert listed == sorted(COMMANDS)
    assert all(ask(engine(), f"known_command {name}") == "true" for name in listed)
    in_guide = re.findall(r"^\| `([a-z_-]+)", GUIDE, re.MULTILINE)
    assert sorted(in_guide) == listed


def test_the_boards_of_all_sizes():
    of = engine(Rules(3, "komi_pie", 2, "forbidden"))
    for base in range(3, 13):
        play(of, "a1")
        assert ask(of, f"boardsize {base}") == ""
        assert of.session.game.position == Position.start(Rules(base, "komi_pie", 2, "forbidden"))


def test_a_new_board_of_the_same_rules_keeps_the_player():
    of = engine()
    player = of.session.player
    ask(of, "boardsize 3")
    ask(of, "lifeline-opening strong_pie")
    assert of.session.player is player


def test_moves_are_plies_of_the_colour_that_is_due():
    of = engine()
    for line, text in [
        ("play b B1", "3/4/5/b3/3 b 0 1 - 0"),
        ("play BLACK d3", "3/2b1/5/b3/3 w 1 0 - 0"),
        ("play w SWAP", "3/2b1/5/b3/3 w 1 0 s 0"),
        ("play White c3", "3/2b1/2w2/b3/3 w 1 1 s 0"),
        ("play W e1", "w2/2b1/2w2/b3/3 b 2 0 s 0"),
        ("undo", "3/2b1/2w2/b3/3 w 1 1 s 0"),
        ("undo", "3/2b1/5/b3/3 w 1 0 s 0"),
        ("undo", "3/2b1/5/b3/3 w 1 0 - 0"),
        ("undo", "3/4/5/b3/3 b 0 1 - 0"),
        ("undo", "3/4/5/4/3 b 0 0 - 0"),
    ]:
        assert ask(of, line) == ""
        assert ask(of, "lifeline-position") == text
    assert refusal(of, "undo") == "cannot undo"


def test_to_play_names_colour_and_seat():
    of = engine()
    said = [ask(of, "lifeline-to_play")]
    for move in SWAPPED:
        play(of, move)
        said.append(ask(of, "lifeline-to_play"))
    assert said == ["black 0", "black 0", "white 1", "white 0", "white 0"]


def test_points_of_komi_are_moves():
    of = engine()
    ask(of, "lifeline-opening komi_pie")
    ask(of, "komi 2.0")
    play(of, "a1", "e3", "c3", "b2", "d2")
    assert ask(of, "lifeline-legal_moves").split()[-1] == "komi"
    play(of, "komi")
    assert ask(of, "lifeline-position").split()[1:] == ["b", "6", "0", "-", "1"]
    ask(of, "undo")
    assert ask(of, "lifeline-position").endswith(" 2")


def test_the_komi_is_of_the_start_position():
    of = engine(Rules(3, "komi_pie"))
    ask(of, "komi 5")
    assert ask(of, "lifeline-position") == "3/4/5/4/3 b 0 0 - 5"
    play(of, "a1")
    assert ask(of, "komi 5") == ""  # it is so already
    assert refusal(of, "komi 4").startswith("the komi is settled before the first stone")
    ask(of, "clear_board")
    assert ask(of, "lifeline-position") == "3/4/5/4/3 b 0 0 - 5"
    ask(of, "boardsize 4")
    assert ask(of, "lifeline-position").endswith(" 5")
    ask(of, "lifeline-opening weak_pie")
    assert ask(of, "lifeline-position").endswith(" 0")
    assert ask(of, "komi 0") == ""
    assert refusal(of, "komi 1") == "komi is for komi_pie only, not for weak_pie"


def test_openings_and_their_options():
    of = engine()
    assert ask(of, "lifeline-opening") == "strong_pie"
    assert ask(of, "lifeline-adjacent_setup") == "allowed"
    assert refusal(of, "lifeline-adjacent_setup forbidden").startswith("adjacent_setup is for weak_pie and komi_pie")
    ask(of, "lifeline-opening weak_pie")
    play(of, "c3", "e1")
    ask(of, "lifeline-adjacent_setup forbidden")
    assert ask(of, "lifeline-position") == "3/4/5/4/3 b 0 0 - 0"
    play(of, "c3", "e1")
    assert "c4" not in ask(of, "lifeline-legal_moves").split()
    ask(of, "lifeline-opening komi_pie")
    assert ask(of, "lifeline-adjacent_setup") == "forbidden"
    ask(of, "lifeline-opening strong_pie")
    assert ask(of, "lifeline-adjacent_setup") == "allowed"


def test_a_position_can_be_set_and_history_starts_there():
    of = engine()
    text = "3/2b1/5/b3/3 w 1 0 s 0"
    assert ask(of, f"lifeline-position {text}") == ""
    assert ask(of, "lifeline-position") == text
    assert of.session.game.history is None
    assert refusal(of, "undo") == "cannot undo"
    play(of, "c3")
    ask(of, "undo")
    assert ask(of, "lifeline-position") == text
    assert ask(of, "lifeline-position 3/4/5/4/3 b 0 0 - 0") == ""
    assert of.session.game.history == ()


def test_the_board_is_drawn_without_an_empty_line():
    of = engine()
    play(of, "c3", "d4")
    drawn = ask(of, "showboard").split("\n")
    assert drawn[0] == ""
    assert drawn[3] == "  d  . . .(X) 4"
    assert drawn[4] == " c  . . X . .  5"
    assert drawn[-1].startswith("white (seat 1) to play")
    assert all(drawn[1:])
    assert of.handle("7 showboard").head().startswith("=7\n ")


@pytest.mark.parametrize(
    ("position", "score"), [(OVER, "B+"), (OVER.replace("-", "s"), "B+"), ("w2/4/5/4/1w1 b 8 0 - 0", "W+")]
)
def test_the_score_is_the_winners_colour(position, score):
    of = engine()
    assert refusal(of, "final_score") == "cannot score"
    ask(of, f"lifeline-position {position}")
    assert ask(of, "final_score") == score
    assert ask(of, "lifeline-legal_moves") == ""
    assert refusal(of, "genmove b").startswith("the game is over: ")
    assert refusal(of, "reg_genmove w").startswith("the game is over: ")
    assert refusal(of, "play w c3").startswith("illegal move: the game is over: ")


@pytest.mark.parametrize(
    ("line", "text"),
    [
        ("dance", "unknown command"),
        ("genmove_", "unknown command"),
        ("boardsize", "syntax error: boardsize takes 1 argument, not 0"),
        ("boardsize 3 3", "syntax error"),
        ("boardsize big", "syntax error: the base must be a whole number, not 'big'"),
        ("boardsize -3", "syntax error"),
        ("boardsize 3.5", "syntax error"),
        ("boardsize " + "9" * 4000, "syntax error"),
        ("boardsize 2", "unacceptable size"),
        ("boardsize 13", "unacceptable size: the base is 3 to 12"),
        ("boardsize 999999999", "unacceptable size"),
        ("clear_board now", "syntax error: clear_board takes 0 arguments, not 1"),
        ("komi", "syntax error"),
        ("komi 6.5", "syntax error: the komi must be a whole number, not '6.5'"),
        ("komi -1", "syntax error"),
        ("komi 7", "komi is for komi_pie only"),
        ("komi 100", "komi must be a whole number from 0 to 99, not 100"),
        ("play", "syntax error"),
        ("play w", "syntax error"),
        ("play w c1 c2", "syntax error"),
        ("play green c1", "syntax error: a colour is b, black, w or white, not 'green'"),
        ("play blac\u212a c1", "syntax error"),
        ("play w c1,c2", "syntax error: one stone a command"),
        ("play w ???", "syntax error"),
        ("play w c", "syntax error"),
        ("play w " + "c" * 3000, "syntax error"),
        ("play w z9", "illegal move: no cell 'z9' on a board of base 3"),
        ("play w c6", "illegal move: no cell"),
        ("play w pass", "illegal move: no cell 'pass'"),
        ("play w resign", "illegal move"),
        ("play w b1", "illegal move: b1 in 3/2b1/5/b3/3 w 1 0 - 0"),
        ("play b c3", "illegal move: white is to play"),
        ("play w komi", "illegal move: komi in 3/2b1/5/b3/3 w 1 0 - 0"),
        ("genmove", "syntax error"),
        ("genmove x", "syntax error"),
        ("genmove b", "illegal move: white is to play"),
        ("reg_genmove b", "illegal move: white is to play"),
        ("reg_genmove", "syntax error"),
        ("undo 2", "syntax error"),
        ("known_command", "syntax error"),
        ("time_settings 1 2", "syntax error"),
        ("time_settings 1 2 x", "syntax error"),
        ("time_settings 1 2 1.5", "syntax error"),
        ("time_settings -1 2 1", "syntax error"),
        ("time_settings nan 2 1", "syntax error"),
        ("time_settings inf 2 1", "syntax error"),
        ("time_settings 1e3 2 1", "syntax error"),
        ("time_left b 3", "syntax error"),
        ("time_left x 3 1", "syntax error"),
        ("time_left b -3 1", "syntax error"),
        ("final_score", "cannot score"),
        ("lifeline-position 3/4/5/4/3", "syntax error: a position has six fields, not 1"),
        ("lifeline-position 3/4/5/4/3 b 0 0 - 0 0", "syntax error"),
        ("lifeline-position 3/4/5/4/4 b 0 0 - 0", "row 5 has 4 cells where base 3 has 3: '4'"),
        ("lifeline-position 3/4/5/4/3 w 0 0 - 0", "the colour must be b after 0 turns, not 'w'"),
        ("lifeline-opening hex", "opening must be one of strong_pie, weak_pie, komi_pie, not 'hex'"),
        ("lifeline-opening weak_pie now", "syntax error: lifeline-opening takes 0 or 1 arguments, not 2"),
        ("lifeline-adjacent_setup maybe", "adjacent_setup must be allowed or forbidden, not 'maybe'"),
        ("lifeline-legal_moves all", "syntax error"),
        ("lifeline-to_play b", "syntax error"),
        ("lifeline-analyze x", "syntax error"),
        ("lifeline-analyze", "only models can be analyzed with, not random"),
        ("lifeline-analyze 10 10", "syntax error"),
        ("quit now", "syntax error"),
    ],
)
def test_what_cannot_be_done_is_refused_in_one_line_and_changes_nothing(line, text):
    of = engine()
    ask(of, "time_settings 100 10 5")
    play(of, "b1", "d3")
    said = refusal(of, line)
    assert said == text or said.startswith(text)
    assert said.isprintable()
    assert len(said) <= 500


# Bots.


def fast(rules):
    return make_player("rollout:50", rules)


@pytest.mark.parametrize(
    ("player", "rules", "plies"),
    [
        ("random", Rules(4), 0),
        (fast, Rules(4), 0),
        ("solver", Rules(3), 9),
        (network, Rules(4, "weak_pie"), 0),
        (network, Rules(3, "komi_pie", 2), 0),
    ],
)
def test_genmove_is_the_move_of_the_same_player_in_python(player, rules, plies):
    of = engine(rules, player, seed=77)
    twin = player(rules) if callable(player) else make_player(player, rules)
    moves, position = random_moves(rules, 5, plies)
    play(of, *moves)
    history = list(of.session.game.actions)
    while not position.is_over and len(history) < 14:
        action = choose_move(twin, position, 77, history)
        colour, text = {"b": "black", "w": "white"}[position.colour], action_text(action, rules.board)
        before = snapshot(of)
        assert ask(of, f"reg_genmove {colour}") == text
        assert snapshot(of) == before
        assert ask(of, f"genmove {colour}") == text
        position, history = position.play(action), [*history, action]
        assert of.session.game.position == position
        assert of.session.game.history == tuple(history)
    assert len(history) > plies


def test_a_seed_that_is_not_given_is_another_one_each_game():
    seeds = iter(range(100))
    of = engine(Rules(5))
    of.session._seeds = lambda: next(seeds)
    games = set()
    for _ in range(20):
        ask(of, "clear_board")
        games.add(tuple(ask(of, "genmove b") for _ in range(2)))
    assert len(games) > 15


class Broken(RandomPlayer):
    name = "broken"

    def choose(self, *arguments):
        raise ZeroDivisionError("seven\nby \x1b nought")


def test_a_mistake_in_the_program_costs_one_command(capsys):
    of = engine(player=lambda rules: Broken())
    assert refusal(of, "genmove b") == "internal error: ZeroDivisionError: seven by ? nought"
    assert talk(of, b"genmove b\nname\n").split("\n\n")[1] == "= Lifeline broken"
    assert "Traceback" in capsys.readouterr().err


def test_rules_that_the_player_cannot_play_change_nothing():
    def only_base_3(rules):
        if rules.base != 3:
            raise ZeroDivisionError
        return RandomPlayer()

    assert refusal(engine(player=only_base_3), "boardsize 4").startswith("internal error")


# Time.


@pytest.mark.parametrize(
    ("settings", "spent", "left", "stones"),
    [
        ((100, 0, 0), [30, 30], 40, 0),
        ((100, 0, 0), [30, 80], 0, 0),
        ((100, 0, 5), [110], 0, 0),  # stones in no time are no byo-yomi
        ((100, 20, 5), [90], 10, 0),
        ((100, 20, 5), [90, 15], 15, 4),
        ((100, 20, 5), [90, 15, 1, 1], 13, 2),
        ((100, 20, 5), [90, 15, 1, 1, 1, 1], 20, 5),
        ((0, 20, 5), [], 20, 5),
        ((0, 20, 1), [19], 20, 1),
        ((0, 20, 5), [25], 0, 4),
        ((0, 0, 0), [5], 0, 0),
    ],
)
def test_a_clock_counts_down_and_goes_into_byo_yomi(settings, spent, left, stones):
    clock = Clock.start(TimeSettings(*settings))
    for seconds in spent:
        clock = clock.spend(seconds)
    assert (clock.left, clock.stones) == (left, stones)


@pytest.mark.parametrize(
    ("settings", "left", "stones", "empty", "least", "most"),
    [
        ((100, 0, 0), 100, 0, 61, 2, 4),
        ((100, 0, 0), 100, 0, 10, 10, 20),
        ((100, 0, 0), 100, 0, 0, 40, 50),
        ((100, 0, 0), 0.04, 0, 61, 0, 0),
        ((100, 0, 0), 0, 0, 0, 0, 0),
        ((0, 10, 5), 10, 5, 61, 1.5, 2),
        ((0, 10, 5), 1, 1, 61, 0.8, 1),
        ((0, 10, 5), 4, 2, 61, 1.5, 2),
        ((100, 10, 1), 100, 0, 61, 8.5, 10),  # what comes after is more than a share
        ((100, 10, 1), 0, 0, 61, 8.5, 10),
        ((100, 1, 1), 100, 0, 10, 10, 20),
    ],
)
def test_a_ply_is_given_its_share(settings, left, stones, empty, least, most):
    assert least <= allotment(Clock(TimeSettings(*settings), left, stones), empty) <= most


class Slow(RandomPlayer):
    """Takes three seconds by a clock of its own for each move, and notes what it may take."""

    def __init__(self):
        self.time, self.given = 0.0, []

    def choose(self, env, rows, keys, histories=None, seconds=None):
        self.time += 3
        self.given.append(seconds)
        return super().choose(env, rows, keys)


def slow(**session):
    player = Slow()
    of = engine(Rules(5), lambda rules: player, now=lambda: player.time, **session)
    return of, player


def test_without_a_limit_a_move_takes_what_the_player_likes():
    of, player = slow()
    ask(of, "time_left b 1 0")  # of no clock
    ask(of, "genmove b")
    ask(of, "time_settings 100 0 0")
    ask(of, "time_settings 0 1 0")
    ask(of, "time_left b 1 0")
    ask(of, "genmove b")
    assert player.given[0] is player.given[-1] is None


def test_reg_genmove_knows_no_clock():
    of, player = slow()
    ask(of, "time_settings 100 0 0")
    ask(of, "reg_genmove b")
    assert player.given[-1] is None
    assert of.session._clocks["b"].left == 100


def test_a_player_is_made_ready_once_before_the_clocks_run():
    players = []

    def player_of(rules):
        players.append(Slow())
        return players[-1]

    of = engine(Rules(5), player_of)
    ask(of, "boardsize 4")
    assert [player.given for player in players] == [[], []]
    ask(of, "time_settings 100 0 0")
    ask(of, "time_settings 200 0 0")
    ask(of, "clear_board")
    ask(of, "boardsize 3")
    assert [player.given for player in players] == [[], [0.0, 0.05], [0.0, 0.05]]


def test_clocks_count_down_by_colour_unless_told():
    of, player = slow()
    ask(of, "time_settings 300 0 0")
    for colour in "bbww":
        ask(of, f"genmove {colour}")
    clocks = of.session._clocks
    assert [clocks["b"].left, clocks["w"].left] == [294, 294]
    assert player.given[-1] < player.given[-2]
    ask(of, "genmove b")
    ask(of, "time_left w 2 0")
    ask(of, "genmove w")
    assert player.given[-1] < 0.1
    ask(of, "time_left b 10 4")
    ask(of, "genmove b")
    assert 1.5 < player.given[-1] < 2.5
    assert of.session._clocks["b"].stones == 3
    ask(of, "undo")
    assert of.session._clocks["b"].stones == 3
    ask(of, "clear_board")
    assert of.session._clocks == {c: Clock.start(TimeSettings(300, 0, 0)) for c in "bw"}


def test_clocks_stay_with_their_colours_in_a_swap():
    of, _ = slow()
    ask(of, "time_settings 300 0 0")
    ask(of, "genmove b")
    ask(of, "genmove b")
    play(of, "swap")
    assert [of.session._clocks[c].left for c in "bw"] == [294, 300]


def test_seconds_for_a_move_are_a_limit_under_clocks_too():
    of, player = slow(seconds=0.5)
    given = []
    for line in ("genmove b", "time_settings 300 0 0", "genmove b", "time_left w 1 0", "genmove w", "reg_genmove w"):
        ask(of, line)
        given.append(player.given[-1])
    assert given[0] == given[2] == given[5] == 0.5
    assert given[4] < 0.1


def test_a_player_keeps_to_the_time_it_is_given():
    of = engine(Rules(5), "solver")
    ask(of, "time_settings 0 2 4")
    for colour in "bbww":
        ask(of, f"genmove {colour}")
        assert of.session._clocks[colour].left > 0


# Analysis.


def analysed(line):
    """The moves of a line of analysis: (move, visits, winrate, prior, order, pv)."""
    found = ANALYSED.findall(line)
    assert (
        " ".join(
            f"info move {m} visits {n} winrate {w} prior {p} order {o} pv {v.strip()}" for m, n, w, p, o, v in found
        )
        == line
    )
    return [(m, int(n), float(w), float(p), int(o), v.split()) for m, n, w, p, o, v in found]


class Conversation:
    """An engine that is talked to while it answers."""

    def __init__(self, of):
        (self._in, self._to), (self._from, self._out) = os.pipe(), os.pipe()
        self.answers = os.fdopen(self._from, "r")
        self._thread = threading.Thread(target=self._serve, args=[of])
        self._thread.start()

    def _serve(self, of):
        with os.fdopen(self._out, "wb") as out:
            serve(of, LineReader(lambda size: os.read(self._in, size)), out)

    def say(self, text):
        os.write(self._to, text.encode())

    def hear(self):
        return self.answers.readline().rstrip("\n")

    def end(self):
        """Close the input; what was still said."""
        os.close(self._to)
        rest = self.answers.read()
        self._thread.join(20)
        assert not self._thread.is_alive()
        self.answers.close()
        os.close(self._in)
        return rest


def test_analysis_goes_on_until_the_next_line():
    of = engine(Rules(3), network)
    play(of, "b1", "d3")
    talking = Conversation(of)
    talking.say("5 lifeline-analyze 0\n")
    assert talking.hear() == "=5"
    for simulations in (16, 32, 64, 128):
        moves = analysed(talking.hear())
        assert sum(visits for _, visits, *_ in moves) == simulations
        assert [order for *_, order, _ in moves] == list(range(len(moves)))
        # The first is what would be played: of well visited moves that whose value is surest.
        others = [visits for _, visits, *_ in moves[1:]]
        assert others == sorted(others, reverse=True)
        for move, visits, winrate, prior, _, line in moves:
            assert 0 <= winrate <= 1
            assert 0 < prior < 1
            assert line[0] == move
            assert visits >= len(line)
            position = of.session.game.position
            for ply in line:
                position = position.play(ply)
    talking.say("6 lifeline-to_play\n")
    while line := talking.hear():
        assert line.startswith("info move ")
    assert talking.hear() == "=6 white 1"
    assert talking.hear() == ""
    assert talking.end() == ""


@pytest.mark.parametrize(
    ("line", "rest"),
    [
        ("", ""),
        ("\n", ""),
        ("# enough\n", ""),
        ("dance\n", r"\? unknown command\n\n"),
        ("quit\n", r"=\n\n"),
        ("lifeline-analyze 500\n", r"=\ninfo move .*\n\n"),
    ],
)
def test_any_line_ends_an_analysis_and_so_does_the_end(line, rest):
    talking = Conversation(engine(Rules(3), network))
    talking.say("lifeline-analyze 60000\n")
    assert talking.hear() == "="
    assert analysed(talking.hear())
    talking.say(line)
    assert re.fullmatch(r"\n" + rest, talking.end())


def test_an_analysis_names_the_move_that_would_be_played():
    of = engine(Rules(4), network)
    moves = analysed(talk(of, b"lifeline-analyze\n").split("\n")[1])
    assert moves[0][0] == ask(of, "reg_genmove b")


def test_winrates_are_of_the_player_to_move():
    """A move that ends the game is won for whoever makes it, whatever his colour."""
    of, seen = engine(Rules(3), network), set()
    for seed in range(300):
        moves, last = random_moves(Rules(3), seed)
        ask(of, "clear_board")
        play(of, *moves[:-1])
        position = of.session.game.position
        if last.winner != position.to_play:
            continue
        rates = {m: w for m, _, w, *_ in analysed(talk(of, b"lifeline-analyze\n").split("\n")[1])}
        assert rates.get(moves[-1], 1) == 1
        if moves[-1] in rates:
            seen.add(f"{position.colour}{position.to_play}")
    assert len(seen) == 4


def test_after_its_last_search_an_analysis_is_silent():
    of, told = engine(Rules(3), network), []
    waits = iter([False] * 100_000)

    def arrived(seconds):
        return seconds > 1000 or next(waits)

    for line in of.handle("lifeline-analyze 0").analysis.lines(arrived):
        told.append(sum(visits for _, visits, *_ in analysed(line)))
    assert told[:4] == [16 * 2**i for i in range(4)]
    # Of leaves grown at once, those that meet count as one.
    assert all(0.95 * due <= done <= due for done, due in zip(told, [16 * 2**i for i in range(9)], strict=True))
    assert MOST_SIMULATIONS == 16 * 2**8


def test_the_interval_is_waited_out():
    asked = []

    def arrived(seconds):
        asked.append(seconds)
        return len(asked) > 40

    lines = list(engine(Rules(3), network).handle("lifeline-analyze 500").analysis.lines(arrived))
    assert 4 < max(asked) <= 5
    assert len(lines) == 2


def test_what_goes_wrong_in_an_analysis_ends_it(capsys):
    of = engine(Rules(3), network)
    of.session.player.engine.evaluator.evaluate = lambda leaves: (
        np.full((1, 21), np.nan, np.float32),
        np.zeros(1, np.float32),
    )
    assert talk(of, b"1 lifeline-analyze\n2 protocol_version\n") == "=1\n\n=2 2\n\n"
    assert "no usable value" in capsys.readouterr().err


def test_no_analysis_of_a_finished_game():
    of = engine(Rules(3), network)
    ask(of, f"lifeline-position {OVER}")
    assert refusal(of, "lifeline-analyze").startswith("the game is over")


# The guide.


def test_the_example_in_the_guide_is_what_is_said():
    command, example = re.search(r"```text\n\$ lifeline gtp (.*?)\n(.*?)```", GUIDE, re.DOTALL).groups()
    options = dict(zip(*[iter(command.split())] * 2, strict=True))
    of = engine(Rules(int(options["--base"])), options["--player"], int(options["--seed"]))
    lines = [line[2:] for line in example.split("\n") if line.startswith("> ")]
    said = re.sub(r"^> .*\n", "", example, flags=re.MULTILINE)
    assert talk(of, "".join(line + "\n" for line in lines).encode()) == said
    assert len(lines) > 8
