"""The engine: the same answers whoever asks, time, trees that are kept, the solver, resignation, the komi."""

import time
from dataclasses import replace

import numpy as np
import pytest

from game_records import random_moves
from gtp_talk import Hash, ask, engine
from lifeline import ConfigError, Position, Rules
from lifeline.errors import IllegalMoveError
from lifeline.play.clock import Clock, TimeSettings
from lifeline.play.engine import Engine, EngineSettings
from lifeline.play.komi import name_komi
from lifeline.play.players import NetworkPlayer, choose_move
from lifeline.play.resigning import Resigning
from lifeline.search.evaluator import UniformEvaluator
from lifeline.solver import Solver

RULES = Rules(3)
START = Position.start(RULES)
MIDDLE = START.play("c4,e2").play("swap").play("d4,b3").play("a1")
# Black to play wins by c2 alone.
ENDGAME = Position.parse("1b1/w1bw/4b/wb1w/1wb b 8 0 s 0", RULES)


class Flat(UniformEvaluator):
    """Holds every position for equally good for the seat to move."""

    def __init__(self, value):
        self.value = value

    def evaluate(self, leaves):
        logits, values = super().evaluate(leaves)
        return logits, values + np.float32(self.value)


def engine_of(rules=RULES, evaluator=None, **settings):
    return Engine(rules, evaluator or Hash(), EngineSettings(**{"simulations": 24, **settings}))


def some_positions(rules, count):
    """Running positions from all stages of random games."""
    found = []
    for seed in range(count):
        moves, _ = random_moves(rules, seed)
        position = Position.start(rules)
        for move in moves[: (seed * 7) % len(moves)]:
            position = position.play(move)
        found.append(position)
    return found


def test_python_gtp_and_players_choose_the_same():
    player = NetworkPlayer(RULES, Hash(), 24)
    other = engine_of()
    gtp = engine(RULES, lambda rules: NetworkPlayer(rules, Hash(), 24), seed=5)
    for position in some_positions(RULES, 12):
        ask(gtp, f"lifeline-position {position.text()}")
        said = ask(gtp, f"reg_genmove {position.colour}")
        assert position.play(said) == position.play(choose_move(player, position, 5))
        assert position.play(said) == position.play(other.choose(position, 5).action)
        assert other.analyse(position, 5).best == other.choose(position, 5).action


@pytest.mark.parametrize("rules", [RULES, Rules(4, "weak_pie"), Rules(3, "komi_pie", 4)])
@pytest.mark.parametrize("settings", [{}, {"simulations": 0}, {"leaves": 4}, {"search": "gumbel"}])
def test_many_positions_are_analysed_as_each_alone(rules, settings):
    of, positions = engine_of(rules, **settings), some_positions(rules, 11)
    together = of.analyse_many(positions, list(range(11)))
    for seed, (position, found) in enumerate(zip(positions, together, strict=True)):
        alone = engine_of(rules, **settings).analyse(position, seed)
        assert (alone.best, alone.value, alone.moves) == (found.best, found.value, found.moves)
        assert (alone.policy == found.policy).all()
        assert (alone.solved, alone.simulations, alone.position) == (found.solved, found.simulations, position)


def test_an_analysis_is_what_it_says():
    found = engine_of(prove=0, solver_nodes=0).analyse(MIDDLE, 3, simulations=40)
    assert found.simulations == 40 == sum(m.visits for m in found.moves)
    assert found.moves[0].action == found.best
    assert abs(found.policy.sum() - 1) < 1e-5
    assert set(np.flatnonzero(found.prior)) == set(MIDDLE.legal_actions())
    for move in found.moves:
        assert move.pv[0] == move.action
        assert move.prior == found.prior[move.action]
        position = MIDDLE
        for ply in move.pv:
            position = position.play(ply)


def test_without_search_all_legal_moves_are_told_by_their_priors():
    found = engine_of().analyse(MIDDLE, simulations=0)
    assert [m.action for m in found.moves] == sorted(MIDDLE.legal_actions(), key=lambda a: -found.prior[a])
    assert found.simulations == 0
    assert all(m.pv == (m.action,) and m.visits == 0 for m in found.moves)


def test_what_earlier_analyses_left_behind_does_not_matter():
    of, positions = engine_of(), some_positions(RULES, 10)
    first = [of.analyse(p, 1) for p in positions]
    assert [of.analyse(p, 1).moves for p in reversed(positions)] == [a.moves for a in reversed(first)]


def test_the_solver_takes_over_where_it_can_finish():
    of, solver = engine_of(evaluator=UniformEvaluator()), Solver(RULES, 16)
    seen = set()
    for position in some_positions(RULES, 60):
        found = of.analyse(position)
        if found.solved is None:
            continue
        truth = solver.solve(position)
        assert found.solved == found.value == truth.value
        assert truth.value == -1 or found.best in truth.known_winning
        seen.add(found.solved)
    assert seen == {1, -1}
    assert engine_of(solver_nodes=0).analyse(ENDGAME).solved is None


@pytest.mark.parametrize("seconds", [0.01, 1e9])
def test_the_solver_does_not_take_all_of_a_long_time(monkeypatch, seconds):
    """Nothing stops it but its limits, and analyses may be without end."""
    asked, solve = [], Solver.solve_state

    def noting(self, state, nodes=None, seconds=None):
        asked.append(nodes)
        return solve(self, state, nodes, seconds)

    monkeypatch.setattr(Solver, "solve_state", noting)
    assert engine_of().analyse(ENDGAME, seconds=seconds).solved == 1
    assert asked
    assert all(nodes is not None and nodes <= 1_000_000 for nodes in asked)


def test_solved_leaves_make_values_true():
    """Where the evaluator knows nothing, what is left of the game decides."""
    plain, proving = (engine_of(evaluator=UniformEvaluator(), solver_nodes=0, prove=p) for p in (0, 8))
    solver, right = Solver(RULES, 16), {plain: 0, proving: 0}
    for position in some_positions(RULES, 40):
        truth = solver.solve(position, 5_000)
        if truth.value == 1:
            for of in right:
                right[of] += of.analyse(position).best in truth.known_winning
    assert right[proving] > right[plain]


def test_a_time_is_kept():
    of = engine_of(seconds=0.05)
    of.choose(START, 0, seconds=0.2)
    of.choose(START.play("c3"), 0, seconds=0.2)  # loads what is compiled
    for position in (START, MIDDLE, ENDGAME):
        began = time.perf_counter()
        of.choose(position, 0)
        assert time.perf_counter() - began < 1.0


def test_a_kept_tree_goes_on_across_second_stones_and_swaps():
    of, position = engine_of(evaluator=UniformEvaluator()), START
    for _ in range(5):
        found = of.choose(position, 0, seconds=0.3).analysis
        followed = max(found.moves, key=lambda m: m.visits)
        position = position.play(followed.action)
        # No time for a simulation more: what is known comes from before.
        assert of.analyse(position, seconds=0.001).simulations > followed.visits / 2 > 5


def test_a_clock_gives_a_share():
    of = engine_of()
    clock = Clock.start(TimeSettings(0.5, 0, 0))
    of.choose(START, 0, clock=clock)
    began = time.perf_counter()
    of.choose(MIDDLE, 0, clock=clock)
    assert time.perf_counter() - began < 0.4


def test_a_search_can_be_ended_early():
    asked = iter(range(1000))
    found = engine_of().analyse(MIDDLE, simulations=500, stop=lambda: next(asked) >= 10)
    assert 0 < found.simulations < 100
    assert found.best in MIDDLE.legal_actions()


def test_no_analysis_of_what_cannot_be():
    of = engine_of()
    with pytest.raises(IllegalMoveError, match="the game is over"):
        of.analyse(Position.parse("3/4/b4/4/1b1 w 9 0 - 0", RULES))
    with pytest.raises(ConfigError, match="a position of"):
        of.choose(Position.start(Rules(4)), 0)
    with pytest.raises(ConfigError, match="simulations are 0"):
        of.analyse(START, simulations=1)


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"simulations": 1}, "simulations are 0"),
        ({"seconds": 0}, "seconds for a move"),
        ({"level": "11"}, "a level is one of"),
        ({"search": "alphabeta"}, "puct"),
        ({"leaves": 0}, "leaves grown at once"),
        ({"solver_nodes": -1}, "solver_nodes"),
        ({"prove": 12}, "prove is"),
        ({"resign_below": 2}, "resign_below"),
        ({"resign_moves": 0}, "resign_moves"),
    ],
)
def test_settings_out_of_range_are_refused(settings, says):
    with pytest.raises(ConfigError, match=says):
        EngineSettings(**settings)


# Resignation.


def test_a_player_gives_up_after_several_own_moves_in_a_row():
    watch, position, given = Resigning(-0.5, 3), START, []
    for move in ("c4", "e2", "a1", "b3", "d4", "a3", "c1"):
        given.append(watch.judge(position, -0.9 if position.to_play == 0 else 0.9))
        position = position.play(move)
    assert given == [False, False, False, False, True, False, True]


def test_a_better_move_between_and_moves_taken_back_begin_anew():
    watch = Resigning(-0.5, 2)
    assert not watch.judge(START, -0.9)
    assert not watch.judge(START, -0.9)  # the same move again
    assert watch.judge(START.play("c4"), -0.9)
    assert not watch.judge(START.play("c4"), 0.0)
    assert not watch.judge(MIDDLE, -0.9) or MIDDLE.to_play == 0
    assert not Resigning(-1.0, 1).judge(START, -1.0)


def test_an_engine_resigns_where_it_may_and_gtp_says_so():
    assert not engine_of(evaluator=Flat(-0.9), prove=0).choose(START, 0).resigns
    of = engine_of(evaluator=Flat(-0.9), resign_below=-0.5, resign_moves=1, simulations=0)
    assert of.choose(START, 0).resigns
    settings = EngineSettings(0, resign_below=-0.5, resign_moves=2)
    gtp = engine(RULES, lambda rules: NetworkPlayer(rules, Flat(-0.9), settings))
    assert ask(gtp, "genmove b") != "resign"
    assert ask(gtp, "genmove b") == "resign"
    assert len(gtp.session.game.actions) == 1
    ask(gtp, "clear_board")
    assert ask(gtp, "genmove b") != "resign"


# Komi pie.


def test_the_most_even_komi_is_named():
    rules = Rules(3, "komi_pie")
    asked = []

    def judge(starts, simulations):
        asked.append((len(starts), simulations))
        return [(6.2 if simulations else 7.4) / 10 - start.komi / 10 for start in starts]

    choice = name_komi(rules, judge, 16)
    assert choice.komi == 6
    assert choice.value == pytest.approx(0.02)
    assert asked == [(10, 0), (5, 16)]
    assert name_komi(rules, judge, 0).komi == 7
    assert name_komi(rules, judge, 16, most=3).komi == 3
    with pytest.raises(ConfigError, match="komi_pie"):
        name_komi(RULES, judge, 16)
    with pytest.raises(ConfigError, match="0 to 99"):
        name_komi(rules, judge, 16, most=100)


def test_an_engine_names_a_komi_and_takes_the_better_side():
    rules = Rules(3, "komi_pie")
    choice = engine_of(rules).named_komi()
    assert choice.values[choice.komi] == choice.value
    assert abs(choice.value) == min(abs(v) for v in choice.values.values() if v in choice.values.values())
    for value, colour in ((0.5, "b"), (-0.5, "w")):
        of = engine_of(replace(rules, komi=3), Flat(value), simulations=0)
        assert of.better_side() == (colour, value)


def test_gtp_names_komi_and_side_for_models_only():
    gtp = engine(Rules(3, "komi_pie"), lambda rules: NetworkPlayer(rules, Hash(), 4))
    komi = ask(gtp, "lifeline-name_komi")
    ask(gtp, f"komi {komi}")
    assert ask(gtp, "lifeline-choose_side") in ("black", "white")
    ask(gtp, "play b c3")
    assert "at the start" in gtp.handle("lifeline-choose_side").text
    assert not engine().handle("lifeline-name_komi").ok
    assert "komi_pie" in engine(RULES, lambda rules: NetworkPlayer(rules, Hash(), 4)).handle("lifeline-name_komi").text
