"""Any GTP program as a player: kept at the position, held to the rules and the clock, and never trusted."""

import gc
import os
import shlex
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import numpy as np
import pytest

from lifeline import ConfigError, Position, Rules
from lifeline.env import BatchEnv
from lifeline.errors import ForfeitError
from lifeline.play import gtp_program
from lifeline.play.gtp_player import MAX_RESTARTS, GtpPlayer
from lifeline.play.openings import Opening, random_openings
from lifeline.play.players import Budget, RandomPlayer, choose_move, make_player
from training.arena import Fixture, play_games

RULES = Rules(3)
posix = pytest.mark.skipif(os.name != "posix", reason="process groups are POSIX's")

# A program that does all it should, but for what `special` returns to be written in place of the usual answer.
PROGRAM = """
import os, signal, subprocess, sys, time

COMMANDS = "protocol_version name list_commands quit boardsize clear_board play genmove".split() + {commands!r}
moves = list({moves!r})
asked = 0

def special(number, command, arguments):
{special}

def usual(command):
    global asked
    if command == "genmove":
        asked += 1
        return moves[(asked - 1) % len(moves)]
    return {{"protocol_version": "2", "name": "Scripted", "list_commands": "\\n".join(COMMANDS)}}.get(command, "")

for line in sys.stdin:
    number, command, *arguments = line.split()
    with open({log!r}, "a") as log:
        log.write(" ".join([command, *arguments]) + "\\n")
    answer = special(number, command, arguments)
    sys.stdout.write(f"={{number}} {{usual(command)}}\\n\\n" if answer is None else answer)
    sys.stdout.flush()
    if command == "quit":
        break
"""


@pytest.fixture
def scripted(tmp_path):
    """Makes players of scripted programs, and ends them. What they were told is in `scripted.told()`."""
    players, log, script = [], tmp_path / "log", tmp_path / "program.py"

    def make(special="pass", moves=("c3",), commands=(), rules=RULES, **options):
        body = textwrap.indent(textwrap.dedent(special), "    ")
        script.write_text(PROGRAM.format(special=body, moves=moves, commands=list(commands), log=str(log)))
        command = shlex.join([sys.executable, "-I", "-S", str(script)])
        players.append(GtpPlayer(rules, command, **options))
        return players[-1]

    def told():
        lines = log.read_text().splitlines()
        log.write_text("")
        return lines

    make.told = told
    yield make
    for player in players:
        player.close()


def ask(player, moves="", rules=RULES, seconds=None):
    """The player's move after some moves."""
    opening = actions_of(moves, rules)
    action = choose_move(player, opening.position, 0, opening.actions, seconds)
    return (*rules.board.labels, "swap", "komi")[action]


def actions_of(moves, rules=RULES):
    labels = (*rules.board.labels, "swap", "komi")
    return Opening.of(rules, [labels.index(m) for m in moves.split()])


def is_gone(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    status = Path(f"/proc/{pid}/stat")  # whoever inherits an ended process may be slow to wait for it
    return status.exists() and status.read_text().rsplit(")")[-1].split()[0] == "Z"


def await_gone(pid):
    """Whether it ends soon; a signal that was sent takes its time."""
    deadline = time.monotonic() + 5
    while not is_gone(pid) and time.monotonic() < deadline:
        time.sleep(0.01)
    return is_gone(pid)


def test_it_is_started_at_its_first_move_and_told_all_moves(scripted):
    player = scripted()
    assert player._program is None
    assert ask(player, "a1 e3 swap") == "c3"
    assert scripted.told() == [
        "protocol_version",
        "list_commands",
        "boardsize 3",
        "clear_board",
        "play b a1",
        "play b e3",
        "play w swap",
        "genmove w",
    ]


def test_it_is_told_only_what_it_does_not_know(scripted):
    player = scripted(moves=("c3", "a3", "d2"))
    ask(player, "a1 e3")
    ask(player, "a1 e3 c3")
    ask(player, "a1 e3 c3 a3 e1")
    assert scripted.told()[-4:] == ["genmove w", "genmove w", "play b e1", "genmove w"]


def test_another_game_is_set_up_anew(scripted):
    player = scripted()
    ask(player, "a1 e3")
    scripted.told()
    ask(player, "a1 e2")
    assert scripted.told() == ["clear_board", "play b a1", "play b e2", "genmove w"]
    ask(player, "a1 e2")  # it has played a move of its own in that game
    assert scripted.told() == ["clear_board", "play b a1", "play b e2", "genmove w"]


@pytest.mark.parametrize(
    ("rules", "settings", "moves", "colours"),
    [
        (Rules(4), ["boardsize 4", "lifeline-opening strong_pie"], "a1 e3 swap b2 c5", "b b w w w"),
        (
            Rules(3, "weak_pie"),
            ["boardsize 3", "lifeline-opening weak_pie", "lifeline-adjacent_setup allowed"],
            "a1 swap e3 a3 e1",
            "b w w b w",
        ),
        (
            Rules(3, "komi_pie", 2, "forbidden"),
            ["boardsize 3", "lifeline-opening komi_pie", "lifeline-adjacent_setup forbidden", "komi 2"],
            "a1 a3 e1 e3 b3 komi",
            "b w b w b w",
        ),
    ],
)
def test_rules_and_colours_are_told(scripted, rules, settings, moves, colours):
    extras = ["komi", "lifeline-opening", "lifeline-adjacent_setup"]
    ask(scripted(rules=rules, commands=extras), moves, rules)
    told = scripted.told()
    assert told[2 : 2 + len(settings)] == settings
    plays = [f"play {colour} {move}" for colour, move in zip(colours.split(), moves.split(), strict=True)]
    assert told[2 + len(settings) :] == ["clear_board", *plays, told[-1]]


def test_without_a_history_it_is_told_the_position(scripted):
    position = actions_of("a1 e3 swap").position
    player = scripted(commands=["lifeline-position"])
    assert choose_move(player, position, 0) == RULES.board.cell("c3")
    assert scripted.told()[3:] == [f"lifeline-position {position.text()}", "genmove w"]
    ask(player, "a1 e3 swap")  # what is on its board was not told move by move
    assert scripted.told()[0] == "clear_board"
    with pytest.raises(ConfigError, match="does not know lifeline-position"):
        choose_move(scripted(), position, 0)


def test_it_is_asked_about_one_game_at_a_time(scripted):
    with pytest.raises(ValueError, match="one game at a time, not 2"):
        scripted().choose(BatchEnv(RULES, 2), np.arange(2), np.zeros(2, np.uint64), [(), ()])


def test_it_is_told_its_time_once_in_whole_seconds(scripted):
    player = scripted(commands=["time_settings"], budget=Budget(seconds=0.2), moves=("c3", "a1"))
    ask(player)
    ask(player, "c3")
    ask(player, seconds=2.5)
    assert [line for line in scripted.told() if line.startswith("time")] == [
        "time_settings 0 1 1",
        "time_settings 0 3 1",
    ]
    unlimited = scripted(commands=["time_settings"])
    ask(unlimited, seconds=1)
    ask(unlimited)
    assert [line for line in scripted.told() if line.startswith("time")] == [
        "time_settings 0 1 1",
        "time_settings 0 1 0",
    ]


def test_a_program_that_refuses_times_plays_on(scripted):
    player = scripted("if command == 'time_settings': return f'?{number} no\\n\\n'", commands=["time_settings"])
    assert ask(player, seconds=1) == "c3"


@pytest.mark.parametrize(
    "answer",
    ["= C3", "=\t c3 ", "= c\\x013", "\\n \\n= c3", "= c3\\r\\n\\r"],
    ids=["upper case", "blanks", "control characters", "blank lines before", "CRLF"],
)
def test_what_the_protocol_allows_is_understood(scripted, answer):
    player = scripted(f"""
        if command == "genmove": return "{answer}".replace("=", "=" + number) + "\\n\\n"
    """)
    assert ask(player) == "c3"


def test_all_but_its_moves_may_come_in_crlf_too(scripted):
    player = scripted("return f'={number} {usual(command)}\\n\\n'.replace('\\n', '\\r\\n')", moves=("c3", "a1"))
    assert [ask(player), ask(player, "c3")] == ["c3", "a1"]


def test_a_slow_program_has_its_time(scripted):
    player = scripted("if command == 'genmove': time.sleep(0.6)")
    assert ask(player, seconds=0.01) == "c3"  # a second is the least that the protocol can say


def test_complaints_without_end_do_not_stop_it(scripted):
    assert ask(scripted("sys.stderr.write('x' * 1_000_000)")) == "c3"


FORFEITS = {
    "hangs": ("time.sleep(60)", "time", "did not answer 'genmove b' within 0.5 s"),
    "crashes": (
        "print('Traceback', 'out of memory', '', sep='\\n', file=sys.stderr); sys.exit(3)",
        "adjudicated",
        "ended with exit code 3 at 'genmove b': out of memory",
    ),
    "exits silently": ("sys.exit(0)", "adjudicated", "ended with exit code 0 at 'genmove b'"),
    "ends in mid-answer": ("sys.stdout.write(f'={number} c3'); sys.exit(0)", "adjudicated", "exit code 0"),
    "closes its output": ("os.close(1); time.sleep(60)", "adjudicated", "closed its pipes at 'genmove b'"),
    "resigns": ("return f'={number} Resign\\n\\n'", "resigned", "resigned in 3/4/5/4/3 b 0 0 - 0"),
    "no move": ("return f'={number} z\\x1b[31m9\\n\\n'", "illegal move", r"answered 'z\[31m9' in 3/4/5/4/3 b 0 0 - 0"),
    "empty answer": ("return f'={number}\\n\\n'", "illegal move", "answered ''"),
    "pass": ("return f'={number} pass\\n\\n'", "illegal move", "no cell 'pass'"),
    "two plies": ("return f'={number} a1,e3\\n\\n'", "illegal move", "one ply is due"),
    "illegal swap": ("return f'={number} swap\\n\\n'", "illegal move", "'swap' .* that is illegal"),
    "many lines": ("return f'={number} a1\\ne3\\n\\n'", "illegal move", "answered 'a1 e3'"),
    "long answer": ("return f'={number} ' + 'a' * 90_000 + '\\n\\n'", "illegal move", r"a\.\.\.' in"),
    "error": ("return f'?{number} I give up\\n\\n'", "adjudicated", "refused 'genmove b': I give up"),
    "error without words": ("return f'?{number}\\n\\n'", "adjudicated", "it gave no reason"),
    "wrong number": ("return '=99 c3\\n\\n'", "adjudicated", r"wrote '=99 c3' where an answer =\d+ .* was due"),
    "no number": ("return '= c3\\n\\n'", "adjudicated", "wrote '= c3' where"),
    "chatter": ("return f'thinking\\n={number} c3\\n\\n'", "adjudicated", "wrote 'thinking =5 c3' where"),
    "flood": ("while True: sys.stdout.write('x' * 65536)", "adjudicated", "wrote more than 100000 bytes"),
    "flood of lines": ("while True: sys.stdout.write('x\\n' * 9999)", "adjudicated", "wrote more than 100000 bytes"),
    "flood of blanks": ("while True: sys.stdout.write('\\n' * 9999)", "adjudicated", "wrote more than 100000 bytes"),
    "flood of answers": ("while True: sys.stdout.write('= a1\\n\\n' * 9999)", "adjudicated", "wrote '= a1' where"),
}


@pytest.mark.parametrize("case", FORFEITS)
def test_misconduct_loses_the_game_and_the_next_is_played(scripted, tmp_path, monkeypatch, case):
    monkeypatch.setattr(gtp_program, "MAX_ANSWER", 100_000)  # as they are, these take a while
    monkeypatch.setattr(gtp_program, "_EXIT_SECONDS", 0.3)
    special, reason, detail = FORFEITS[case]
    done = str(tmp_path / "done")
    once = f"""
        if command == "genmove" and not os.path.exists({done!r}):
            open({done!r}, "w").close()
            {special}
    """
    player = scripted(once, move_seconds=0.5 if case == "hangs" else 60)
    with pytest.raises(ForfeitError, match=detail) as caught:
        ask(player)
    assert caught.value.reason == reason
    assert str(caught.value).startswith("gtp:")
    assert str(caught.value).isprintable()
    assert len(str(caught.value)) < 700
    player._move_seconds = 60.0
    assert ask(player) == "c3"
    keeps_running = case == "resigns" or "error" in case or reason == "illegal move"
    assert player.restarts == (0 if keeps_running else 1)


@posix
def test_a_signal_is_named(scripted):
    with pytest.raises(ForfeitError, match="was ended by signal 9 at 'genmove b'"):
        ask(scripted("if command == 'genmove': os.kill(os.getpid(), signal.SIGKILL)"))


def test_a_refused_move_of_the_game_is_an_adjudicated_loss(scripted):
    player = scripted("if arguments == ['w', 'swap']: return f'?{number} no such vertex\\n\\n'")
    with pytest.raises(ForfeitError, match="refused 'play w swap': no such vertex") as caught:
        ask(player, "a1 e3 swap")
    assert caught.value.reason == "adjudicated"
    assert ask(player, "a1 e3") == "c3"


def test_a_program_that_hangs_while_it_is_set_up_has_overstepped(scripted):
    player = scripted("if command == 'play': time.sleep(60)")
    player.check()
    player._start_seconds = 0.3
    with pytest.raises(ForfeitError, match="did not answer 'play b a1'") as caught:
        ask(player, "a1")
    assert caught.value.reason == "time"


def test_time_over_is_judged_by_the_budget_and_its_grace(scripted):
    began = time.monotonic()
    with pytest.raises(ForfeitError, match=r"within 2\.0 s") as caught:
        ask(scripted("if command == 'genmove': time.sleep(60)"), seconds=0.5)
    assert caught.value.reason == "time"
    assert time.monotonic() - began < 10


def test_after_too_many_failures_in_a_row_it_forfeits_at_once(scripted):
    player = scripted("if command == 'genmove': sys.exit(1)")
    for _ in range(MAX_RESTARTS + 1):
        with pytest.raises(ForfeitError, match="ended with exit code 1"):
            ask(player)
    assert player.restarts == MAX_RESTARTS
    scripted.told()
    began = time.monotonic()
    for _ in range(100):
        with pytest.raises(ForfeitError, match=r"not started again after 4 failures in a row: .*exit code 1"):
            ask(player)
    assert time.monotonic() - began < 5
    assert scripted.told() == []


def test_failures_between_moves_do_not_add_up(scripted):
    player = scripted("if command == 'genmove' and arguments == ['w']: sys.exit(1)")
    for _ in range(MAX_RESTARTS + 2):
        assert ask(player) == "c3"
        with pytest.raises(ForfeitError, match="ended with exit code 1"):
            ask(player, "a1 e3")
    assert player.restarts == MAX_RESTARTS + 1


def test_a_match_against_a_broken_program_goes_on_to_its_end(scripted):
    player = scripted("if command == 'boardsize': sys.exit(2)")
    openings = random_openings(RULES, 10, np.random.default_rng(0))
    games = play_games(player, RandomPlayer(), [Fixture(o, n % 2, n) for n, o in enumerate(openings)])
    assert not any(g.first_won for g in games)
    assert {g.result.reason for g in games} == {"adjudicated"}
    assert "exit code 2" in games[0].detail
    assert "not started again" in games[-1].detail


CHECKS = {
    "version": ("if command == 'protocol_version': return f'={number} 1\\n\\n'", "version '1' of GTP where 2 is due"),
    "commands": ("COMMANDS[:] = ['boardsize', 'clear_board', 'play']", "does not know genmove"),
    "size": ("if command == 'boardsize': return f'?{number} unacceptable size\\n\\n'", "'boardsize 3': unacceptable"),
    "crash": ("sys.exit('no licence')", "ended with exit code 1 at 'protocol_version': no licence"),
    "hang": ("time.sleep(60)", r"did not answer 'protocol_version' within 0\.5 s"),
}


@pytest.mark.parametrize("case", CHECKS)
def test_a_program_that_cannot_play_is_found_by_a_check(scripted, case):
    special, message = CHECKS[case]
    player = scripted(special, start_seconds=0.5 if case == "hang" else 60)
    with pytest.raises(ConfigError, match=message) as caught:
        player.check()
    assert str(caught.value).startswith("gtp:")
    assert not player._program.alive
    with pytest.raises(ForfeitError, match=message) as lost:
        ask(player)
    assert lost.value.reason == ("time" if case == "hang" else "adjudicated")


@pytest.mark.parametrize(
    ("rules", "needed"),
    [
        (Rules(3, "weak_pie"), "lifeline-opening"),
        (Rules(3, "weak_pie", adjacent_setup="forbidden"), "lifeline-opening, lifeline-adjacent_setup"),
        (Rules(3, "komi_pie", 1), "lifeline-opening, komi"),
    ],
)
def test_commands_that_the_rules_need_are_asked_for(scripted, rules, needed):
    with pytest.raises(ConfigError, match=f"does not know {needed}$"):
        scripted(rules=rules).check()


def test_a_check_returns_the_name_and_leaves_the_program_ready(scripted):
    player = scripted()
    assert player.check() == "Scripted"
    assert ask(player) == "c3"
    assert scripted.told().count("boardsize 3") == 1


@pytest.mark.parametrize("command", ["/no/such/program", "'bad\0name'"])
def test_a_program_that_is_not_there_is_named(command):
    player = GtpPlayer(RULES, command)
    with pytest.raises(ConfigError, match="cannot be started"):
        player.check()
    for _ in range(MAX_RESTARTS + 2):
        with pytest.raises(ForfeitError, match="cannot be started"):
            ask(player)


@pytest.mark.parametrize("text", ["gtp:", "gtp:  ", "gtp:'open"])
def test_no_command_is_no_player(text):
    with pytest.raises(ConfigError, match="gtp:"):
        make_player(text, RULES)


def test_players_are_made_of_commands_without_a_shell():
    player = make_player("gtp:program 'one argument' $HOME", RULES, Budget(seconds=3))
    assert isinstance(player, GtpPlayer)
    assert player._command == ["program", "one argument", "$HOME"]
    assert player.name == "gtp:program 'one argument' $HOME"


@posix
@pytest.mark.parametrize("special", ["pass", "if command == 'quit': time.sleep(60)"], ids=["obeys", "hangs"])
def test_no_process_is_left_after_close(scripted, special):
    with scripted(special) as player:
        ask(player)
        pid = player._program.pid
        assert not is_gone(pid)
        assert os.getpgid(pid) == pid != os.getpgid(0)  # Ctrl-C does not reach it
    assert is_gone(pid)
    assert scripted.told()[-1] == "quit"
    player.close()


@posix
@pytest.mark.parametrize("end", ["crash", "close"])
def test_what_a_program_has_started_ends_with_it(scripted, tmp_path, end):
    pids = tmp_path / "pid"
    player = scripted(f"""
        if command == "genmove":
            child = subprocess.Popen(["sleep", "60"])
            open({str(pids)!r}, "w").write(str(child.pid))
            if {end == "crash"}: os._exit(1)
    """)
    if end == "crash":
        with pytest.raises(ForfeitError, match="ended with exit code 1"):  # though the child holds its pipes open
            ask(player)
    else:
        ask(player)
        player.close()
    assert await_gone(int(pids.read_text()))


@posix
def test_a_forgotten_player_ends_its_program(scripted):
    command = shlex.join(scripted()._command)
    player = GtpPlayer(RULES, command)
    ask(player)
    pid = player._program.pid
    del player
    gc.collect()
    assert is_gone(pid)


@posix
def test_the_end_of_this_process_ends_the_program(scripted):
    command = shlex.join(scripted()._command)
    code = f"""
        from lifeline import Rules
        from lifeline.play.gtp_player import GtpPlayer
        player = GtpPlayer(Rules(3), {command!r})
        player.check()
        print(player._program.pid)
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, check=True)
    assert done.stderr == ""
    assert await_gone(int(done.stdout))


def test_an_interrupted_ask_does_not_leave_its_answer_to_the_next(scripted, monkeypatch):
    player = scripted(moves=("c3", "a1"))
    ask(player)

    def interrupted(timeout):
        raise KeyboardInterrupt

    monkeypatch.setattr(player._program._arrived, "wait", interrupted)
    with pytest.raises(KeyboardInterrupt):
        ask(player, "c3")
    assert not player._program.alive
    assert ask(player) == "c3"


def test_a_finished_game_is_not_asked_about(scripted):
    over = Position.parse("3/4/5/4/3 b 8 0 - 0", RULES)
    with pytest.raises(ValueError, match="over"):
        choose_move(scripted(), over, 0, ())


@pytest.mark.parametrize(
    "rules", [Rules(4), Rules(3, "komi_pie", komi=2, adjacent_setup="forbidden")], ids=lambda rules: rules.opening
)
def test_whole_games_against_our_own_engine(rules):
    # It begins with other rules, and must be told those that are played.
    command = shlex.join([sys.executable, "-m", "lifeline.cli", "gtp", "--player", "random", "--opening", "weak_pie"])
    openings = [Opening.of(rules, ()), *random_openings(rules, 3, np.random.default_rng(0))]
    with GtpPlayer(rules, command, Budget(seconds=5)) as player:
        assert player.check() == "Lifeline random"
        games = play_games(player, RandomPlayer(), [Fixture(o, n % 2, n) for n, o in enumerate(openings)])
        assert [(g.result.reason, g.detail) for g in games] == [("played out", "")] * 4
        last = actions_of(" ".join(games[0].moves[:-1]), rules).position
        assert last.is_legal(choose_move(player, last, 0))  # by its position alone
        assert player.restarts == 0
