"""How a run was made is kept beside it: every start is counted, and what changed is told by commands."""

import json
import shlex

import pytest

from training import sessions
from training.config import Config, dump_config, load_config
from training.sessions import SESSIONS_FILE, begin_session, read_sessions, resumptions

PLAIN = Config()
DEEPER = PLAIN.model_copy(update={"minutes": 3.0, "selfplay": PLAIN.selfplay.model_copy(update={"solve_nodes": 9})})


def test_starts_are_counted_and_told_of_where_something_changed(tmp_path):
    assert read_sessions(tmp_path) == (0, [])
    assert [begin_session(tmp_path, i, PLAIN) for i in (0, 5, 9)] == [0, 1, 2]
    count, made = read_sessions(tmp_path)
    assert (count, [stretch.iteration for stretch in made]) == (3, [0])
    assert made[0].config == PLAIN.model_dump(mode="json")
    assert made[0].commit == sessions.source_commit()
    assert begin_session(tmp_path, 12, DEEPER) == 3
    assert [stretch.iteration for stretch in read_sessions(tmp_path)[1]] == [0, 12]


def test_what_came_to_nothing_is_not_told(tmp_path):
    begin_session(tmp_path, 0, PLAIN)
    begin_session(tmp_path, 8, DEEPER)
    begin_session(tmp_path, 8, PLAIN)  # nothing was made by the last one: the run has gone on as it began
    count, made = read_sessions(tmp_path)
    assert (count, [stretch.iteration for stretch in made]) == (3, [0])
    begin_session(tmp_path, 0, DEEPER)
    assert [stretch.config["minutes"] for stretch in read_sessions(tmp_path)[1]] == [3.0]


def test_another_commit_is_another_stretch(tmp_path, monkeypatch):
    for i, commit in enumerate(["a", "a", "b", None]):
        monkeypatch.setattr(sessions, "source_commit", lambda commit=commit: commit)
        begin_session(tmp_path, i, PLAIN)
    made = read_sessions(tmp_path)[1]
    assert [(stretch.iteration, stretch.commit) for stretch in made] == [(0, "a"), (2, "b"), (3, None)]
    assert [again["command"] for again in resumptions(made, "RUN")] == 2 * ["lifeline train --resume RUN"]


def test_commands_make_the_changes(tmp_path):
    game = PLAIN.evaluation.model_copy(update={"opponents": ("random", "rollout:10")})
    third = DEEPER.model_copy(update={"workers": 0, "minutes": None, "device": "cpu", "evaluation": game})
    for i, config in enumerate([PLAIN, DEEPER, third]):
        begin_session(tmp_path, 10 * i, config)
    first, second = resumptions(read_sessions(tmp_path)[1], "my run")
    assert first["iteration"] == 10
    assert first["command"] == "lifeline train --resume 'my run' --set minutes=3.0 --set selfplay.solve_nodes=9"
    path = tmp_path / "config.yaml"
    for before, command, after in [(PLAIN, first["command"], DEEPER), (DEEPER, second["command"], third)]:
        path.write_text(dump_config(before))
        assert load_config(path, tuple(shlex.split(command)[5::2])) == after


@pytest.mark.parametrize(
    "text",
    [
        "",
        "5",
        "[" * 50_000,
        '{"count": 3}',
        '{"count": "x", "made": []}',
        '{"count": 3, "made": [5]}',
        json.dumps({"count": 3, "made": [{"iteration": 0, "commit": None, "config": 5}]}),
        json.dumps({"count": 3, "made": [{"iteration": "0", "commit": None, "config": {}}]}),
        json.dumps({"count": 3, "made": [{"iteration": 0, "commit": 7, "config": {}}]}),
        json.dumps({"count": 3, "made": [{"iteration": 0, "commit": None, "config": {}, "more": 1}]}),
    ],
)
def test_a_damaged_file_is_as_none(tmp_path, text):
    (tmp_path / SESSIONS_FILE).write_text(text)
    assert read_sessions(tmp_path) == (0, [])
    assert begin_session(tmp_path, 4, PLAIN) == 0
