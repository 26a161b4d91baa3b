"""Players of tournaments by their texts."""

import pytest

from lifeline import ConfigError, Rules
from lifeline.errors import CheckpointError, LifelineError, ModelError
from lifeline.play.players import Budget
from training.config import NetworkConfig
from training.entrants import parse_entrant, parse_entrants
from training.export import export_onnx
from training.network import Network

SMALL = NetworkConfig(blocks=1, channels=8, pool_every=1, head_channels=4, value_hidden=8)


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    path = tmp_path_factory.mktemp("models") / "strong.onnx"
    path.write_bytes(export_onnx(SMALL, Network(SMALL).state_dict()))
    return path


@pytest.mark.parametrize(
    ("text", "name", "player", "budget"),
    [
        ("random", "random", "random", Budget(7)),
        ("rollout:30", "rollout:30", "rollout:30", Budget(7)),
        ("weak=rollout:30", "weak", "rollout:30", Budget(7)),
        ("rollout:30@0.5s", "rollout:30@0.5s", "rollout:30", Budget(seconds=0.5)),
        ("rollout:30@2s", "rollout:30@2s", "rollout:30", Budget(seconds=2)),
        ("solver", "solver", "solver", Budget(7)),
        ("gtp:/usr/games/some prog --x=1", "some", "gtp:/usr/games/some prog --x=1", Budget(7)),
        ("gtp:'/opt/a b/engine' -q@3s", "engine@3s", "gtp:'/opt/a b/engine' -q", Budget(seconds=3)),
        ("me=gtp:prog", "me", "gtp:prog", Budget(7)),
    ],
)
def test_texts_are_read(text, name, player, budget):
    entrant = parse_entrant(text, Budget(7))
    assert (entrant.name, entrant.text, entrant.budget, entrant.model) == (name, player, budget, None)


@pytest.mark.parametrize(
    ("suffix", "budget"),
    [
        ("", Budget(7)),
        ("@256", Budget(256)),
        ("@0", Budget(0)),
        ("@9/puct", Budget(9, search="puct")),
        ("@9/alone", Budget(9, solver=False)),
        ("@9/gumbel/alone", Budget(9, search="gumbel", solver=False)),
    ],
)
def test_models_come_with_their_bytes(model, suffix, budget):
    entrant = parse_entrant(f"{model}{suffix}", Budget(7))
    assert entrant.name == "strong" + suffix.replace("/", "-")
    assert entrant.model == model.read_bytes()
    assert entrant.budget == budget
    assert entrant.player(Rules(3)).name == entrant.name


def test_a_runs_bot_is_named_after_the_run(model, tmp_path):
    folder = tmp_path / "mine-1"
    folder.mkdir()
    (folder / "bot.onnx").write_bytes(model.read_bytes())
    assert parse_entrant(str(folder / "bot.onnx"), Budget()).name == "mine-1"


@pytest.mark.parametrize(
    ("text", "kind", "says"),
    [
        ("nobody", ConfigError, "no player 'nobody'"),
        ("rollout:0", ConfigError, "no player"),
        ("rollout:10@1", ConfigError, "0 \\(the policy alone\\) or 2 to"),
        ("rollout:10@64", ConfigError, "simulations, search and solver are those of a model"),
        ("rollout:10@1s/puct", ConfigError, "simulations, search and solver are those of a model"),
        ("random@8/alpha", ConfigError, "no player 'random@8/alpha'"),
        ("rollout:10@1.5", ConfigError, "seconds end in s"),
        ("rollout:10@0s", ConfigError, "seconds for a move"),
        ("gtp:", ConfigError, "needs the command line"),
        ("gtp:'open", ConfigError, "not a command line"),
        ("/nowhere/bot.onnx", ModelError, "cannot read /nowhere/bot.onnx"),
    ],
)
def test_what_is_no_player_is_refused_in_one_line(text, kind, says):
    with pytest.raises(kind, match=says) as caught:
        parse_entrant(text, Budget())
    assert "\n" not in str(caught.value)


def test_folders_and_files_that_hold_no_model_are_refused(tmp_path):
    (tmp_path / "text.onnx").write_text("hello")
    with pytest.raises(ModelError, match=r"text\.onnx"):
        parse_entrant(str(tmp_path / "text.onnx"), Budget())
    with pytest.raises(CheckpointError, match="no checkpoint"):
        parse_entrant(str(tmp_path), Budget())


def test_names_differ_or_are_made_to():
    entrants = parse_entrants(["rollout:5", "rollout:5", "random"], Budget())
    assert [e.name for e in entrants] == ["rollout:5", "rollout:5.2", "random"]
    with pytest.raises(ConfigError, match="two players are called a"):
        parse_entrants(["a=random", "a=rollout:5"], Budget())
    with pytest.raises(LifelineError, match="two players at least"):
        parse_entrants(["random"], Budget())


def test_a_model_may_play_at_a_level(model):
    for suffix in ("@level3", "@levelcasual", "@level-casual"):
        entrant = parse_entrant(f"{model}{suffix}", Budget(7))
        assert entrant.budget == Budget(7, level="casual")
        assert entrant.name == "strong@level" + suffix.removeprefix("@level").removeprefix("-")
        assert not entrant.is_settled
        assert entrant.facts()["level"] == "casual"
        assert entrant.player(Rules(3)).engine.settings.level == "casual"
    assert parse_entrant(f"{model}@level10", Budget(7)).is_settled
    with pytest.raises(ConfigError, match="a level is one of"):
        parse_entrant(f"{model}@level11", Budget())
    with pytest.raises(ConfigError, match="levels are those of a model"):
        parse_entrant("rollout:10@level3", Budget())
