"""A game against a player in the terminal."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TypeVar

from lifeline.errors import IllegalMoveError, NotationError
from lifeline.notation import action_text, parse_move
from lifeline.play.engine import Engine
from lifeline.play.players import Player, choose_move
from lifeline.render import board_text
from lifeline.rules import MAX_KOMI, Position, Rules

T = TypeVar("T")

HELP = "a cell such as c3, two cells such as c4,e2 for a first turn, swap, komi; legal, undo, text, quit"


def play_in_terminal(
    rules: Rules,
    player: Player,
    seat: int,
    seed: int,
    ask: Callable[[str], str],
    say: Callable[[str], None],
    ascii_signs: bool = False,
) -> Position:
    """Play one game; wrong input is explained and asked for again.

    Args:
        rules: what is played.
        player: the opponent.
        seat: the seat of the person, 0 or 1.
        seed: 0..2**64-1, of the game: what is random in the opponent.
        ask: shows a prompt and returns a line; may raise EOFError to end the game.
        say: shows lines.
        ascii_signs: draw with ASCII signs.
    Returns:
        The last position.
    """
    history: list[tuple[Position, int | None]] = [(Position.start(rules), None)]
    say(f"You play seat {seat}. Moves: {HELP}.")
    say(board_text(history[-1][0], ascii=ascii_signs))
    while not history[-1][0].is_over:
        position = history[-1][0]
        if position.to_play == seat:
            try:
                line = ask("your move: ").strip().lower()
            except EOFError:
                return position
            if line == "quit":
                return position
            if line == "undo":
                _undo(history, seat)
            elif line == "legal":
                say(" ".join(position.legal_moves()))
                continue
            elif line == "text":
                say(position.text())
                continue
            else:
                try:
                    for action in _checked(position, line):
                        history.append((history[-1][0].play(action), action))
                except (NotationError, IllegalMoveError) as error:
                    say(f"{error} ({HELP})")
                    continue
        else:
            action = choose_move(player, position, seed, [a for _, a in history if a is not None])
            history.append((position.play(action), action))
            say(f"{player.name}: {action_text(action, rules.board)}")
        say(board_text(history[-1][0], ascii=ascii_signs, last=history[-1][1]))
    say("You have won." if history[-1][0].winner == seat else "You have lost.")
    return history[-1][0]


def settle_komi(
    engine: Engine, seat: int, ask: Callable[[str], str], say: Callable[[str], None]
) -> tuple[Rules, int] | None:
    """Settle komi and sides of komi pie: seat 0 names the komi, the other takes a colour.

    Args:
        engine: of the opponent.
        seat: of the person, 0 or 1, as long as the komi is not named.
        ask, say: see `play_in_terminal`.
    Returns:
        The rules, and the person's seat in the game, 0 being Black's; None where the person does not want to play.
    """
    if seat == 1:
        komi = engine.named_komi().komi
        say(f"The komi is {komi}.")
        colour = _asked("your colour, b or w: ", ask, say, {c: c for c in ("b", "w")})
        return None if colour is None else (replace(engine.rules, komi=komi), 0 if colour == "b" else 1)
    named = _asked(f"the komi, 0 to {MAX_KOMI}: ", ask, say, {str(k): k for k in range(MAX_KOMI + 1)})
    if named is None:
        return None
    rules = replace(engine.rules, komi=named)
    colour, _ = Engine(rules, engine.evaluator, engine.settings).better_side()
    return rules, 1 if colour == "b" else 0


def _asked(prompt: str, ask: Callable[[str], str], say: Callable[[str], None], answers: Mapping[str, T]) -> T | None:
    """One of some answers; None where there is none, or it is quit."""
    while True:
        try:
            line = ask(prompt).strip().lower()
        except EOFError:
            return None
        if line == "quit" or line in answers:
            return answers.get(line)
        say(f"{prompt.removesuffix(': ')} is due, or quit, not {line[:20]!r}")


def _checked(position: Position, line: str) -> tuple[int, ...]:
    """The actions of a move text, all of them legal in turn."""
    position.play(line)
    return parse_move(line, position.rules.board)


def _undo(history: list[tuple[Position, int | None]], seat: int) -> None:
    """Take back to the last position before this one in which the person was to move."""
    while len(history) > 1:
        history.pop()
        if history[-1][0].to_play == seat:
            return
