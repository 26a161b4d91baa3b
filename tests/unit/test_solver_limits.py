"""The solver ends when it is told to, keeps what it knows, and refuses positions of other rules."""

import signal
import subprocess
import sys
import threading
import time

import pytest

from lifeline import LifelineError, Position, Rules
from lifeline.kernels import encode_position, perft
from lifeline.solver import FirstTurns, Solver, first_turns

RULES = Rules(5)
START = Position.start(RULES)


@pytest.fixture(scope="module")
def solver():
    solver = Solver(RULES, table_bits=16)
    solver.solve(START, max_nodes=1)  # compiles
    return solver


def test_an_event_set_elsewhere_stops_a_solve_at_once(solver):
    stop = threading.Event()
    timer = threading.Timer(0.3, stop.set)
    timer.start()
    solution = solver.solve(START, stop=stop.is_set)
    assert 0.2 < solution.seconds < 1.3
    assert solution.value is None
    assert solution.winning is None
    assert solution.undecided == tuple(START.legal_actions())


def test_a_stop_that_came_before_searches_nothing(solver):
    solution = solver.solve(START, stop=lambda: True)
    assert solution.nodes == 0
    assert len(solution.undecided) == 61


def test_seconds_are_kept_to(solver):
    assert 0.2 < solver.solve(START, max_seconds=0.2).seconds < 1.2
    began = time.perf_counter()
    assert solver.value(encode_position(START), max_seconds=0.2) == 0
    assert time.perf_counter() - began < 1.2


def test_nodes_are_kept_to_but_for_one_a_move(solver):
    assert 5_000 <= solver.solve(START, max_nodes=5_000).nodes <= 5_000 + 61


def test_an_exception_in_the_waiting_thread_ends_the_search_and_the_solver_goes_on(solver):
    calls = []

    def stop():
        calls.append(None)
        if len(calls) > 5:
            raise KeyboardInterrupt
        return False

    before = threading.active_count()
    with pytest.raises(KeyboardInterrupt):
        solver.value(encode_position(START), stop=stop)
    assert threading.active_count() == before
    late = Position.parse("w1bbb/wwwbb1/bbwwb1b/1wbw1bbw/wbbwwbww1/2bw1www/1b1wbw1/1w1bbw/wbbbb w 47 0 - 0", RULES)
    assert len(solver.solve(late).winning) == 12


def test_known_wins_are_told_though_other_moves_are_undecided():
    position = Position.parse("bbb2/bbbb1b/bwwwbbb/bwbbbwww/1bwbbb1ww/b1bbw2w/wwb1ww1/wwwwb1/w1www w 49 0 - 0", RULES)
    solution = Solver(RULES, table_bits=10).solve(position, max_nodes=1)
    assert solution.value == 1
    assert [RULES.board.labels[action] for action in solution.known_winning] == ["d7", "c7", "b6"]
    assert len(solution.undecided) == 5
    assert solution.winning is None


@pytest.mark.parametrize(
    "rules", [Rules(4), Rules(5, "weak_pie"), Rules(5, "weak_pie", adjacent_setup="forbidden"), Rules(5, "komi_pie", 3)]
)
def test_a_position_of_other_rules_is_refused(solver, rules):
    with pytest.raises(LifelineError, match="for a solver of"):
        solver.solve(Position.start(rules))


def test_the_komi_is_the_positions_own():
    position = Position.start(Rules(5, "komi_pie", 2))
    assert Solver(Rules(5, "komi_pie", 5), table_bits=10).solve(position, max_nodes=1).value is None


@pytest.mark.parametrize(
    "rules",
    [Rules(3), Rules(4), Rules(3, "weak_pie"), Rules(3, "komi_pie", 4), Rules(4, "weak_pie", 0, "forbidden")],
)
def test_each_first_turn_is_there_once_and_cannot_be_swapped(rules):
    turns = list(first_turns(rules))
    assert len(turns) == len({text for text, _ in turns}) == perft(Position.start(rules), 1)
    for text, position in turns:
        assert position.stones == Position.start(rules).play(text).stones
        assert (position.turn, position.placed, position.may_swap, position.komi) == (1, 0, False, rules.komi)


def test_first_turns_under_a_limit_are_undecided_and_progress_is_told(solver):
    told: list[FirstTurns] = []
    result = solver.solve_first_turns(max_nodes=100, progress=told.append)
    assert len(told) == len(result.winners) == 1674
    assert result.count("b") + result.count("w") + result.count(None) == 1674
    assert result.count(None) > 0
    assert told[-1].nodes == result.nodes


def test_stopped_first_turns_are_left_out(solver):
    stop = threading.Event()
    result = solver.solve_first_turns(stop=stop.is_set, progress=lambda _: stop.set(), max_nodes=50)
    assert len(result.winners) == 1


CTRL_C = """
import signal
from lifeline import Position, Rules
from lifeline.solver import Solver
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell may have started all this deaf to it
rules = Rules(5)
solver = Solver(rules, table_bits=16)
solver.solve(Position.start(rules), max_nodes=1)
print("ready", flush=True)
try:
    solver.solve(Position.start(rules))
except KeyboardInterrupt:
    print("interrupted", flush=True)
"""


def test_ctrl_c_is_an_ordinary_keyboard_interrupt_to_users_of_the_library(solver):
    with subprocess.Popen([sys.executable, "-c", CTRL_C], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "ready\n"
        time.sleep(0.5)
        began = time.monotonic()
        process.send_signal(signal.SIGINT)
        assert process.stdout.readline() == "interrupted\n"
        assert time.monotonic() - began < 1
        assert process.wait(timeout=20) == 0
