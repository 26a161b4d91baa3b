"""Hypothesis strategies for rules and for positions reached by random play, and a plain reading of a kernel state."""

import dataclasses

import numpy as np
from hypothesis import strategies as st

from lifeline import kernels
from lifeline.board import MAX_BASE, MIN_BASE
from lifeline.env import BatchEnv
from lifeline.rules import OPENINGS, Position, Rules

ALL_BASES = range(MIN_BASE, MAX_BASE + 1)


@st.composite
def rules(draw, bases=ALL_BASES, openings=OPENINGS):
    """Any rules of these bases and openings."""
    base, opening = draw(st.sampled_from(list(bases))), draw(st.sampled_from(list(openings)))
    komi = draw(st.integers(0, 12)) if opening == "komi_pie" else 0
    adjacent = "allowed" if opening == "strong_pie" else draw(st.sampled_from(["allowed", "forbidden"]))
    return Rules(base, opening, komi, adjacent)


@st.composite
def positions(draw, of=None, *, running=False):
    """A position after some random plies; `running` leaves out those of finished games."""
    game = draw(rules() if of is None else of)
    # Every stage alike, from the empty board to long games with groups about to die; random games end near N plies.
    plies = draw(st.sampled_from(range(16))) * game.num_cells // 14 + draw(st.integers(0, 5))
    seed = draw(st.integers(0, 2**32 - 1))
    position = play_randomly(Position.start(game), plies, seed)
    while running and position.is_over:
        plies //= 2
        position = play_randomly(Position.start(game), plies, seed)
    return position


def play_randomly(position, plies, seed):
    """The position after up to `plies` random actions, fewer where the game ends before."""
    env = BatchEnv(position.rules, 1)
    env.reset(positions=[position])
    env.step_random(np.array([plies]), np.array([seed], np.uint64))
    return env.position(0)


@st.composite
def removing_moves(draw, of=None):
    """A position and an action that takes stones off the board, the first such in a random game from some ply on."""
    position = draw(positions(of, running=True))
    env = BatchEnv(position.rules, 1)
    env.reset(positions=[position])
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    while True:
        before, action = env.position(0), int(rng.choice(legal_actions(env)))
        env.step(np.array([action]))
        after = env.position(0)
        if action < env.rules.num_cells and after.stones.count(".") >= before.stones.count("."):
            return before, action
        if after.is_over:  # White's komi can end a game without a stone being removed
            env.reset()


def legal_actions(env, row=0):
    """The legal actions of one game of an environment, as a list."""
    return np.flatnonzero(env.legal_action_mask[row]).tolist()


def mapped(position, symmetry):
    """The position under one of the twelve symmetries of the board."""
    to = position.rules.board.symmetries[symmetry]
    stones = [""] * len(to)
    for cell, stone in enumerate(position.stones):
        stones[to[cell]] = stone
    return dataclasses.replace(position, stones=tuple(stones))


def reach_cells(state, position):
    """The cells of a state's `reach` words, a set for black and one for white."""
    spec = kernels.spec_of(position.rules)
    words = len(spec.words)
    found = []
    for slot in (2, 3):
        bits = sum(int(w) << 64 * i for i, w in enumerate(state[slot * words : (slot + 1) * words]))
        found.append({cell for cell, bit in enumerate(spec.cell_bit) if bits >> int(bit) & 1})
    return found
