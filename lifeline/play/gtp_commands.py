"""The commands of GTP for one game at a time: what they change, and what they answer or refuse."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from lifeline.board import MAX_BASE, MIN_BASE
from lifeline.env import BatchEnv
from lifeline.errors import LifelineError, NotationError
from lifeline.notation import action_text, parse_move
from lifeline.play.clock import Clock, TimeSettings, allotment
from lifeline.play.engine import Engine
from lifeline.play.gtp_analysis import Telling
from lifeline.play.players import NetworkPlayer, Player, choose_move
from lifeline.render import board_text
from lifeline.rules import STONES, Position, Rules
from lifeline.version import __version__

_COLOURS = {"b": "b", "black": "b", "w": "w", "white": "w"}
_NAMES = {"b": "black", "w": "white"}
# What GTP knows as a move, and this game or board may not have.
_VERTEX = re.compile(r"[a-z][0-9]{1,3}|pass|resign", re.ASCII | re.IGNORECASE)
_WHOLE = re.compile(r"[0-9]{1,9}", re.ASCII)
_DECIMAL = re.compile(r"[0-9]{1,9}(\.[0-9]{0,9})?", re.ASCII)


class Refusal(LifelineError):
    """A command that is not carried out. The message begins with GTP's own words where it has some for the case."""


@dataclass(frozen=True)
class Game:
    """A game under way. Immutable.

    Attributes:
        positions: where it began, and the position after each ply.
        actions: the plies.
    """

    positions: tuple[Position, ...]
    actions: tuple[int, ...] = ()

    @property
    def position(self) -> Position:
        """The position now."""
        return self.positions[-1]

    @property
    def history(self) -> tuple[int, ...] | None:
        """The plies from the start of the rules; None where the game began elsewhere."""
        return self.actions if self.positions[0] == Position.start(self.position.rules) else None

    def play(self, action: int) -> Game:
        """The game after one more ply.

        Raises:
            IllegalMoveError: see `Position.play`.
        """
        return Game((*self.positions, self.position.play(action)), (*self.actions, action))


class GtpSession:
    """The state behind a conversation: rules, player, game and clocks. A command that raises has changed nothing.

    Args:
        rules: what is played at first.
        player_of: makes the player for some rules.
        seeds: gives the seed of each game, 0..2**64-1.
        seconds: for each move, at most; None = as the clocks allow, or as the player likes where there are none.
        now: a clock, in seconds.

    Attributes:
        game: the game now.
        player: who moves when asked to.

    Raises:
        LifelineError: `player_of` has no player for these rules.
    """

    def __init__(
        self,
        rules: Rules,
        player_of: Callable[[Rules], Player],
        seeds: Callable[[], int],
        seconds: float | None = None,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self._player_of, self._seeds, self._seconds, self._now = player_of, seeds, seconds, now
        self._settings: TimeSettings | None = None
        self._prepared: Player | None = None
        self.player = player_of(rules)
        self._begin(Position.start(rules))

    def run(self, command: str, arguments: list[str]) -> str | Telling:
        """Carry out one command.

        Returns:
            The answer, lines without an empty one among them; or an analysis to be told until it is ended.
        Raises:
            LifelineError: the command is refused, and nothing has changed; the message says why.
        """
        if command not in COMMANDS:
            raise Refusal("unknown command")
        method, least, most = COMMANDS[command]
        if not least <= len(arguments) <= most:
            wanted = f"{most} argument{'' if most == 1 else 's'}" if least == most else f"{least} or {most} arguments"
            raise Refusal(f"syntax error: {command} takes {wanted}, not {len(arguments)}")
        return method(self, arguments)

    def _begin(self, position: Position) -> None:
        self.game = Game((position,))
        self._seed = self._seeds()
        if isinstance(self.player, NetworkPlayer):
            self.player.engine.new_game()
        self._start_clocks()

    def _start_clocks(self) -> None:
        settings, clocks = self._settings, dict[str, Clock]()
        if settings is not None and not settings.unlimited:
            clocks = {colour: Clock.start(settings) for colour in STONES}
        self._clocks = clocks

    def _change_rules(self, rules: Rules) -> None:
        if rules != self._rules:
            player = self._player_of(rules)
            if self._clocks:
                self._prepare(player, rules)
            self.player = player
        self._begin(Position.start(rules))

    @property
    def _rules(self) -> Rules:
        return self.game.position.rules

    # What the engine is.

    def _protocol_version(self, arguments: list[str]) -> str:
        return "2"

    def _name(self, arguments: list[str]) -> str:
        return f"Lifeline {self.player.name}"

    def _version(self, arguments: list[str]) -> str:
        return __version__

    def _known_command(self, arguments: list[str]) -> str:
        return "true" if arguments[0] in COMMANDS else "false"

    def _list_commands(self, arguments: list[str]) -> str:
        return "\n".join(sorted(COMMANDS))

    def _quit(self, arguments: list[str]) -> str:
        return ""

    # What is played.

    def _boardsize(self, arguments: list[str]) -> str:
        base = _whole(arguments[0], "the base")
        if not MIN_BASE <= base <= MAX_BASE:
            raise Refusal(f"unacceptable size: the base is {MIN_BASE} to {MAX_BASE}")
        self._change_rules(replace(self._rules, base=base))
        return ""

    def _clear_board(self, arguments: list[str]) -> str:
        self._begin(Position.start(self._rules))
        return ""

    def _komi(self, arguments: list[str]) -> str:
        # Controllers for other games send 7.0 for 7.
        komi = _whole(re.sub(r"\.0*$", "", arguments[0]), "the komi")
        if komi == self._rules.komi:
            return ""
        rules = replace(self._rules, komi=komi)
        if self.game.positions != (Position.start(self._rules),):
            raise Refusal("the komi is settled before the first stone: clear_board comes first")
        self._change_rules(rules)
        return ""

    def _opening(self, arguments: list[str]) -> str:
        if not arguments:
            return self._rules.opening
        name, rules = arguments[0], self._rules
        komi = rules.komi if name == "komi_pie" else 0
        adjacent = "allowed" if name == "strong_pie" else rules.adjacent_setup
        self._change_rules(Rules(rules.base, name, komi, adjacent))
        return ""

    def _adjacent_setup(self, arguments: list[str]) -> str:
        if not arguments:
            return self._rules.adjacent_setup
        self._change_rules(replace(self._rules, adjacent_setup=arguments[0]))
        return ""

    # The game.

    def _play(self, arguments: list[str]) -> str:
        colour, text = _colour(arguments[0]), arguments[1]
        try:
            actions = parse_move(text, self._rules.board)
        except NotationError as error:
            raise Refusal(f"{'illegal move' if _VERTEX.fullmatch(text) else 'syntax error'}: {error}") from None
        if len(actions) > 1:
            raise Refusal("syntax error: one stone a command")
        self._check_turn(colour, "illegal move: ")
        self.game = self.game.play(actions[0])
        return ""

    def _genmove(self, arguments: list[str]) -> str:
        colour = _colour(arguments[0])
        self._check_turn(colour)
        clock, seconds = self._clocks.get(colour), self._seconds
        if clock is not None:
            share = allotment(clock, self.game.position.stones.count("."))
            seconds = share if seconds is None else min(share, seconds)
        began = self._now()
        action = self._choose(seconds)
        if action is not None:
            self.game = self.game.play(action)
        if clock is not None:
            self._clocks[colour] = clock.spend(self._now() - began)
        return "resign" if action is None else action_text(action, self._rules.board)

    def _reg_genmove(self, arguments: list[str]) -> str:
        self._check_turn(_colour(arguments[0]))
        position = self.game.position
        action = choose_move(self.player, position, self._seed, self.game.history, self._seconds)
        return action_text(action, self._rules.board)

    def _choose(self, seconds: float | None) -> int | None:
        """The next ply; None where the player gives the game up."""
        position = self.game.position
        if not isinstance(self.player, NetworkPlayer):
            return choose_move(self.player, position, self._seed, self.game.history, seconds)
        choice = self.player.engine.choose(position, self._seed, seconds=seconds)
        return None if choice.resigns else choice.action

    def _check_turn(self, colour: str, words: str = "") -> None:
        position = self.game.position
        self._check_running(words)
        if colour != position.colour:
            raise Refusal(f"illegal move: {_NAMES[position.colour]} is to play")

    def _check_running(self, words: str = "") -> None:
        position = self.game.position
        if position.is_over:
            raise Refusal(f"{words}the game is over: {position.text()}")

    def _undo(self, arguments: list[str]) -> str:
        if not self.game.actions:
            raise Refusal("cannot undo")
        self.game = Game(self.game.positions[:-1], self.game.actions[:-1])
        return ""

    def _showboard(self, arguments: list[str]) -> str:
        last = self.game.actions[-1] if self.game.actions else None
        # On lines of its own: the first one would be pushed aside by the sign of success.
        return "\n" + board_text(self.game.position, ascii=True, last=last)

    def _final_score(self, arguments: list[str]) -> str:
        position = self.game.position
        if not position.is_over:
            raise Refusal("cannot score")
        return "W+" if position.colour == "b" else "B+"

    def _position(self, arguments: list[str]) -> str:
        if not arguments:
            return self.game.position.text()
        if len(arguments) != 6:
            raise Refusal(f"syntax error: a position has six fields, not {len(arguments)}")
        self._begin(Position.parse(" ".join(arguments), self._rules))
        return ""

    def _legal_moves(self, arguments: list[str]) -> str:
        env = BatchEnv(self._rules, 1)
        env.reset(positions=[self.game.position])
        return " ".join(action_text(int(a), self._rules.board) for a in np.flatnonzero(env.legal_action_mask[0]))

    def _to_play(self, arguments: list[str]) -> str:
        position = self.game.position
        return f"{_NAMES[position.colour]} {position.to_play}"

    def _analyze(self, arguments: list[str]) -> Telling:
        interval = _whole(arguments[0], "the interval in hundredths of a second") / 100 if arguments else 0.1
        engine = self._engine("analyzed with")
        self._check_running()
        return Telling(engine, self.game.position, self._seed, interval)

    def _name_komi(self, arguments: list[str]) -> str:
        return str(self._engine("asked for a komi").named_komi(seed=self._seed).komi)

    def _choose_side(self, arguments: list[str]) -> str:
        engine = self._engine("asked for a side")
        if self._rules.opening != "komi_pie" or self.game.actions:
            raise Refusal("sides are chosen at the start of komi_pie")
        return _NAMES[engine.better_side(seed=self._seed)[0]]

    def _engine(self, asked: str) -> Engine:
        if not isinstance(self.player, NetworkPlayer):
            raise Refusal(f"only models can be {asked}, not {self.player.name}")
        return self.player.engine

    # Time.

    def _time_settings(self, arguments: list[str]) -> str:
        settings = TimeSettings(_seconds(arguments[0]), _seconds(arguments[1]), _whole(arguments[2], "the stones"))
        if not settings.unlimited:
            self._prepare(self.player, self._rules)
        self._settings = settings
        self._start_clocks()
        return ""

    def _prepare(self, player: Player, rules: Rules) -> None:
        """Before a clock runs, load or compile what a player needs and let it learn how fast it is here."""
        if player is not self._prepared:
            for seconds in (0.0, 0.05):
                choose_move(player, Position.start(rules), 0, (), seconds)
            self._prepared = player

    def _time_left(self, arguments: list[str]) -> str:
        colour, left, stones = _colour(arguments[0]), _seconds(arguments[1]), _whole(arguments[2], "the stones")
        if colour in self._clocks:
            self._clocks[colour] = replace(self._clocks[colour], left=left, stones=stones)
        return ""


def _colour(text: str) -> str:
    colour = _COLOURS.get(text.lower()) if text.isascii() else None
    if colour is None:
        raise Refusal(f"syntax error: a colour is b, black, w or white, not {text[:20]!r}")
    return colour


def _whole(text: str, what: str) -> int:
    if not _WHOLE.fullmatch(text):
        raise Refusal(f"syntax error: {what} must be a whole number, not {text[:20]!r}")
    return int(text)


def _seconds(text: str) -> float:
    if not _DECIMAL.fullmatch(text):
        raise Refusal(f"syntax error: a time must be a number of seconds, not {text[:20]!r}")
    return float(text)


Method = Callable[[GtpSession, list[str]], "str | Telling"]

# By name: what carries a command out, and the least and the greatest number of its arguments.
COMMANDS: dict[str, tuple[Method, int, int]] = {
    "protocol_version": (GtpSession._protocol_version, 0, 0),
    "name": (GtpSession._name, 0, 0),
    "version": (GtpSession._version, 0, 0),
    "known_command": (GtpSession._known_command, 1, 1),
    "list_commands": (GtpSession._list_commands, 0, 0),
    "quit": (GtpSession._quit, 0, 0),
    "boardsize": (GtpSession._boardsize, 1, 1),
    "clear_board": (GtpSession._clear_board, 0, 0),
    "komi": (GtpSession._komi, 1, 1),
    "play": (GtpSession._play, 2, 2),
    "genmove": (GtpSession._genmove, 1, 1),
    "reg_genmove": (GtpSession._reg_genmove, 1, 1),
    "undo": (GtpSession._undo, 0, 0),
    "showboard": (GtpSession._showboard, 0, 0),
    "final_score": (GtpSession._final_score, 0, 0),
    "time_settings": (GtpSession._time_settings, 3, 3),
    "time_left": (GtpSession._time_left, 3, 3),
    "lifeline-position": (GtpSession._position, 0, 6),
    "lifeline-opening": (GtpSession._opening, 0, 1),
    "lifeline-adjacent_setup": (GtpSession._adjacent_setup, 0, 1),
    "lifeline-legal_moves": (GtpSession._legal_moves, 0, 0),
    "lifeline-to_play": (GtpSession._to_play, 0, 0),
    "lifeline-analyze": (GtpSession._analyze, 0, 1),
    "lifeline-name_komi": (GtpSession._name_komi, 0, 0),
    "lifeline-choose_side": (GtpSession._choose_side, 0, 0),
}
