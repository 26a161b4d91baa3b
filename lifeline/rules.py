"""The rules of Lifeline in plain Python: the specification that everything faster is held against.

Nothing here is clever. A legal placement is found by playing it and looking at the board; a dead group by searching
the empty cells around it. Decisions behind the rules are set out in docs/rules.md.

A *ply* is one action: a stone, a swap, or a point of komi. A player's first turn in strong pie is two plies.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from numbers import Integral

from lifeline.board import Board, board
from lifeline.errors import IllegalMoveError, NotationError, RulesError
from lifeline.notation import MAX_TEXT, action_text, parse_move, parse_rows, rows_text

OPENINGS = ("strong_pie", "weak_pie", "komi_pie")
ADJACENT_SETUPS = ("allowed", "forbidden")
MAX_KOMI = 99
# A turn number is kept in 16 bits by the kernels; no game comes near (each turn fills a cell or spends komi).
MAX_TURN = 9999

BLACK, WHITE = 0, 1
EMPTY = "."
STONES = "bw"


@dataclass(frozen=True)
class Rules:
    """What is played: board size and opening.

    Attributes:
        base: cells a side, 3..12.
        opening: "strong_pie", "weak_pie" or "komi_pie".
        komi: points White may spend instead of placing, 0..99; komi_pie only.
        adjacent_setup: whether a player's second stone may touch the first in weak_pie and komi_pie.

    Raises:
        RulesError: a value out of range, or an option the opening does not have.
    """

    base: int
    opening: str = "strong_pie"
    komi: int = 0
    adjacent_setup: str = "allowed"

    def __post_init__(self) -> None:
        board(self.base)
        if self.opening not in OPENINGS:
            raise RulesError(f"opening must be one of {', '.join(OPENINGS)}, not {self.opening!r}")
        if isinstance(self.komi, bool) or not isinstance(self.komi, int) or not 0 <= self.komi <= MAX_KOMI:
            raise RulesError(f"komi must be a whole number from 0 to {MAX_KOMI}, not {self.komi!r}")
        if self.komi and self.opening != "komi_pie":
            raise RulesError(f"komi is for komi_pie only, not for {self.opening}")
        if self.adjacent_setup not in ADJACENT_SETUPS:
            raise RulesError(f"adjacent_setup must be allowed or forbidden, not {self.adjacent_setup!r}")
        if self.adjacent_setup == "forbidden" and self.opening == "strong_pie":
            raise RulesError(
                "adjacent_setup is for weak_pie and komi_pie; strong_pie forbids adjacent stones by itself"
            )

    @property
    def board(self) -> Board:
        """The geometry of the board."""
        return board(self.base)

    @property
    def num_cells(self) -> int:
        """N, the number of cells."""
        return self.board.num_cells

    @property
    def swap_action(self) -> int:
        """The action that swaps sides: N."""
        return self.num_cells

    @property
    def komi_action(self) -> int:
        """The action that spends a point of komi: N + 1."""
        return self.num_cells + 1

    @property
    def num_actions(self) -> int:
        """A = N + 2."""
        return self.num_cells + 2

    @property
    def opening_turns(self) -> int:
        """How many turns the opening takes; the game can end only after them."""
        return 2 if self.opening == "strong_pie" else 4

    def stones_in_turn(self, turn: int) -> int:
        """How many stones the given turn (0-based) consists of."""
        return 2 if self.opening == "strong_pie" and turn < 2 else 1

    def removes_in_turn(self, turn: int) -> bool:
        """Whether dead groups are removed at the end of the given turn (0-based)."""
        return self.opening == "strong_pie" or turn >= 3


Stones = tuple[str, ...]


def groups(geometry: Board, stones: Stones, colour: str) -> list[frozenset[int]]:
    """The maximal connected sets of one symbol ('b', 'w', or '.' for empty regions), by lowest cell."""
    seen: set[int] = set()
    found = []
    for start in range(geometry.num_cells):
        if stones[start] != colour or start in seen:
            continue
        group, todo = {start}, [start]
        while todo:
            for cell in geometry.neighbors[todo.pop()]:
                if stones[cell] == colour and cell not in group:
                    group.add(cell)
                    todo.append(cell)
        seen |= group
        found.append(frozenset(group))
    return found


def is_dead(geometry: Board, stones: Stones, group: frozenset[int]) -> bool:
    """Whether no path of empty cells joins the group to another group of its colour."""
    colour = stones[next(iter(group))]
    seen: set[int] = set()
    todo = [c for s in group for c in geometry.neighbors[s] if stones[c] == EMPTY]
    while todo:
        cell = todo.pop()
        if cell in seen:
            continue
        seen.add(cell)
        for other in geometry.neighbors[cell]:
            if stones[other] == EMPTY:
                todo.append(other)
            elif stones[other] == colour and other not in group:
                return False
    return True


def remove_dead(geometry: Board, stones: Stones, colour: str) -> Stones:
    """Take all dead groups of one colour off the board, at once."""
    dead: set[int] = set()
    for group in groups(geometry, stones, colour):
        if is_dead(geometry, stones, group):
            dead |= group
    return tuple(EMPTY if i in dead else s for i, s in enumerate(stones))


def place(geometry: Board, stones: Stones, cell: int, colour: str) -> Stones:
    """Put one stone on a cell, removing nothing."""
    return stones[:cell] + (colour,) + stones[cell + 1 :]


@dataclass(frozen=True)
class Position:
    """A position of a game. Immutable; `play` returns the next one.

    Attributes:
        rules: what is played.
        stones: one of '.', 'b', 'w' for each cell, in cell order.
        turn: turns completed; a swap is no turn, a spent point of komi is one.
        placed: stones already placed in the current turn, 0 or 1.
        swapped: whether the players exchanged colours.
        komi: points White has left.
    """

    rules: Rules
    stones: Stones
    turn: int = 0
    placed: int = 0
    swapped: bool = False
    komi: int = 0

    @classmethod
    def start(cls, rules: Rules) -> Position:
        """The empty board with Black to place."""
        return cls(rules, (EMPTY,) * rules.num_cells, komi=rules.komi)

    @classmethod
    def parse(cls, text: str, rules: Rules) -> Position:
        """Read the position text of `text()`.

        Raises:
            NotationError: not such a text, or a position that cannot arise under these rules.
        """
        fields = text.strip().split(" ") if len(text) <= MAX_TEXT else []
        if len(fields) != 6:
            raise NotationError(
                "a position has six fields (rows colour turn placed swapped komi) with one space between, "
                f"not {text[:60]!r}"
            )
        stones = parse_rows(fields[0], rules.board)
        turn = _number("the turn", fields[2], MAX_TURN)
        placed = _number("the stones placed in the turn", fields[3], 1)
        if fields[4] not in ("s", "-"):
            raise NotationError(f"the swap field must be s or -, not {fields[4][:20]!r}")
        position = cls(rules, stones, turn, placed, fields[4] == "s", _number("the komi", fields[5], rules.komi))
        if fields[1] != position.colour:
            raise NotationError(f"the colour must be {position.colour} after {turn} turns, not {fields[1][:20]!r}")
        _check_reachable(position)
        return position

    def text(self) -> str:
        """Six fields: rows from the top, colour to place, turns completed, stones placed in this turn, swap, komi."""
        rows, swapped = rows_text(self.stones, self.rules.board), "s" if self.swapped else "-"
        return f"{rows} {self.colour} {self.turn} {self.placed} {swapped} {self.komi}"

    @property
    def colour(self) -> str:
        """The colour to place: 'b' or 'w'."""
        return STONES[self.turn % 2]

    @property
    def to_play(self) -> int:
        """The seat to move: 0 or 1. Seat 0 starts as Black."""
        return (self.turn % 2) ^ int(self.swapped)

    @property
    def is_over(self) -> bool:
        """The opening is complete and the colour to place has no stone: it cannot place and has lost."""
        return self.turn >= self.rules.opening_turns and self.placed == 0 and self.colour not in self.stones

    @property
    def winner(self) -> int | None:
        """The seat that has won, or None while the game runs."""
        return 1 - self.to_play if self.is_over else None

    def after_placement(self, cell: int) -> Stones:
        """The stones after the colour to place puts one on `cell`, dead groups removed where this ends a turn."""
        geometry, rules = self.rules.board, self.rules
        stones = place(geometry, self.stones, cell, self.colour)
        if self.placed + 1 < rules.stones_in_turn(self.turn) or not rules.removes_in_turn(self.turn):
            return stones
        stones = remove_dead(geometry, stones, STONES[1 - self.turn % 2])
        return remove_dead(geometry, stones, self.colour)

    def turn_start_stones(self) -> Stones:
        """The stones as they were at the start of the current turn."""
        if not self.placed:
            return self.stones
        # In a two-stone turn the mover had no stone before: the one on the board is this turn's first.
        return tuple(EMPTY if s == self.colour else s for s in self.stones)

    def _may_place(self, cell: int) -> bool:
        rules = self.rules
        if self.stones[cell] != EMPTY:
            return False
        if self.placed + 1 < rules.stones_in_turn(self.turn):
            first = replace(self, stones=self.after_placement(cell), placed=1)
            return any(first._may_place(second) for second in range(rules.num_cells))
        if self.turn < rules.opening_turns and rules.opening != "strong_pie":
            touches = any(self.stones[c] == self.colour for c in rules.board.neighbors[cell])
            return rules.adjacent_setup == "allowed" or not touches
        return self.after_placement(cell) != self.turn_start_stones()

    @cached_property
    def _legal_actions(self) -> tuple[int, ...]:
        if self.is_over:
            return ()
        actions = [c for c in range(self.rules.num_cells) if self._may_place(c)]
        if self.may_swap:
            actions.append(self.rules.swap_action)
        if self.may_spend_komi:
            actions.append(self.rules.komi_action)
        return tuple(actions)

    @property
    def may_swap(self) -> bool:
        """Whether the second player may exchange colours now: once, before White's first stone."""
        pie = self.rules.opening in ("strong_pie", "weak_pie")
        return pie and self.turn == 1 and self.placed == 0 and not self.swapped

    @property
    def may_spend_komi(self) -> bool:
        """Whether White may spend a point of komi instead of placing."""
        return self.colour == "w" and self.komi > 0 and self.turn >= self.rules.opening_turns and not self.is_over

    def legal_actions(self) -> list[int]:
        """All legal actions in ascending order; empty when the game is over."""
        return list(self._legal_actions)

    def legal_moves(self) -> list[str]:
        """All legal actions as move texts, in action order."""
        return [action_text(a, self.rules.board) for a in self._legal_actions]

    def is_legal(self, action: int) -> bool:
        """Whether one action, 0..A-1, is legal here; the others are not looked at."""
        if action == self.rules.swap_action:
            return self.may_swap
        if action == self.rules.komi_action:
            return self.may_spend_komi
        return not self.is_over and self._may_place(action)

    def play(self, move: str | int) -> Position:
        """Play an action, a move text, or a two-stone turn such as "c4,e2".

        Raises:
            IllegalMoveError: the rules forbid it here; the message names position and move.
            NotationError: no such move on this board.
        """
        position = self
        actions = parse_move(move, self.rules.board) if isinstance(move, str) else (move,)
        if len(actions) > 1 and (self.placed or self.rules.stones_in_turn(self.turn) == 1):
            texts = ",".join(action_text(a, self.rules.board) for a in actions)
            raise IllegalMoveError(f"illegal move: {texts} in {self.text()}, where one stone is due")
        for action in actions:
            known = isinstance(action, Integral) and not isinstance(action, bool)
            if not known or not 0 <= action < self.rules.num_actions:
                raise NotationError(f"no action {action!r} on a board of base {self.rules.base}")
            if not position.is_legal(int(action)):
                why = "the game is over" if position.is_over else "illegal move"
                raise IllegalMoveError(f"{why}: {action_text(action, self.rules.board)} in {position.text()}")
            position = position._apply(int(action))
        return position

    def _apply(self, action: int) -> Position:
        if action == self.rules.swap_action:
            return replace(self, swapped=True)
        if action == self.rules.komi_action:
            return replace(self, komi=self.komi - 1, turn=self.turn + 1)
        stones = self.after_placement(action)
        if self.placed + 1 < self.rules.stones_in_turn(self.turn):
            return replace(self, stones=stones, placed=1)
        return replace(self, stones=stones, turn=self.turn + 1, placed=0)


def count_turns(position: Position, turns: int) -> int:
    """Count the sequences of `turns` turns without swap or komi, a first turn's two stones as an unordered pair.

    Slow and literal; `lifeline perft` counts with the kernels.
    """
    if turns == 0:
        return 1
    return sum(count_turns(after, turns - 1) for after in _turns(position))


def _turns(position: Position) -> Iterator[Position]:
    cells = [a for a in position.legal_actions() if a < position.rules.num_cells]
    for first in cells:
        after = position._apply(first)
        if not after.placed:
            yield after
            continue
        for second in after.legal_actions():
            if first < second < position.rules.num_cells:
                yield after._apply(second)


def _number(name: str, text: str, most: int) -> int:
    if not re.fullmatch(r"0|[1-9][0-9]{0,4}", text, re.ASCII) or int(text) > most:
        raise NotationError(f"{name} must be a whole number from 0 to {most}, not {text[:20]!r}")
    return int(text)


def _check_reachable(position: Position) -> None:
    """Refuse what no game can lead to and the kernels' shortcuts would misjudge."""
    rules, turn = position.rules, position.turn
    if position.placed >= rules.stones_in_turn(turn):
        raise NotationError(f"turn {turn + 1} of {rules.opening} has one stone: none can be placed already")
    if position.swapped and (rules.opening == "komi_pie" or turn < 1):
        raise NotationError("sides can be swapped only at White's first turn of strong_pie and weak_pie")
    if turn < rules.opening_turns:
        _check_opening(position)
        return
    for colour in STONES:
        for group in groups(rules.board, position.stones, colour):
            if is_dead(rules.board, position.stones, group):
                name = rules.board.labels[min(group)]
                raise NotationError(f"the group at {name} is dead and would have been removed: {position.text()}")
    spent = rules.komi - position.komi
    if turn // 2 - rules.opening_turns // 2 < spent:
        raise NotationError(f"{spent} points of komi cannot have been spent in {turn} turns: {position.text()}")
    extra = 1 if rules.opening == "strong_pie" else 0  # a first turn has two stones
    for stone, most in (("b", (turn + 1) // 2 + extra), ("w", turn // 2 + extra - spent)):
        if position.stones.count(stone) > most:
            raise NotationError(f"{turn} turns cannot have left so many stones of {stone}: {position.text()}")


def _check_opening(position: Position) -> None:
    rules, turn = position.rules, position.turn
    expected = [sum(rules.stones_in_turn(t) for t in range(turn) if t % 2 == colour) for colour in (BLACK, WHITE)]
    expected[turn % 2] += position.placed
    if [position.stones.count(s) for s in STONES] != expected:
        raise NotationError(
            f"the opening has {expected[BLACK]} black and {expected[WHITE]} white stones here: {position.text()}"
        )
    if position.komi != rules.komi:
        raise NotationError(f"no komi can be spent in the opening: {position.komi} left of {rules.komi}")
    if rules.opening == "strong_pie" or rules.adjacent_setup == "forbidden":
        for group in groups(rules.board, position.stones, "b") + groups(rules.board, position.stones, "w"):
            if len(group) > 1:
                raise NotationError(
                    f"two adjacent stones of one colour cannot stand in this opening: {position.text()}"
                )
