"""Both adapters tell PettingZoo and OpenSpiel what rules.py says: whose turn it is, what is legal, who has won."""

import gzip
import importlib
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyspiel
import pytest

from lifeline.adapters.open_spiel import LifelineGame
from lifeline.adapters.pettingzoo import AGENTS, LifelineEnv, env
from lifeline.env import BatchEnv
from lifeline.errors import IllegalMoveError, LifelineError, RulesError
from lifeline.rules import Position, Rules

ROOT = Path(__file__).parents[2]
ALL_RULES = [
    Rules(3),
    Rules(4),
    Rules(3, "weak_pie"),
    Rules(4, "weak_pie", adjacent_setup="forbidden"),
    Rules(3, "komi_pie", 3),
    Rules(4, "komi_pie", 0, "forbidden"),
]


class PettingZooGame:
    """A game of the one adapter, asked for what both can tell."""

    def __init__(self, rules):
        self.env = LifelineEnv(rules)
        self.env.reset()

    def player(self):
        return AGENTS.index(self.env.agent_selection)

    def legal(self):
        return np.flatnonzero(self.env.last()[0]["action_mask"]).tolist()

    def planes(self):
        return self.env.last()[0]["observation"]

    def is_over(self):
        assert len(set(self.env.terminations.values())) == 1
        return self.env.terminations[AGENTS[0]]

    def rewards(self):
        return [self.env.rewards[agent] for agent in AGENTS]

    def play(self, action):
        self.env.step(action)

    def position(self):
        return self.env.position


class OpenSpielGame:
    """A game of the other."""

    def __init__(self, rules):
        fields = ("base", "opening", "komi", "adjacent_setup")
        text = ",".join(f"{name}={getattr(rules, name)}" for name in fields)
        self.game = pyspiel.load_game(f"lifeline({text})")
        assert isinstance(self.game, LifelineGame)
        self.state = self.game.new_initial_state()

    def player(self):
        # OpenSpiel has no player to move at the end.
        return self.position().to_play if self.state.is_terminal() else self.state.current_player()

    def legal(self):
        return self.state.legal_actions()

    def planes(self):
        return np.reshape(self.state.observation_tensor(0), self.game.observation_tensor_shape())

    def is_over(self):
        return self.state.is_terminal()

    def rewards(self):
        return self.state.returns()

    def play(self, action):
        self.state.apply_action(action)

    def position(self):
        return self.state.position


ADAPTERS = pytest.mark.parametrize("adapter", [PettingZooGame, OpenSpielGame])


def check_ply(game, position):
    assert game.position() == position
    assert game.player() == position.to_play
    assert game.legal() == position.legal_actions()
    assert game.is_over() == position.is_over
    won = {None: [0, 0], 0: [1, -1], 1: [-1, 1]}[position.winner]
    assert game.rewards() == won


@ADAPTERS
@pytest.mark.parametrize("rules", ALL_RULES, ids=str)
def test_random_games_go_as_by_the_rules(adapter, rules):
    rng, swaps, spent = np.random.default_rng(7), 0, 0
    for _ in range(6):
        game, position = adapter(rules), Position.start(rules)
        check_ply(game, position)
        while not position.is_over:
            legal = position.legal_actions()
            special = [a for a in legal if a >= rules.num_cells]
            action = special[0] if special and rng.random() < 0.5 else int(rng.choice(legal))
            swaps, spent = swaps + (action == rules.swap_action), spent + (action == rules.komi_action)
            game.play(action)
            position = position.play(action)
            check_ply(game, position)
    assert (swaps > 0) == (rules.opening != "komi_pie")
    assert (spent > 0) == (rules.komi > 0)


def recorded_games():
    """Games of base 3 as another program recorded them: (plies, seat that won). Half of them begin with a swap."""
    with gzip.open(ROOT / "tests/golden/abstractplay.jsonl.gz", "rt") as lines:
        games = [json.loads(line) for line in lines]
    for game in games:
        if game["size"] != 3:
            continue
        plies = [cell for entry in game["plies"][1:] for cell in entry["mv"]]
        if game["swap_after_turn1"]:
            plies.insert(2, Rules(3).swap_action)
        yield plies, "AB".index(game["winner_seat"])


@ADAPTERS
def test_the_seats_that_won_recorded_games_are_rewarded(adapter):
    checked = {True: 0, False: 0}
    for plies, winner in recorded_games():
        game = adapter(Rules(3))
        for action in plies:
            game.play(action)
        if not game.is_over():  # that program ends a game before the last stone where a mover has wiped himself out
            game.play(game.legal()[0])
        assert game.is_over()
        assert game.rewards()[winner] == 1
        assert game.rewards()[1 - winner] == -1
        checked[Rules(3).swap_action in plies] += 1
    assert min(checked.values()) > 10


@ADAPTERS
def test_two_stones_are_one_players_and_a_swap_gives_the_turn_away(adapter):
    rules = Rules(3)
    game, cell = adapter(rules), rules.board.cell
    seats = [game.player()]
    for action in (cell("c3"), cell("a1"), rules.swap_action, cell("e1"), cell("e3")):
        game.play(action)
        seats.append(game.player())
    # Black's two stones by seat 0; seat 1 swaps; White's two stones by seat 0, who was Black; then Black, seat 1.
    assert seats == [0, 0, 1, 0, 0, 1]
    assert game.position().colour == "b"


@ADAPTERS
def test_the_observation_is_what_a_network_sees(adapter):
    rules = Rules(4, "komi_pie", 12)
    game, env = adapter(rules), BatchEnv(rules, 1)
    for action in (3, 20, 30, 8, 11, rules.komi_action):
        game.play(action)
        env.step(np.array([action]))
        np.testing.assert_array_equal(game.planes(), env.observation[0])


@ADAPTERS
@pytest.mark.parametrize("action", [0, 99], ids=["taken", "too large"])
def test_an_illegal_action_is_refused_and_changes_nothing(adapter, action):
    game = adapter(Rules(3))
    game.play(0)
    before = game.position()
    with pytest.raises(IllegalMoveError, match="b2/4/5/4/3 b 0 1 - 0"):
        game.play(action)
    check_ply(game, before)


def test_rules_that_do_not_exist_are_refused():
    with pytest.raises(RulesError, match="3 to 12, not 13"):
        pyspiel.load_game("lifeline(base=13)")
    with pytest.raises(RulesError, match="komi_pie only"):
        env(komi=3)


@pytest.mark.parametrize(
    ("module", "package", "extra"),
    [
        ("lifeline.adapters.pettingzoo", "pettingzoo", "pettingzoo"),
        ("lifeline.adapters.pettingzoo", "gymnasium", "pettingzoo"),
        ("lifeline.adapters.open_spiel", "pyspiel", "openspiel"),
    ],
)
def test_without_its_extra_an_adapter_says_what_to_install(monkeypatch, module, package, extra):
    monkeypatch.setitem(sys.modules, package, None)
    monkeypatch.delitem(sys.modules, module)
    with pytest.raises(LifelineError) as refused:
        importlib.import_module(module)
    assert str(refused.value) == f"{module} needs {package}, which is not installed: pip install '.[{extra}]'"
    assert isinstance(refused.value, ImportError)


def test_the_core_imports_neither_library():
    code = (
        "import sys, pkgutil, importlib, lifeline\n"
        "for m in pkgutil.walk_packages(lifeline.__path__, 'lifeline.'):\n"
        "    if not m.name.startswith('lifeline.adapters'):\n"
        "        importlib.import_module(m.name)\n"
        "print(sorted({'pettingzoo', 'gymnasium', 'pyspiel', 'open_spiel'} & set(sys.modules)))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
