"""The numbers of turns from the start of each opening (perft), in the kernels and in the reference."""

import numpy as np
import pytest

from game_positions import play_randomly
from lifeline import kernels
from lifeline.env import BatchEnv
from lifeline.rules import Position, Rules, count_turns

STRONG = {3: (129, 13_236, 198_540, 2_801_736), 4: (576, 296_430, 9_782_190), 5: (1_674, 2_620_116)}
WEAK = {3: (19, 342, 5_814, 93_024), 4: (37, 1_332, 46_620)}
WEAK_APART = {3: (19, 342, 4_386, 52_944), 4: (37, 1_332, 40_320)}

COUNTS = [
    pytest.param(Rules(base, opening, 0, adjacent), turns, count, id=f"{opening}-{adjacent}-base{base}-{turns}")
    for opening, adjacent, table in [
        ("strong_pie", "allowed", STRONG),
        ("weak_pie", "allowed", WEAK),
        ("weak_pie", "forbidden", WEAK_APART),
        ("komi_pie", "allowed", WEAK),  # the same first four stones
        ("komi_pie", "forbidden", WEAK_APART),
    ]
    for base, counts in table.items()
    for turns, count in enumerate(counts, start=1)
]
# Bigger counts take the literal rules more than some seconds, and the biggest more than an hour.
SMALL = [c for c in COUNTS if c.values[2] <= 13_236]
MEDIUM = [c for c in COUNTS if 13_236 < c.values[2] <= 296_430]


@pytest.mark.parametrize(("rules", "turns", "count"), COUNTS)
def test_kernels_count_the_turns_of_the_tables(rules, turns, count):
    assert kernels.perft(Position.start(rules), turns) == count


@pytest.mark.parametrize(("rules", "turns", "count"), SMALL)
def test_reference_counts_the_turns_of_the_tables(rules, turns, count):
    assert count_turns(Position.start(rules), turns) == count


@pytest.mark.slow
@pytest.mark.parametrize(("rules", "turns", "count"), MEDIUM)
def test_reference_counts_more_turns_of_the_tables(rules, turns, count):
    assert count_turns(Position.start(rules), turns) == count


def test_no_turns_count_once():
    start = Position.start(Rules(3))
    assert kernels.perft(start, 0) == count_turns(start, 0) == 1


@pytest.mark.parametrize("moves", ["c3", "c3,a1", "c3,a1 b3,d2", "c3,a1 b3,d2 e1"])
def test_both_count_alike_from_the_middle_of_an_opening(moves):
    position = Position.start(Rules(3))
    for move in moves.split():
        position = position.play(move)
    assert kernels.perft(position, 1) == count_turns(position, 1)


@pytest.mark.parametrize("seed", range(6))
def test_both_count_alike_where_groups_die_and_games_end(seed):
    rules = Rules(3, ("strong_pie", "weak_pie", "komi_pie")[seed % 3])
    position = play_randomly(Position.start(rules), 13, seed)
    for turns in (1, 2, 3):
        assert kernels.perft(position, turns) == count_turns(position, turns)


def expand(rules, states):
    """All states one action further on, and the actions that led there."""
    env = BatchEnv(rules, len(states))
    env.scatter(None, states)
    rows, actions = np.nonzero(env.legal_action_mask)
    after = BatchEnv(rules, len(rows))
    after.scatter(None, states[rows])
    after.step(actions)
    return after.gather(), actions


def test_plies_with_swap_count_as_the_turns_say():
    """Stones in order: twice the turns at turn 1, four times at turn 2; a swap takes a level of its own."""
    rules = Rules(3)
    after_first, _ = expand(rules, BatchEnv(rules, 1).gather())
    after_turn, _ = expand(rules, after_first)
    assert len(after_turn) == 2 * 129
    states, actions = expand(rules, after_turn)
    swapped = actions == rules.swap_action
    assert np.count_nonzero(swapped) == len(after_turn)
    after_two, _ = expand(rules, states[~swapped])
    assert len(after_two) == 4 * 13_236
    half_turn, swaps_again = expand(rules, states[swapped])
    assert rules.swap_action not in swaps_again
    assert len(expand(rules, half_turn)[0]) == 4 * 13_236
    assert len(expand(rules, after_two)[0]) == 4 * 198_540
