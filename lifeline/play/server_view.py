"""What a page is told of a game: the board it draws, and everything about a position that takes knowledge of the rules.

Games are replayed by the kernels, as those of the largest board come back with each ply.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from lifeline.board import board
from lifeline.env import BatchEnv, IntArray, States
from lifeline.errors import NotationError, RecordError
from lifeline.notation import action_text, parse_move
from lifeline.rules import STONES, Position, Rules
from lifeline.show import COLOUR_NAMES, rules_data, shape_data
from lifeline.svg import layout_of


@dataclass(frozen=True)
class Replay:
    """A game that has been played through.

    Attributes:
        rules: what is played.
        start: the position text the moves start from; None for the start of the game.
        actions: T plies.
        states: as `BatchEnv.gather` gives them, first axis the T + 1 positions from the start of the moves to the end.
    """

    rules: Rules
    start: str | None
    actions: tuple[int, ...]
    states: States

    @property
    def moves(self) -> tuple[str, ...]:
        """The plies as move texts."""
        return tuple(action_text(action, self.rules.board) for action in self.actions)

    def position(self, ply: int) -> Position:
        """The position after so many plies, 0 to T."""
        return self.env(np.array([ply])).position(0)

    def steps(self) -> list[tuple[int, int]]:
        """See `steps`."""
        return steps(self.position(0), self.actions)

    def env(self, plies: IntArray) -> BatchEnv:
        """Some of its positions as a batch."""
        env = BatchEnv(self.rules, len(plies))
        env.scatter(None, self.states[plies])
        return env


def replay(rules: Rules, start: str | None, moves: Sequence[str]) -> Replay:
    """Play a game.

    Args:
        rules: what is played.
        start: a position text, or None.
        moves: plies, or two-stone turns such as "c4,e2".

    Raises:
        NotationError: no such start or move.
        RecordError: an illegal move; the message names the ply.
    """
    env, actions = BatchEnv(rules, 1), list[int]()
    if start is not None:
        env.reset(positions=[Position.parse(start, rules)])
    states = [env.gather()]
    for move in moves:
        try:
            parsed = parse_move(move, rules.board)
        except NotationError as error:
            raise RecordError(f"ply {len(actions) + 1}: {error}") from None
        for action in parsed:
            if not env.legal_action_mask[0, action]:
                why, text = (
                    "the game is over" if env.terminated[0] else "illegal move",
                    action_text(action, rules.board),
                )
                raise RecordError(f"ply {len(actions) + 1}: {why}: {text} in {env.position(0).text()}")
            env.step(np.array([action]))
            actions.append(action)
            states.append(env.gather())
    return Replay(rules, start, tuple(actions), np.concatenate(states))


@cache
def board_data(base: int) -> dict[str, Any]:
    """The board as a page draws it.

    Returns:
        base, width and height of the picture, hexagon (path of a cell at the origin), cells (label, x, y, row from the
        top, in cell order) and texts around the board (text, x, y).

    Raises:
        RulesError: no such base.
    """
    geometry = board(base)
    layout = layout_of(geometry)
    rows = [number for number, row in enumerate(geometry.rows) for _ in row]
    return {
        "base": base,
        "width": round(layout.width, 2),
        "height": round(layout.height, 2),
        "hexagon": layout.hexagon,
        "cells": [
            {"label": label, "x": round(x, 2), "y": round(y, 2), "row": row}
            for label, (x, y), row in zip(geometry.labels, layout.centres, rows, strict=True)
        ],
        "texts": [{"text": text, "x": round(x, 2), "y": round(y, 2)} for text, x, y in layout.texts],
    }


def game_data(game: Replay, at: int) -> dict[str, Any]:
    """A game and one of its positions as data for JSON.

    Args:
        game: the game.
        at: which position, 0 to T.

    Returns:
        rules, start, at, moves (move, colour, seat, turn, stone: its number in the turn, removed: how many stones went
        with it), and of the position: position (its text), stones (a character a cell, in cell order), turn, to_play
        (seat, colour), black (the seat that plays Black), placed, stones_in_turn, komi, legal (cells), may_swap,
        may_spend, effects (of the legal cells that remove stones: captured, lost), last (the cells placed on in the
        turn played last), groups, regions, and result (winner: seat, colour), null while the game goes on.
    """
    position, rules = game.position(at), game.rules
    labels, result = rules.board.labels, None
    if position.winner is not None:
        winner = position.winner
        result = {"winner": winner, "colour": COLOUR_NAMES["b" if _black(position) == winner else "w"]}
    env = game.env(np.array([at]))
    legal = np.flatnonzero(env.legal_action_mask[0, : rules.num_cells])
    return {
        "rules": rules_data(rules),
        "start": game.start,
        "at": at,
        "moves": _moves_data(game),
        "position": position.text(),
        "stones": "".join(position.stones),
        "turn": position.turn,
        "to_play": {"seat": position.to_play, "colour": COLOUR_NAMES[position.colour]},
        "black": _black(position),
        "placed": position.placed,
        "stones_in_turn": rules.stones_in_turn(position.turn),
        "komi": position.komi,
        "legal": [labels[cell] for cell in legal],
        "may_swap": position.may_swap,
        "may_spend": position.may_spend_komi,
        "effects": _effects(env, position, [int(cell) for cell in legal]),
        "last": [labels[cell] for cell in _last_cells(game, at)],
        **shape_data(position),
        "result": result,
    }


def move_list(game: Replay) -> str:
    """The moves as one line of text, numbered by turn, as `import_moves` reads it: "1. c4,e2 2. swap d4,b3"."""
    words: list[str] = []
    numbered = 0
    for move, (turn, stone) in zip(game.moves, game.steps(), strict=True):
        if stone == 2 and words:
            words[-1] += f",{move}"
            continue
        if turn != numbered:
            numbered = turn
            words.append(f"{turn}.")
        words.append(move)
    return " ".join(words)


def _black(position: Position) -> int:
    """The seat that plays Black."""
    return int(position.swapped)


def steps(position: Position, actions: Sequence[int]) -> list[tuple[int, int]]:
    """Of plies from a position on the turn and the number of the stone in it, both from 1.

    A swap stands before the turn's stones. Counted by turns alone: the actions are not looked at.
    """
    rules = position.rules
    turn, placed, found = position.turn, position.placed, []
    for action in actions:
        found.append((turn + 1, placed + 1))
        placed += action < rules.num_cells
        if action == rules.komi_action or placed == rules.stones_in_turn(turn):
            turn, placed = turn + 1, 0
    return found


def turn_colour(turn: int) -> str:
    """Whose turn it is, "black" or "white", of turns counted from 1."""
    return COLOUR_NAMES[STONES[(turn - 1) % 2]]


def _moves_data(game: Replay) -> list[dict[str, Any]]:
    env = game.env(np.arange(len(game.states)))
    seats, stones = env.to_play, _counts(env)
    return [
        {
            "move": move,
            "colour": turn_colour(turn),
            "seat": int(seats[ply]),
            "turn": turn,
            "stone": stone,
            "removed": int(stones[ply] - stones[ply + 1]) + (game.actions[ply] < game.rules.num_cells),
        }
        for ply, (move, (turn, stone)) in enumerate(zip(game.moves, game.steps(), strict=True))
    ]


def _counts(env: BatchEnv) -> IntArray:
    """int64 [B], the stones on each board: those of planes 1 and 2 of an observation."""
    counts: IntArray = env.observation[:, 1:3].sum(axis=(1, 2, 3)).astype(np.int64)
    return counts


def _last_cells(game: Replay, at: int) -> list[int]:
    """The cells of the turn played last before a position; of a turn under way, its first stone."""
    if at == 0 or game.actions[at - 1] >= game.rules.num_cells:
        return []
    second = at > 1 and game.steps()[at - 1][1] == 2
    return list(game.actions[at - 1 - second : at])


def _effects(env: BatchEnv, position: Position, legal: list[int]) -> dict[str, dict[str, list[str]]]:
    """What a stone on each of the legal cells takes off the board, of those that do."""
    rules = position.rules
    if not legal or not rules.removes_in_turn(position.turn):
        return {}
    tried = BatchEnv(rules, len(legal))
    tried.scatter(None, env.gather(np.zeros(len(legal), np.int64)))
    tried.step(np.array(legal))
    # Only boards that lost some are looked at one by one.
    left = _counts(tried)
    labels, effects = rules.board.labels, {}
    for row in np.flatnonzero(left <= _counts(env)[0]):
        before = position.stones[: legal[row]] + (position.colour,) + position.stones[legal[row] + 1 :]
        gone = [
            (cell, stone)
            for cell, (stone, after) in enumerate(zip(before, tried.position(int(row)).stones, strict=True))
            if stone != after
        ]
        effects[labels[legal[row]]] = {
            "captured": [labels[cell] for cell, stone in gone if stone != position.colour],
            "lost": [labels[cell] for cell, stone in gone if stone == position.colour],
        }
    return effects
