"""What a run shows of its self-play."""

from dataclasses import replace

import numpy as np
import pytest
from torch.utils.tensorboard import SummaryWriter

from lifeline import BatchEnv, Rules
from lifeline.kernels import encode_position
from lifeline.rules import Position
from training.config import build_config
from training.console import LiveConsole
from training.learner import Losses
from training.monitor import Figures, Monitor, record_of
from training.trajectory import Trajectory

RULES = Rules(3)


def game(outcome=1, resigned=-1, would_resign=-1, version=0, solved=(0, 0), strayed=(0, 0)):
    """Two stones, the second of them without a policy target."""
    env = BatchEnv(RULES, 1)
    states = [encode_position(Position.start(RULES))]
    env.step(np.array([0]))
    targets = np.zeros((2, RULES.num_actions), np.float16)
    targets[0, :2] = 0.5
    return Trajectory(
        states=np.stack([*states, env.gather()[0]]),
        policy_targets=targets,
        root_values=np.zeros(2, np.float32),
        surprise=np.zeros(2, np.float16),
        to_play=np.zeros(2, np.int8),
        actions=np.array([0, 9], np.int16),
        solved=np.array(solved, np.int8),
        strayed=np.array(strayed, np.int8),
        outcome=outcome,
        random_plies=0,
        game_id=1,
        version=version,
        resigned=resigned,
        would_resign=would_resign,
    )


@pytest.fixture
def shown(monkeypatch, tmp_path):
    """Shows one iteration of some games: gives its scalars."""

    def show(games, losses=None, **settings):
        scalars = {}
        monkeypatch.setattr(SummaryWriter, "add_scalar", lambda self, name, value, step: scalars.update({name: value}))
        config = build_config(settings, "test")
        monitor = Monitor(tmp_path, config, LiveConsole(), 0)
        counts = dict.fromkeys(Figures.__dataclass_fields__, 0)
        monitor.iteration(Figures(**counts | {"learner_steps": 50, "iteration": 1}), games, losses, None)
        monitor.close()
        return scalars | {"warnings": tuple(monitor._warnings)} if losses else scalars

    return show


def test_drills_are_left_out(shown):
    games = [game(1, solved=(1, 1)), game(-1)]
    drill = replace(game(1, solved=(-1, 1), strayed=(1, 1)), random_plies=9, drill=1)
    assert shown([drill, *games, drill]) == shown(games)
    assert "selfplay/plies_per_game" not in shown([drill])


def test_what_is_off_is_not_shown(shown):
    scalars = shown([game()])
    assert (
        not {"selfplay/resigned", "selfplay/solved_share", "selfplay/full_searches", "selfplay/simulations"}
        & scalars.keys()
    )


def test_the_entropy_of_targets_is_that_of_plies_that_have_one(shown):
    scalars = shown([game()], selfplay={"full_search_share": 0.5})
    assert scalars["selfplay/target_entropy"] == pytest.approx(np.log(2), rel=1e-3)
    assert scalars["selfplay/full_searches"] == 0.5


def test_the_growing_number_of_simulations_is_shown(shown):
    settings = {"num_simulations": 16, "first_simulations": 4, "growth_steps": 100}
    assert shown([], search=settings)["selfplay/simulations"] == 10


def test_resignations_and_how_often_they_would_be_wrong_are_shown(shown, capsys):
    right, wrong = game(outcome=1, would_resign=1), game(outcome=-1, would_resign=1)
    games = [game(-1, resigned=0), game(), right, wrong, right, right]
    scalars = shown(games, selfplay={"resign_below": -0.9})
    assert scalars["selfplay/resigned"] == pytest.approx(1 / 6)
    assert scalars["selfplay/resign_false_positives"] == 0.25
    assert "would have resigned" not in capsys.readouterr().out
    shown([right] * 90 + [wrong] * 10, selfplay={"resign_below": -0.9})
    assert "would have resigned won 10 of 100 games" in " ".join(capsys.readouterr().out.split())


def test_what_was_solved_and_how_often_it_came_otherwise_is_shown(shown):
    scalars = shown([game(1, solved=(1, 1)), game(-1, solved=(0, 1)), game(1), game(1)])
    assert scalars["selfplay/solved_share"] == 3 / 8
    assert scalars["selfplay/outcome_not_solved_value"] == 0.5
    strayed = game(-1, solved=(0, 1), strayed=(0, 1), would_resign=1)
    scalars = shown([game(1, solved=(1, 1)), strayed], selfplay={"resign_below": -0.9})
    assert scalars["selfplay/outcome_not_solved_value"] == 0
    assert "selfplay/resign_false_positives" not in scalars
    assert scalars["selfplay/first_seat_wins"] == 1


def test_the_record_of_a_resigned_game_says_so():
    record = record_of(game(-1, resigned=0), RULES, 16)
    assert (record.result.winner, record.result.reason) == (1, "resigned")
    assert record_of(game(-1, would_resign=0), RULES, 16).result.reason == "played out"


def test_what_the_solver_says_is_shown_with_the_iteration_it_came_in(monkeypatch, tmp_path):
    scalars = []
    monkeypatch.setattr(SummaryWriter, "add_scalar", lambda self, *arguments: scalars.append(arguments))
    monitor = Monitor(tmp_path, build_config({}, "test"), LiveConsole(), 0)
    monitor.truths({"base3/keeps_win_raw": 0.9}, 7)
    monitor.close()
    assert scalars == [("truth/base3/keeps_win_raw", 0.9, 7)]


@pytest.mark.parametrize(("z", "warned"), [(900.0, False), (40_000.0, True)])
def test_policies_that_run_off_are_told_of(shown, z, warned):
    scalars = shown([game()], Losses(2.5, 0.5, 2.0, z, {}, 1.0, 10))
    assert scalars["loss/z"] == z
    assert scalars["loss/policy_divergence"] == 0.5
    assert ["z_weight" in line for line in scalars["warnings"]] == [True] * warned
