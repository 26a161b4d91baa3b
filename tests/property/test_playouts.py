"""Long playouts: the layout of playouts.py against kernels.py, placement by placement, and the same random games."""

import numpy as np
import pytest

from lifeline import Position, Rules
from lifeline.compiled import kernel
from lifeline.kernels import (
    ONE,
    OVER_BIT,
    TURN_MASK,
    ZERO,
    encode_position,
    load,
    outcome_of,
    playout,
    random_action,
    spec_of,
    step_state,
    work_size,
)
from lifeline.playouts import (
    CHOICES,
    GROUP,
    INDEX,
    MARK,
    NEIGHBOUR,
    NOWHERE,
    RING,
    STONES,
    load_field,
    new_field,
    place_on_field,
    play_out,
)


@kernel
def first_difference(t, field, spec):
    """What the two layouts disagree about: 0 nothing, else a number for the kind."""
    num_words = len(spec.words)
    f = field.memory
    for colour in range(2):
        stones = 0
        choices = 0
        for cell in range(spec.num_cells):
            at = field.place[cell]
            word, bit = spec.cell_bit[cell] >> 6, ONE << np.uint64(spec.cell_bit[cell] & 63)
            here = t[colour * num_words + word] & bit != ZERO
            stones += here
            for k in range(6):
                beside = np.int64(f[at + NEIGHBOUR + k])
                other = spec.bit_cell[spec.ring_bit[cell, k]]
                on_board = other >= 0
                seen = f[beside + RING] >> 6 * colour + (k + 3) % 6 & 1 != 0
                if on_board and seen != here:
                    return 1
                if here and on_board:
                    o_word, o_bit = spec.cell_bit[other] >> 6, ONE << np.uint64(spec.cell_bit[other] & 63)
                    together = t[colour * num_words + o_word] & o_bit != ZERO
                    if together and f[at + GROUP] != f[beside + GROUP]:
                        return 2
            legal = t[(2 + colour) * num_words + word] & bit != ZERO
            choices += legal
            if legal != (f[at + INDEX + colour] != NOWHERE):
                return 3
        if stones != f[STONES + colour] or choices != f[CHOICES + colour]:
            return 4
    return 0


@kernel
def play_both(t, stream, field, spec):
    """Play a random game in both layouts; returns its plies, or minus the ply and kind of a difference."""
    over = 4 * len(spec.words)
    while np.int64(t[over] & TURN_MASK) < spec.opening_turns:
        step_state(t, random_action(t, stream, spec), spec)
    load_field(field, t, spec)
    plies = 0
    if t[over] & OVER_BIT != ZERO:  # the opening itself has wiped a colour out
        return 1
    while True:
        kind = first_difference(t, field, spec)
        if kind != 0:
            return -10 * plies - kind
        action = random_action(t, stream, spec)
        colour = np.int64(t[over] & ONE)
        step_state(t, action, spec)
        plies += 1
        if action < spec.num_cells:
            place_on_field(field.memory, field.place[action], colour, spec.verdict)
        if t[over] & OVER_BIT != ZERO:
            return plies if field.memory[STONES + 1 - colour] == 0 else -10 * plies - 5


@kernel
def results(start, fast, games, stream, work, field, spec, plies, won):
    """Plies and winner of so many random games in one layout or the other."""
    for game in range(games):
        load(work, start)
        plies[game] = play_out(work, stream, field, spec) if fast else playout(work, stream, spec)
        won[game] = outcome_of(work[4 * len(spec.words)]) > 0


def prepared(base, opening):
    rules = Rules(base, opening, komi=5 if opening == "komi_pie" else 0)
    spec = spec_of(rules)
    work = np.zeros(work_size(len(spec.words)), np.uint64)
    return encode_position(Position.start(rules)), work, new_field(rules), spec


@pytest.mark.parametrize("opening", ["strong_pie", "weak_pie", "komi_pie"])
@pytest.mark.parametrize("base", range(3, 13))
def test_both_layouts_agree_after_every_placement(base, opening):
    start, work, field, spec = prepared(base, opening)
    stream = np.array([base], np.uint64)
    for _ in range(40_000 // base**4 + 2):
        load(work, start)
        assert play_both(work, stream, field, spec) > 0


@pytest.mark.slow
@pytest.mark.parametrize("base", [3, 4, 5, 7, 9, 12])
def test_both_layouts_agree_in_many_games(base):
    for opening in ("strong_pie", "weak_pie", "komi_pie"):
        start, work, field, spec = prepared(base, opening)
        stream = np.array([100 + base], np.uint64)
        for _ in range(10_000_000 // base**4):
            load(work, start)
            assert play_both(work, stream, field, spec) > 0


def test_marks_that_begin_anew_change_nothing():
    start, work, field, spec = prepared(5, "strong_pie")
    stream = np.array([7], np.uint64)
    for game in range(60):
        load(work, start)
        field.blank[MARK] = 0xFFF0 - game  # `load_field` takes it over: they run out in the middle of the game
        assert play_both(work, stream, field, spec) > 0


@pytest.mark.parametrize(("base", "opening"), [(3, "komi_pie"), (5, "strong_pie"), (5, "komi_pie"), (7, "weak_pie")])
def test_random_games_are_of_the_same_kind(base, opening):
    """Mean length and share of wins differ by no more than chance: five standard errors."""
    start, work, field, spec = prepared(base, opening)
    games = 20_000 if base < 7 else 5_000
    figures = []
    for fast in (True, False):
        plies, won = np.zeros(games), np.zeros(games)
        results(start, fast, games, np.array([base], np.uint64), work, field, spec, plies, won)
        figures.append((plies, won))
    for first, second in zip(*figures, strict=True):
        error = np.sqrt((first.var() + second.var()) / games)
        assert abs(first.mean() - second.mean()) < 5 * error
