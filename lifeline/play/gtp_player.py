"""A player that is another program: it speaks GTP, and this keeps it at the position and takes its moves.

The program must know `boardsize` (its argument is the base), `clear_board`, `play` and `genmove`, a move being one ply:
a cell, `swap` or `komi`, with the colour of the stones. What GTP has no words for it must know as `komi` (where there
is any), `lifeline-opening` (for other openings than strong_pie) and `lifeline-adjacent_setup` (where that is
forbidden); with `lifeline-position` it can be asked about a position whose history is not known.
"""

from __future__ import annotations

import math
import shlex
import time
import weakref
from collections.abc import Iterator, Sequence
from types import TracebackType

import numpy as np

from lifeline.env import BatchEnv
from lifeline.errors import ConfigError, ForfeitError, NotationError
from lifeline.notation import action_text, parse_move
from lifeline.play.gtp_program import GtpProgram, short
from lifeline.play.players import Budget, History, IntArray
from lifeline.rules import STONES, Position, Rules
from lifeline.streams import UInt64Array

MAX_RESTARTS = 3
"""So often in a row a program is started anew without having chosen one move; after that it forfeits at once."""


class GtpPlayer:
    """Plays the moves of a program that speaks GTP, run as a subprocess.

    It is started when it is first needed, and anew after it has crashed, hung or broken the protocol, each of which
    loses the game it happens in. `close`, the end of a `with` block, of the object or of this process ends it.

    What is random in it is its own: the keys of moves are ignored, and the same game may go differently again.

    Times: GTP counts whole seconds, so a budget is rounded up, to 1 s at least. The program is told so by
    `time_settings` where it knows that, and has as much for a move and a fifth more, 1 s at least, for pipes and busy
    machines. A budget of simulations means nothing to it.

    Args:
        rules: what is played.
        command: program and arguments, split as by a POSIX shell; no shell is involved.
        budget: its `seconds` are those of each move.
        name: what it is called; else "gtp:" and the command.
        start_seconds: what it may take to start, and then again to set a position up.
        move_seconds: what it may take for a move where no time is given.

    Attributes:
        restarts: how often it has been started again.

    Raises:
        ConfigError: no command, or one with an open quotation.
    """

    batched = False

    def __init__(
        self,
        rules: Rules,
        command: str,
        budget: Budget | None = None,
        name: str | None = None,
        start_seconds: float = 60.0,
        move_seconds: float = 600.0,
    ) -> None:
        try:
            self._command = shlex.split(command)
        except ValueError as error:
            raise ConfigError(f"gtp:{short(command)} is no command: {str(error).lower()}") from None
        if not self._command:
            raise ConfigError("gtp: needs a command, such as 'gtp:lifeline gtp'")
        self._title = short(f"gtp:{command}")
        self.name = self._title if name is None else name
        self.restarts = 0
        self._rules, self._budget = rules, budget or Budget()
        self._start_seconds, self._move_seconds = start_seconds, move_seconds
        self._program: GtpProgram | None = None
        self._finalizer: weakref.finalize[[], GtpPlayer] | None = None
        self._commands: frozenset[str] = frozenset()
        self._known: tuple[int, ...] | None = None  # the plies on the program's board; None = anything
        self._told: int | None = None  # the seconds of a move it was told
        self._failures, self._last_failure = 0, ""

    def check(self) -> str:
        """Start the program, if it does not run, and see that it can play by these rules.

        Returns:
            What it calls itself.

        Raises:
            ConfigError: it cannot be started, or not play by them.
        """
        try:
            deadline = time.monotonic() + self._start_seconds
            return self._tell(self._running(), "name", deadline)
        except ForfeitError as error:
            raise ConfigError(str(error)) from None

    def close(self) -> None:
        """End the program, in about a second even if it hangs. The player can still be asked: it starts another."""
        if self._finalizer is not None:
            self._finalizer()
        self._program = None

    def __enter__(self) -> GtpPlayer:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def choose(
        self,
        env: BatchEnv,
        rows: IntArray,
        keys: UInt64Array,
        histories: Sequence[History] | None = None,
        seconds: float | None = None,
    ) -> IntArray:
        """See `Player.choose`; of one game alone.

        Raises:
            ConfigError: the history is not known, and the program does not know `lifeline-position`.
            ForfeitError: it resigned ("resigned"), did not answer in time ("time"), answered with what is no legal move
                ("illegal move"), or crashed, refused a command, broke the protocol, cannot be started, or was started
                too often in a row for nothing ("adjudicated").
            ValueError: not one row.
        """
        if len(rows) != 1:
            raise ValueError(f"a program is asked about one game at a time, not {len(rows)}")
        position = env.position(int(rows[0]))
        history = None if histories is None else tuple(int(a) for a in histories[0])
        if self._failures > MAX_RESTARTS:
            raise ForfeitError(
                "adjudicated", f"not started again after {self._failures} failures in a row: {self._last_failure}"
            )
        try:
            program = self._running()
            self._set_up(program, position, history)
            action = self._genmove(program, position, self._budget.seconds if seconds is None else seconds)
        except ForfeitError as error:
            if self._program is None or not self._program.alive:
                self._failures += 1
                self._last_failure = str(error)
            raise
        # The program has played its move already.
        self._known = None if history is None else (*history, action)
        return np.array([action], np.int64)

    def _running(self) -> GtpProgram:
        """The program, started and made ready if it does not run.

        Raises:
            ForfeitError: it cannot be started, or not play by the rules; it does not run.
        """
        if self._program is not None and self._program.alive:
            return self._program
        self.restarts += self._program is not None
        self.close()
        deadline = time.monotonic() + self._start_seconds
        self._program = program = GtpProgram(self._command, self._title)
        # Of the program alone: a finalizer that held the player would keep it for ever.
        self._finalizer = weakref.finalize(self, program.close)
        try:
            self._introduce(program, deadline)
        except BaseException:
            program.kill()
            raise
        self._known, self._told = None, None
        return program

    def _introduce(self, program: GtpProgram, deadline: float) -> None:
        """See what the program knows, and tell it the rules."""
        rules = self._rules
        version = self._tell(program, "protocol_version", deadline)
        if version != "2":
            raise ForfeitError("adjudicated", f"{self._title} speaks version {short(version)!r} of GTP where 2 is due")
        self._commands = frozenset(self._tell(program, "list_commands", deadline).split())
        settings = {"boardsize": rules.base, "lifeline-opening": rules.opening}
        needed = ["boardsize"] if rules.opening == "strong_pie" else ["boardsize", "lifeline-opening"]
        if rules.opening != "strong_pie":
            settings["lifeline-adjacent_setup"] = rules.adjacent_setup
            needed += ["lifeline-adjacent_setup"] if rules.adjacent_setup == "forbidden" else []
        if rules.opening == "komi_pie":
            settings["komi"] = rules.komi
            needed += ["komi"] if rules.komi else []
        needed += ["clear_board", "play", "genmove"]
        if missing := [name for name in needed if name not in self._commands]:
            raise ForfeitError("adjudicated", f"{self._title} does not know {', '.join(missing)}")
        for name, value in settings.items():
            # What is not needed is told too: the program may have been started with other rules.
            if name in self._commands:
                self._tell(program, f"{name} {value}", deadline)

    def _set_up(self, program: GtpProgram, position: Position, history: tuple[int, ...] | None) -> None:
        """Bring the program to a position, by the plies it lacks where that is enough."""
        known, self._known = self._known, None
        deadline = time.monotonic() + self._start_seconds
        if history is None:
            if "lifeline-position" not in self._commands:
                raise ConfigError(
                    f"{self._title} does not know lifeline-position: it can play only games whose moves are known"
                )
            self._tell(program, f"lifeline-position {position.text()}", deadline)
            return
        if known is None or history[: len(known)] != known:
            self._tell(program, "clear_board", deadline)
            known = ()
        for colour, action in list(_coloured(self._rules, history))[len(known) :]:
            self._tell(program, f"play {colour} {action_text(action, self._rules.board)}", deadline)

    def _genmove(self, program: GtpProgram, position: Position, seconds: float | None) -> int:
        whole = None if seconds is None else max(1, math.ceil(seconds))
        if whole != self._told and "time_settings" in self._commands:
            # Of so many seconds for each move; or no limit, which the protocol writes as no stones in a time. One that
            # refuses is held to the same time.
            program.ask(
                "time_settings " + ("0 1 0" if whole is None else f"0 {whole} 1"),
                time.monotonic() + self._start_seconds,
            )
            self._told = whole
        limit = self._move_seconds if whole is None else whole + max(1.0, 0.2 * whole)
        answer = self._tell(program, f"genmove {position.colour}", time.monotonic() + limit)
        self._failures = 0
        if answer.lower() == "resign":
            raise ForfeitError("resigned", f"{self._title} resigned in {position.text()}")
        told = f"{self._title} answered {short(answer)!r} in {position.text()}"
        try:
            actions = parse_move(answer, self._rules.board)
        except NotationError as error:
            raise ForfeitError("illegal move", f"{told}: {error}") from None
        if len(actions) != 1:
            raise ForfeitError("illegal move", f"{told}, where one ply is due")
        if not position.is_legal(actions[0]):
            raise ForfeitError("illegal move", f"{told}, where that is illegal")
        return actions[0]

    def _tell(self, program: GtpProgram, command: str, deadline: float) -> str:
        answer = program.ask(command, deadline)
        if not answer.ok:
            raise ForfeitError(
                "adjudicated", f"{self._title} refused {command!r}: {short(answer.text) or 'it gave no reason'}"
            )
        return answer.text


def _coloured(rules: Rules, history: Sequence[int]) -> Iterator[tuple[str, int]]:
    """Each ply with the colour of the stones it belongs to.

    Counted by turns: playing the game again in rules.py would take longer than many programs' moves.
    """
    turn, placed = 0, 0
    for action in history:
        yield STONES[turn % 2], action
        if action == rules.swap_action:
            continue
        placed += 1
        if action == rules.komi_action or placed == rules.stones_in_turn(turn):
            turn, placed = turn + 1, 0
