"""Openings: the first moves of games that are to be varied and fair, drawn at random."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from lifeline.env import BatchEnv
from lifeline.errors import ConfigError
from lifeline.notation import action_text, parse_move
from lifeline.rules import Position, Rules
from lifeline.search.evaluator import Evaluator


@dataclass(frozen=True)
class Opening:
    """The first moves of a game.

    Attributes:
        actions: the plies, from the start of the rules.
        position: where they lead.
    """

    actions: tuple[int, ...]
    position: Position

    @classmethod
    def of(cls, rules: Rules, actions: Sequence[int]) -> Opening:
        """The opening of these plies.

        Raises:
            IllegalMoveError: one of them is illegal.
        """
        position = Position.start(rules)
        for action in actions:
            position = position.play(int(action))
        return cls(tuple(map(int, actions)), position)

    @classmethod
    def parse(cls, rules: Rules, text: str) -> Opening:
        """The opening of move texts, spaces between them.

        Raises:
            NotationError: one of them is none.
            IllegalMoveError: one of them is illegal.
        """
        return cls.of(rules, [a for move in text.split() for a in parse_move(move, rules.board)])

    def text(self) -> str:
        """Its plies as move texts, spaces between them."""
        return " ".join(action_text(a, self.position.rules.board) for a in self.actions)


def random_openings(rules: Rules, count: int, rng: np.random.Generator, turns: int = 1) -> list[Opening]:
    """Random first turns, no swap; distinct as far as there are enough.

    Args:
        turns: 1, Black's only, with the swap still to be decided: the game's own way of being fair; or 2, both
            players' with the swap behind them: more varied, but many such positions are lost from the start.

    Raises:
        ConfigError: no game was found that lasts so long.
    """
    found: dict[str, Opening] = {}
    tries = fruitless = 0
    # So many tries without a new one: there are hardly any left.
    while len(found) < count and tries < 50 * count and fruitless < 1000 + 10 * len(found):
        tries, fruitless = tries + 1, fruitless + 1
        env, actions = BatchEnv(rules, 1), list[int]()
        while not env.terminated[0] and (position := env.position(0)).turn < turns:
            actions.append(int(rng.choice(np.flatnonzero(env.legal_action_mask[0, : rules.num_cells]))))
            env.step(np.array(actions[-1:]))
        position = env.position(0)
        if not position.is_over and position.text() not in found:
            found[position.text()] = Opening(tuple(actions), position)
            fruitless = 0
    if not found:
        raise ConfigError(f"of {tries} random games on base {rules.base} none has lasted for {turns} turns")
    openings = list(found.values())
    return [openings[i % len(openings)] for i in range(count)]


def most_even(openings: Sequence[Opening], evaluator: Evaluator, count: int) -> list[Opening]:
    """The openings whose values are nearest to 0 by an evaluator.

    Args:
        openings: at least `count`, running, of the same rules.
    """
    env = BatchEnv(openings[0].position.rules, len(openings))
    env.reset(positions=[o.position for o in openings])
    _, values = evaluator.evaluate(env)
    return [openings[i] for i in np.argsort(np.abs(values), kind="stable")[:count]]
