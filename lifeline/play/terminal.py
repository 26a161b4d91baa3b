"""A game against a player in the terminal."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from typing import TypeVar

from lifeline.errors import IllegalMoveError, NotationError
from lifeline.notation import action_text, parse_move
from lifeline.play.console import Screen
from lifeline.play.engine import Engine
from lifeline.play.players import Player, choose_move
from lifeline.rules import MAX_KOMI, STONES, Position, Rules, place
from lifeline.show import COLOUR_NAMES

T = TypeVar("T")

HELP = "a cell such as c3, two cells such as c4,e2 for a first turn, swap, komi; legal, undo, text, quit"


def play_in_terminal(rules: Rules, player: Player, seat: int, seed: int, screen: Screen) -> Position:
    """Play one game; wrong input is explained and asked for again.

    Args:
        rules: what is played.
        player: the opponent.
        seat: the seat of the person, 0 or 1.
        seed: 0..2**64-1, of the game: what is random in the opponent.
        screen: what the person sees, and is asked through.
    Returns:
        The last position.
    """
    history: list[tuple[Position, int | None]] = [(Position.start(rules), None)]
    screen.say(f"You play seat {seat}. Moves: {HELP}.")
    screen.board(history[-1][0])
    while not history[-1][0].is_over:
        position = history[-1][0]
        if position.to_play == seat:
            try:
                line = screen.ask("your move: ").strip().lower()
            except EOFError:
                return position
            if line == "quit":
                return position
            if line == "undo":
                _undo(history, seat)
            elif line == "legal":
                screen.say(" ".join(position.legal_moves()))
                continue
            elif line == "text":
                screen.say(position.text())
                continue
            else:
                try:
                    actions = _checked(position, line)
                except (NotationError, IllegalMoveError) as error:
                    screen.say(f"{error} ({HELP})")
                    continue
                for action in actions:
                    history.append((history[-1][0].play(action), action))
                if removed := _removed(history):
                    screen.say(f"you: {removed}")
        else:
            with screen.waiting(player.name):
                action = choose_move(player, position, seed, [a for _, a in history if a is not None])
            history.append((position.play(action), action))
            removed = _removed(history)
            screen.say(f"{player.name}: {action_text(action, rules.board)}{', ' if removed else ''}{removed}")
        screen.board(history[-1][0], _last_turn(history))
    screen.say("You have won." if history[-1][0].winner == seat else "You have lost.")
    return history[-1][0]


def settle_komi(engine: Engine, seat: int, screen: Screen) -> tuple[Rules, int] | None:
    """Settle komi and sides of komi pie: seat 0 names the komi, the other takes a colour.

    Args:
        engine: of the opponent.
        seat: of the person, 0 or 1, as long as the komi is not named.
        screen: see `play_in_terminal`.
    Returns:
        The rules, and the person's seat in the game, 0 being Black's; None where the person does not want to play.
    """
    if seat == 1:
        komi = engine.named_komi().komi
        screen.say(f"The komi is {komi}.")
        colour = _asked("your colour, b or w: ", screen, {c: c for c in ("b", "w")})
        return None if colour is None else (replace(engine.rules, komi=komi), 0 if colour == "b" else 1)
    named = _asked(f"the komi, 0 to {MAX_KOMI}: ", screen, {str(k): k for k in range(MAX_KOMI + 1)})
    if named is None:
        return None
    rules = replace(engine.rules, komi=named)
    colour, _ = Engine(rules, engine.evaluator, engine.settings).better_side()
    return rules, 1 if colour == "b" else 0


def _asked(prompt: str, screen: Screen, answers: Mapping[str, T]) -> T | None:
    """One of some answers; None where there is none, or it is quit."""
    while True:
        try:
            line = screen.ask(prompt).strip().lower()
        except EOFError:
            return None
        if line == "quit" or line in answers:
            return answers.get(line)
        screen.say(f"{prompt.removesuffix(': ')} is due, or quit, not {line[:20]!r}")


def _checked(position: Position, line: str) -> tuple[int, ...]:
    """The actions of a move text, all of them legal in turn."""
    position.play(line)
    return parse_move(line, position.rules.board)


def _removed(history: list[tuple[Position, int | None]]) -> str:
    """What the last ply took off the board, its own stone included: "removes 2 black stones"; empty where nothing."""
    (before, _), (after, action) = history[-2:]
    stood = before.stones
    if action is not None and action < before.rules.num_cells:
        stood = place(before.rules.board, stood, action, before.colour)
    gone = Counter(stone for stone, left in zip(stood, after.stones, strict=True) if stone != left)
    parts = [f"{gone[c]} {COLOUR_NAMES[c]} stone{'s' if gone[c] > 1 else ''}" for c in STONES if gone[c]]
    return f"removes {' and '.join(parts)}" if parts else ""


def _last_turn(history: list[tuple[Position, int | None]]) -> list[int]:
    """The actions of the turn played last: both stones of a first turn."""
    stones = history[-2:] if len(history) > 1 and history[-2][0].placed else history[-1:]
    return [action for _, action in stones if action is not None]


def _undo(history: list[tuple[Position, int | None]], seat: int) -> None:
    """Take back to the last position before this one in which the person was to move."""
    while len(history) > 1:
        history.pop()
        if history[-1][0].to_play == seat:
            return
