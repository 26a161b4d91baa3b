"""Games recorded from two other programs replay here, ply by ply, in the kernels and in the reference.

Where those programs are known to depart from the designers' text, the departure itself is checked:
  - AbstractPlay ends a game at a self-wipe, one turn early;
  - Ludii removes the mover's own groups too early when a capture saves them (`ludii_wrong`, `designers_pos`);
  - Ludii leaves the mover's dead groups on the board at a last turn that wipes out the opponent.
"""

import dataclasses
import gzip
import hashlib
import json
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from game_positions import legal_actions
from lifeline.env import BatchEnv
from lifeline.rules import STONES, Position, Rules, place, remove_dead

HERE = Path(__file__).parent
LUDII_VARIANTS = {"Strong pie (standard)": "strong_pie", "Weak pie": "weak_pie", "Komi pie": "komi_pie"}

# The literal search for legal placements is slow: of larger boards every so-manieth ply is enough for most runs.
FULL_CHECK_BASES = (3, 4)
SAMPLE = 25


@cache
def recorded(name):
    with gzip.open(HERE / f"{name}.jsonl.gz", "rt") as lines:
        return tuple(json.loads(line) for line in lines)


def pairs_sha1(pairs):
    return hashlib.sha1(" ".join(f"{i}-{j}" for i, j in sorted(pairs)).encode()).hexdigest()


class KernelReplay:
    """A game replayed in a BatchEnv of one."""

    def __init__(self, rules):
        self.env = BatchEnv(rules, 1)
        self.pairs_env = BatchEnv(rules, rules.num_cells)

    def play(self, action):
        self.env.step(np.array([action]))

    def set_stones(self, stones):
        self.env.reset(positions=[dataclasses.replace(self.position, stones=stones)])

    @property
    def position(self):
        return self.env.position(0)

    @property
    def to_play(self):
        return int(self.env.to_play[0])

    @property
    def winner(self):
        return {0: None, 1: 0, -1: 1}[int(self.env.outcome[0])]

    @property
    def is_over(self):
        return bool(self.env.terminated[0])

    def checks_legality(self, ply):
        return True

    def legal_actions(self):
        return legal_actions(self.env)

    def legal_pairs(self):
        """All ordered pairs of stones of a first turn."""
        firsts = [a for a in legal_actions(self.env) if a < self.env.rules.num_cells]
        actions = np.resize(firsts, self.pairs_env.batch_size)
        self.pairs_env.scatter(None, np.repeat(self.env.gather(), self.pairs_env.batch_size, axis=0))
        self.pairs_env.step(actions)
        return [(i, j) for row, i in enumerate(firsts) for j in legal_actions(self.pairs_env, row)]


class ReferenceReplay:
    """A game replayed by the plain-Python rules; legal sets are looked at every so many plies."""

    def __init__(self, rules, every, offset):
        self.position = Position.start(rules)
        self.every, self.offset = every, offset

    def play(self, action):
        # Not `play`, which would search for all legal placements at every ply.
        self.position = self.position._apply(action)

    def set_stones(self, stones):
        self.position = dataclasses.replace(self.position, stones=stones)

    @property
    def to_play(self):
        return self.position.to_play

    @property
    def winner(self):
        return self.position.winner

    @property
    def is_over(self):
        return self.position.is_over

    def checks_legality(self, ply):
        return (ply + self.offset) % self.every == 0

    def legal_actions(self):
        return self.position.legal_actions()

    def legal_pairs(self):
        return reference_pairs(self.position)


@cache
def reference_pairs(position):
    """All ordered pairs of stones of a first turn; kept, since every game starts from the same board."""
    firsts = [a for a in position.legal_actions() if a < position.rules.num_cells]
    return [(i, j) for i in firsts for j in position._apply(i).legal_actions()]


def check_position(replay, ply, entry):
    """Board, colour, swap, komi and legal set of a running game are the recorded ones."""
    rules, position = replay.position.rules, replay.position
    assert "".join(position.stones) == entry["pos"]
    assert position.colour == entry["to_move"]
    assert not replay.is_over
    assert replay.winner is None
    if not replay.checks_legality(ply):
        return
    actions = replay.legal_actions()
    cells = [a for a in actions if a < rules.num_cells]
    if "swap_available" in entry:
        assert (rules.swap_action in actions) == entry["swap_available"]
    if "komi_left" in entry:
        assert position.komi == entry["komi_left"]
        assert (rules.komi_action in actions) == entry["spend_available"]
    if "legal" in entry:
        assert cells == entry["legal"]
        return
    ordered = replay.legal_pairs()
    pairs = {(min(pair), max(pair)) for pair in ordered}
    assert len(ordered) == len(set(ordered)) == 2 * len(pairs)
    assert len(pairs) == entry.get("n_pairs", entry["n_legal"])
    assert "pairs_sha1" not in entry or pairs_sha1(pairs) == entry["pairs_sha1"]
    assert "legal_pairs" not in entry or sorted(pairs) == [tuple(pair) for pair in entry["legal_pairs"]]


def check_abstractplay(game, replay):
    first, *turns = game["plies"]
    ply = 0
    check_position(replay, ply, first)
    for entry in turns:
        mover = replay.position.colour
        for action in entry["mv"]:
            replay.play(action)
        ply += 1
        if "over" in entry:
            check_abstractplay_end(game, replay, entry, mover)
            return
        check_position(replay, ply, entry)
        if ply == 1 and game["swap_after_turn1"]:
            black = replay.to_play
            replay.play(replay.position.rules.swap_action)
            assert replay.to_play == 1 - black
            check_position(replay, ply, entry)
    pytest.fail("the recorded game has no end")


def check_abstractplay_end(game, replay, entry, mover):
    assert "".join(replay.position.stones) == entry["pos"]
    if mover not in entry["pos"] and STONES.replace(mover, "") in entry["pos"]:
        # A self-wipe: the enemy still moves once, and wins by it.
        assert not replay.is_over
        assert entry["winner"] == replay.position.colour
        replay.play(entry["pos"].index("."))
    assert replay.is_over
    check_winner(replay, entry["winner"])
    assert replay.winner == "AB".index(game["winner_seat"])


def check_winner(replay, colour):
    assert replay.legal_actions() == []
    assert replay.position.colour != colour
    assert replay.winner == 1 - replay.to_play


def check_ludii(game, replay):
    """Ludii's `agent` is the seat that is to move; with a komi pie the sides are settled before seat 0 takes Black."""
    entries = game["plies"]
    if "Komi" in game["variant"]:
        entries = entries[2:] if "pass" not in entries[2] else entries[3:]
        assert replay.position.komi == game["plies"][1]["set_komi"]
        if "pass" in game["plies"][2]:
            check_position(replay, 0, game["plies"][2])
    else:
        check_position(replay, 0, entries[0])
        entries = entries[1:]
    seat_of_agent = {}
    for ply, entry in enumerate(entries, start=1):
        before = replay.position
        if "swap" in entry:
            replay.play(before.rules.swap_action)
        elif "spend_komi" in entry:
            replay.play(before.rules.komi_action)
        else:
            for action in entry["mv"]:
                replay.play(action)
        if "over" in entry:
            check_ludii_end(replay, entry, before)
            return
        if "ludii_wrong" in entry:
            assert "".join(replay.position.stones) == entry["designers_pos"] != entry["pos"]
            replay.set_stones(tuple(entry["pos"]))  # the rest of the game was played on Ludii's board
        check_position(replay, ply, entry)
        assert seat_of_agent.setdefault(entry["agent"], replay.to_play) == replay.to_play
    pytest.fail("the recorded game has no end")


def check_ludii_end(replay, entry, before):
    ours, mover = replay.position.stones, before.colour
    theirs = tuple(entry.get("designers_pos", entry["pos"]))
    if ours != theirs:
        assert "ludii_wrong" not in entry
        assert STONES.replace(mover, "") not in theirs
        assert remove_dead(before.rules.board, theirs, mover) == ours
    assert replay.is_over
    check_winner(replay, STONES[entry["status_winner"] - 1])


def rules_of(game):
    if game["variant"] not in LUDII_VARIANTS:
        return Rules(game["size"])
    opening = LUDII_VARIANTS[game["variant"]]
    komi = game["plies"][1]["set_komi"] if opening == "komi_pie" else 0
    return Rules(game["size"], opening, komi, "allowed" if opening == "strong_pie" else "forbidden")


def check_game(game, replay):
    check = check_ludii if game["variant"] in LUDII_VARIANTS else check_abstractplay
    try:
        check(game, replay)
    except Exception as error:
        error.add_note(f"in the recorded game {game['id']}")
        raise


def check_games(name, bases, make_replay):
    games = [g for g in recorded(name) if g["size"] in bases]
    for number, game in enumerate(games):
        check_game(game, make_replay(rules_of(game), number))
    return len(games)


def larger_games():
    return [g for name in ("abstractplay", "ludii") for g in recorded(name) if g["size"] not in FULL_CHECK_BASES]


@pytest.mark.parametrize(("name", "count"), [("abstractplay", 192), ("ludii", 254)])
def test_kernels_replay_every_recorded_game(name, count):
    assert check_games(name, range(3, 13), lambda rules, number: KernelReplay(rules)) == count


@pytest.mark.parametrize(("name", "count"), [("abstractplay", 103), ("ludii", 150)])
def test_reference_replays_the_small_games_with_all_legal_sets(name, count):
    replay = lambda rules, number: ReferenceReplay(rules, 1, 0)  # noqa: E731
    assert check_games(name, FULL_CHECK_BASES, replay) == count


@pytest.mark.parametrize(("name", "count"), [("abstractplay", 89), ("ludii", 104)])
def test_reference_replays_the_larger_games_with_some_legal_sets(name, count):
    # From the third turn on: the pairs of a first turn have a test of their own.
    replay = lambda rules, number: ReferenceReplay(rules, SAMPLE, 2 + number % (SAMPLE - 3))  # noqa: E731
    assert check_games(name, range(5, 13), replay) == count


@pytest.mark.slow
@pytest.mark.parametrize("game", larger_games(), ids=lambda game: game["id"])
def test_reference_replays_a_larger_game_with_all_legal_sets(game):
    check_game(game, ReferenceReplay(rules_of(game), 1, 0))


def bug_positions():
    return json.loads((HERE / "ludii_bug_positions.json").read_text())


@pytest.mark.parametrize("case", bug_positions(), ids=lambda case: case["id"])
def test_captures_that_save_own_groups_leave_the_board_of_the_designers_text(case):
    rules = Rules(case["base"])
    colour = case["to_move"]
    position = Position(rules, tuple(case["pos"]), turn=40 + STONES.index(colour))
    env = BatchEnv(rules, 1)
    env.reset(positions=[position])
    env.step(np.array([case["mv"]]))
    assert "".join(position.play(case["mv"]).stones) == case["designers"]
    assert "".join(env.position(0).stones) == case["designers"]

    # Ludii's board comes of judging both colours before anything is removed: the two orders differ here.
    placed = place(rules.board, position.stones, case["mv"], colour)
    enemy = STONES.replace(colour, "")
    own_first = remove_dead(rules.board, remove_dead(rules.board, placed, colour), enemy)
    assert "".join(own_first) != case["designers"]


def test_all_fourteen_bug_positions_are_there():
    assert len(bug_positions()) == 14
