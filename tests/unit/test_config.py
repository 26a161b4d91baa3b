"""A run's configuration: read whole, or refused in one line that names the key."""

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lifeline import ConfigError
from training.config import Config, build_config, dump_config, load_config


def write(path, text):
    path.write_text(text)
    return path


def test_defaults_are_valid_and_round_trip(tmp_path):
    config = build_config(None, "nothing")
    assert load_config(write(tmp_path / "c.yaml", dump_config(config))) == config


def test_searches_by_puct_take_its_settings(tmp_path):
    text = "search:\n  policy: puct\n  c_puct: 2\n  fpu_value: -1\nselfplay:\n  temperature: 0.5\n"
    config = load_config(write(tmp_path / "c.yaml", text))
    assert (config.search.policy, config.search.fpu_value, config.selfplay.temperature) == ("puct", -1, 0.5)
    assert load_config(write(tmp_path / "d.yaml", dump_config(config))) == config


def test_every_field_says_what_it_means():
    def undocumented(model, at=""):
        for name, field in model.model_fields.items():
            if hasattr(field.annotation, "model_fields"):
                yield from undocumented(field.annotation, f"{at}{name}.")
            elif not field.description:
                yield f"{at}{name}"

    assert list(undocumented(Config)) == []


def test_overrides_come_last(tmp_path):
    path = write(tmp_path / "c.yaml", "search:\n  num_simulations: 8\n")
    config = load_config(path, ("search.num_simulations=64", "learner.learning_rate=1e-3", "minutes=2"))
    assert (config.search.num_simulations, config.learner.learning_rate, config.minutes) == (64, 1e-3, 2)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("game:\n  bsae: 3\n", "unknown key game.bsae"),
        ("speed: 3\n", "unknown key speed"),
        ("game:\n  base: 2\n", "from 3 to 12, not 2"),
        ("game:\n  base: 13\n", "from 3 to 12, not 13"),
        ("game:\n  opening: hex\n", "game.opening"),
        ("game:\n  komi: 3\n", "komi is for komi_pie only"),
        ("search:\n  num_simulations: 1\n", "search.num_simulations.*greater than or equal to 2.*1"),
        ("search: 5\n", "search"),
        ("evaluation:\n  games: 3\n", "must be even"),
        ("checkpoint:\n  every: 7\n", "multiple of checkpoint.every 7"),
        ("replay:\n  capacity: 10\n", "exceeds replay.capacity 10"),
        ("learner_devices: 0\n", "learner_devices must be auto or a number from 1 to 1024, not 0"),
        ("learner_devices: many\n", "learner_devices"),
        ("learner_devices: 8\nlearner:\n  batch_size: 4\n", "8 exceeds learner.batch_size 4"),
        ("search:\n  policy: uct\n", "search.policy"),
        ("search:\n  first_simulations: 1\n", "first_simulations must be 0, or from 2 to .*16, not 1"),
        ("search:\n  first_simulations: 17\n", "first_simulations must be 0, or from 2 to .*16, not 17"),
        ("search:\n  c_puct: 2\n", "search.c_puct is for search.policy puct only"),
        ("search:\n  fpu_value: -1\n", "search.fpu_value is for search.policy puct only"),
        ("selfplay:\n  temperature: 0\n", "selfplay.temperature is for search.policy puct only"),
        ("selfplay:\n  groups: 0\n", "selfplay.groups must be auto or a number from 1 to .*256, not 0"),
        ("selfplay:\n  batch_size: 2\n  groups: 3\n", "selfplay.groups must be auto or a number from 1 to .*2, not 3"),
        ("selfplay:\n  groups: some\n", "selfplay.groups"),
        ("selfplay:\n  full_search_share: 0\n", "selfplay.full_search_share"),
        ("selfplay:\n  full_search_share: 0.5\n  cheap_simulations: 16\n", "cheap_simulations 16 must be below .*16"),
        ("selfplay:\n  resign_below: 0.5\n", "selfplay.resign_below"),
        ("- 1\n- 2\n", "mapping"),
        ("a: [", "not valid YAML"),
        ("!!python/object/apply:os.system ['true']", "not valid YAML"),
    ],
)
def test_what_is_wrong_is_named_in_one_line(tmp_path, text, message):
    path = write(tmp_path / "c.yaml", text)
    with pytest.raises(ConfigError, match=message) as caught:
        load_config(path)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "override", ["search", "=4", "search.=4", "search.num_simulations.x=4", "search.nope=4", "a=[", ""]
)
def test_wrong_overrides_are_refused(tmp_path, override):
    path = write(tmp_path / "c.yaml", "search:\n  num_simulations: 8\n")
    with pytest.raises(ConfigError):
        load_config(path, (override,))


def test_unreadable_files_are_refused(tmp_path):
    with pytest.raises(ConfigError, match="cannot read"):
        load_config(tmp_path / "missing.yaml")
    with pytest.raises(ConfigError, match="cannot read"):
        load_config(tmp_path)
    (tmp_path / "binary.yaml").write_bytes(b"\xff\xfe\x00\x81")
    with pytest.raises(ConfigError, match="UTF-8"):
        load_config(tmp_path / "binary.yaml")


@given(st.text(alphabet=st.sampled_from("abc: -[]{}&*!|>'\"\n\t#%@`0123.,~"), max_size=60))
def test_any_text_is_read_or_refused(tmp_path_factory, text):
    path = tmp_path_factory.mktemp("c") / "c.yaml"
    path.write_text(text)
    with contextlib.suppress(ConfigError):
        load_config(path)


@pytest.mark.parametrize("brackets", ["[" * 3000, "{[" * 1500, "[" * 33 + "]" * 33])
def test_brackets_without_end_are_refused_at_once(tmp_path, brackets):
    """Found by fuzzing: three thousand of them took a second, and a file holds twenty times as many."""
    with pytest.raises(ConfigError, match="nested too deep"):
        load_config(write(tmp_path / "deep.yaml", f"game: {brackets}"))
    with pytest.raises(ConfigError, match="not valid YAML"):
        load_config(write(tmp_path / "c.yaml", "minutes: 1"), (f"game={brackets}",))
