"""What `lifeline solve` says: the solver's answers as lines and as data."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from lifeline.notation import action_text
from lifeline.rules import Position, Rules
from lifeline.solver import FirstTurns, Solution

_VALUES = {1: "the player to move wins", -1: "the player to move loses", None: "not known"}
_COLOURS = {"b": "black", "w": "white", None: None}


def solution_data(position: Position, solution: Solution) -> dict[str, Any]:
    """position (text), value (1, -1 or null), winning and undecided (move texts), nodes, seconds."""
    return {
        "position": position.text(),
        "value": solution.value,
        "winning": _texts(position, solution.known_winning),
        "undecided": _texts(position, solution.undecided),
        "nodes": solution.nodes,
        "seconds": round(solution.seconds, 3),
    }


def solution_text(position: Position, solution: Solution) -> str:
    """The same in lines, without a newline at the end."""
    none = "none known" if solution.undecided else "none"
    lines = [
        f"value: {_VALUES[solution.value]}",
        f"winning moves: {' '.join(_texts(position, solution.known_winning)) or none}",
    ]
    if solution.undecided:
        lines.append(f"undecided: {' '.join(_texts(position, solution.undecided))}")
    return "\n".join([*lines, f"nodes: {solution.nodes} in {solution.seconds:.2f} s"])


def _texts(position: Position, actions: tuple[int, ...]) -> list[str]:
    return [action_text(action, position.rules.board) for action in actions]


def first_turns_data(rules: Rules, total: int, found: FirstTurns) -> dict[str, Any]:
    """base, opening, adjacent_setup, first_turns (how many), black, white, undecided, nodes, seconds, winners.

    Args:
        rules: what is played.
        total: how many first turns there are.
        found: what the solver knows of them; those it does not have are undecided.
    Returns:
        Counts, and in `winners` the colour that wins by move text, null where it is not known.
    """
    return {
        "base": rules.base,
        "opening": rules.opening,
        "adjacent_setup": rules.adjacent_setup,
        "first_turns": total,
        "black": found.count("b"),
        "white": found.count("w"),
        "undecided": total - found.count("b") - found.count("w"),
        "nodes": found.nodes,
        "seconds": round(found.seconds, 3),
        "winners": {text: _COLOURS[winner] for text, winner in found.winners.items()},
    }


def first_turns_text(rules: Rules, total: int, found: FirstTurns) -> str:
    """The counts in lines, without a newline at the end."""
    black, white = found.count("b"), found.count("w")
    lines = [
        f"first turns of Black, base {rules.base}, {rules.opening}, no swap: {total}",
        f"Black wins: {black}",
        f"White wins: {white}",
    ]
    if black + white < total:
        lines.append(f"undecided: {total - black - white}")
    return "\n".join([*lines, f"nodes: {found.nodes} in {found.seconds:.2f} s"])


def progress_line(total: int, found: FirstTurns) -> str:
    """How far the first turns have been solved, in one line."""
    counts = f"Black wins {found.count('b')}, White {found.count('w')}, undecided {found.count(None)}"
    return f"{len(found.winners)} of {total}: {counts}; {found.nodes} nodes, {found.seconds:.0f} s"


@contextmanager
def stop_on_ctrl_c() -> Iterator[threading.Event]:
    """An event that Ctrl-C sets in place of raising KeyboardInterrupt; a second one raises it. Main thread only."""
    stop = threading.Event()

    def on_signal(number: int, frame: object) -> None:
        if stop.is_set():
            raise KeyboardInterrupt
        stop.set()

    before = signal.signal(signal.SIGINT, on_signal)
    try:
        yield stop
    finally:
        signal.signal(signal.SIGINT, before)
