"""The analysis engine in this process: queries, answers, refusals, actions, limits, and what its guide says."""

import io
import json
import re
from pathlib import Path

import numpy as np
import pytest

from gtp_talk import Hash
from lifeline import Position, Rules, __version__
from lifeline.notation import parse_move
from lifeline.play import analysis
from lifeline.play.analysis import AnalysisService, serve
from lifeline.play.analysis_queries import MAX_QUERY
from lifeline.play.engine import Engine
from lifeline.play.lines import LineReader
from lifeline.play.players import NetworkPlayer, choose_move
from lifeline.search.evaluator import UniformEvaluator

GUIDE = (Path(__file__).parents[2] / "docs/analysis.md").read_text(encoding="utf-8")
MOVES = ["b1,d3", "swap", "c3", "a1"]


class Counting(Hash):
    """Notes how many positions it is asked about at once."""

    def __init__(self):
        self.batches = []

    def evaluate(self, leaves):
        self.batches.append(int((~leaves.terminated).sum()))
        return super().evaluate(leaves)


def service(evaluator=None, **settings):
    return AnalysisService(evaluator or Hash(), "hash", **{"simulations": 8, **settings})


def talk(lines, of=None):
    """All answers to some lines: objects, or text as it is."""
    data = b"\n".join(line if isinstance(line, bytes) else json.dumps(line).encode() for line in lines)
    out = io.BytesIO()
    serve(of or service(), LineReader(io.BytesIO(data).read, MAX_QUERY), out)
    return [json.loads(line) for line in out.getvalue().decode().splitlines()]


def one(line, **settings):
    (answer,) = talk([line], service(**settings))
    return answer


def test_an_answer_is_what_the_engine_says():
    start = Position.start(Rules(3))
    positions = [
        start,
        start.play("b1,d3"),
        start.play("b1,d3").play("swap"),
        start.play("b1,d3").play("swap").play("c3"),
    ]
    query = {"id": "a", "base": 3, "moves": MOVES, "turns": [3, 0, 2, 1], "simulations": 20, "seed": 3, "prior": True}
    answers = {a["turn"]: a for a in talk([query])}
    assert len(answers) == 4
    for turn, position in enumerate(positions):
        answer, found = answers[turn], Engine(position.rules, Hash()).analyse(position, 3, 20)
        assert answer["id"] == "a"
        assert answer["to_play"] == position.to_play
        assert answer["value"] == pytest.approx(found.value, abs=1e-4)
        assert answer["simulations"] == found.simulations == sum(m["visits"] for m in answer["moves"])
        assert answer["solved"] == found.solved
        assert position.play(answer["best"]) == position.play(found.best)
        assert answer["best"] == answer["moves"][0]["move"]
        for told, move in zip(answer["moves"], found.moves, strict=True):
            assert parse_move(told["move"], position.rules.board) == (move.action,)
            assert [parse_move(ply, position.rules.board)[0] for ply in told["pv"]] == list(move.pv)
            assert (told["visits"], told["value"]) == (move.visits, pytest.approx(move.value, abs=1e-4))
            assert told["prior"] == answer["prior"][told["move"]]
        assert set(answer["prior"]) <= set(position.legal_moves())
        for shares in (answer["policy"], answer["prior"]):
            assert sum(shares.values()) == pytest.approx(1, abs=1e-3)


def test_the_best_move_is_the_one_a_player_chooses():
    player = NetworkPlayer(Rules(3), Hash(), 8)
    position = Position.start(Rules(3))
    for seed in range(6):
        answer = one({"id": 1, "base": 3, "position": position.text(), "seed": seed})
        action = choose_move(player, position, seed)
        assert parse_move(answer["best"], position.rules.board) == (action,)
        position = position.play(action)


def test_without_turns_the_last_position_is_meant():
    assert one({"id": 1, "base": 3, "moves": MOVES})["turn"] == 4
    assert one({"id": 1, "base": 3})["turn"] == 0


def test_moves_go_on_from_a_position():
    text = Position.start(Rules(3)).play("b1,d3").text()
    moved = one({"id": 1, "base": 3, "position": text, "moves": ["swap"]})
    assert moved == one({"id": 1, "base": 3, "moves": ["b1,d3", "swap"]}) | {"turn": 1}


def test_the_end_of_a_game_is_told():
    answer = one({"id": 1, "base": 3, "position": "3/4/b4/4/1b1 w 9 0 - 0"})
    assert (answer["best"], answer["moves"], answer["value"], answer["solved"]) == (None, [], -1, -1)
    assert answer.keys() == one({"id": 1, "base": 3}).keys()


def test_positions_are_searched_together_and_groups_in_turn():
    evaluator = Counting()
    queries = [{"id": n, "base": 3, "moves": ["c3,a1"], "turns": [0, 1], "simulations": 4} for n in range(20)]
    queries += [{"id": "x", "base": 4, "simulations": 4}, {"id": "y", "base": 3, "simulations": 6}]
    answers = talk(queries, service(evaluator, batch=32))
    assert sorted((str(a["id"]), a["turn"]) for a in answers) == sorted(
        [(str(n), t) for n in range(20) for t in (0, 1)] + [("x", 0), ("y", 0)]
    )
    assert max(evaluator.batches) == 32
    # A group that has had its batch goes behind the others.
    order = [a["id"] for a in answers]
    assert max(order.index("x"), order.index("y")) < order.index(19)


def test_a_batch_is_smaller_where_trees_are_large(monkeypatch):
    evaluator = Counting()
    monkeypatch.setattr(analysis, "games_at_once", lambda rules, simulations: 3)
    talk([{"id": n, "base": 3} for n in range(10)], service(evaluator))
    assert max(evaluator.batches) == 3


def test_komi_may_differ_within_a_batch():
    evaluator = Counting()
    queries = [{"id": k, "base": 3, "opening": "komi_pie", "komi": k} for k in range(4)]
    answers = {a["id"]: a for a in talk(queries, service(evaluator))}
    assert max(evaluator.batches) == 4
    for query in queries:
        assert answers[query["id"]] == one(query)


@pytest.mark.parametrize(
    ("line", "id_", "field", "says"),
    [
        (b"hello", None, None, "JSON object on one line"),
        (b"[" * 60_000, None, None, "JSON object on one line"),
        (b'{"id": "a", "base": ' + b"9" * 5000 + b"}", None, None, "JSON object on one line"),
        (b'"id"', None, None, "JSON object, not str"),
        (b"\xff\xfe", None, None, "JSON object"),
        (b'{"id": "' + b"x" * MAX_QUERY, None, None, "at most 65536 bytes"),
        ({"base": 3}, None, "id", "id: Field required"),
        ({"id": None, "base": 3}, None, "id", "id:"),
        ({"id": [1], "base": 3}, None, "id", "id:"),
        ({"id": True, "base": 3}, None, "id", "id:"),
        ({"id": "x" * 201, "base": 3}, None, "id", "id:"),
        ({"id": 7}, 7, "base", "base: Field required"),
        ({"id": 7, "base": "3"}, 7, "base", "valid integer"),
        ({"id": 7, "base": 3.0}, 7, "base", "valid integer"),
        ({"id": 7, "base": True}, 7, "base", "valid integer"),
        ({"id": 7, "base": 13}, 7, "base", "3 to 12"),
        ({"id": 7, "base": 3, "opening": "pie"}, 7, "opening", "strong_pie"),
        ({"id": 7, "base": 3, "komi": 1}, 7, "komi", "komi_pie only"),
        ({"id": 7, "base": 3, "komi": 100, "opening": "komi_pie"}, 7, "komi", "0 to 99"),
        ({"id": 7, "base": 3, "adjacent_setup": "forbidden"}, 7, "adjacent_setup", "weak_pie and komi_pie"),
        ({"id": 7, "base": 3, "position": "3/4/5"}, 7, "position", "six fields"),
        ({"id": 7, "base": 3, "position": 3}, 7, "position", "valid string"),
        ({"id": 7, "base": 3, "moves": "c3"}, 7, "moves", "valid list"),
        ({"id": 7, "base": 3, "moves": ["c3", 4]}, 7, "moves", "valid string"),
        ({"id": 7, "base": 3, "moves": ["c3", "z9"]}, 7, "moves", "no cell 'z9'"),
        ({"id": 7, "base": 3, "moves": ["c3,c4"]}, 7, "moves", "illegal move: c4 in"),
        ({"id": 7, "base": 3, "moves": ["c3", "a1", "a3,c1", "b1,b2"]}, 7, "moves", "one stone is due"),
        ({"id": 7, "base": 3, "moves": ["swap"]}, 7, "moves", "illegal move: swap"),
        ({"id": 7, "base": 3, "moves": ["c3"] * 2001}, 7, "moves", "at most 2000"),
        ({"id": 7, "base": 3, "position": "3/4/b4/4/1b1 w 9 0 - 0", "moves": ["c3"]}, 7, "moves", "the game is over"),
        ({"id": 7, "base": 3, "turns": [1]}, 7, "turns", "from 0 to 0"),
        ({"id": 7, "base": 3, "turns": []}, 7, "turns", "at least 1"),
        ({"id": 7, "base": 3, "turns": [0, 0]}, 7, "turns", "different"),
        ({"id": 7, "base": 3, "turns": [-1]}, 7, "turns", "from 0"),
        ({"id": 7, "base": 3, "simulations": 1}, 7, "simulations", "0 (no search) or 2 to"),
        ({"id": 7, "base": 3, "simulations": 100_001}, 7, "simulations", "2 to 100000"),
        ({"id": 7, "base": 3, "seed": -1}, 7, "seed", "greater than or equal to 0"),
        ({"id": 7, "base": 3, "seed": 2**64}, 7, "seed", "less than"),
        ({"id": 7, "base": 3, "prior": 1}, 7, "prior", "valid boolean"),
        ({"id": 7, "action": "dance"}, 7, "action", "'query_version'"),
        ({"id": 7, "action": "terminate"}, 7, "terminate_id", "goes with"),
        ({"id": 7, "action": "terminate_all", "terminate_id": 1}, 7, "terminate_id", "goes with"),
        ({"action": "query_version"}, None, "id", "Field required"),
    ],
)  # fmt: skip
def test_what_cannot_be_done_is_told_with_its_id(line, id_, field, says):
    refused, done = talk([line, {"id": "next", "base": 3}])
    assert refused["id"] == id_
    assert refused.get("field") == field
    assert says in refused["error"]
    assert len(refused["error"]) <= 300
    assert done["id"] == "next"


def test_unknown_fields_are_told_and_the_rest_is_done():
    answers = talk([{"id": 1, "base": 3, "turn": 0, "maxVisits": 3}])
    assert [a.get("field") for a in answers] == ["turn", "maxVisits", None]
    assert answers[0]["warning"] == "unknown field 'turn'"
    assert answers[2]["best"]


def test_empty_lines_are_nothing():
    assert talk([b"", b"  ", b"\r", b""]) == []


def test_the_version_can_be_asked_for():
    assert one({"id": "v", "action": "query_version"}) == {
        "id": "v", "action": "query_version", "version": __version__, "model": "hash",
    }  # fmt: skip


def test_what_waits_can_be_ended():
    query = {"id": "long", "base": 3, "moves": ["c3,a1"], "turns": [0, 1]}
    answers = talk([query, {"id": "other", "base": 3}, {"id": "t", "action": "terminate", "terminate_id": "long"}])
    assert answers[:3] == [
        {"id": "long", "turn": 0, "terminated": True},
        {"id": "long", "turn": 1, "terminated": True},
        {"id": "t", "action": "terminate", "terminate_id": "long", "terminated": 2},
    ]
    assert [a["id"] for a in answers[3:]] == ["other"]
    answers = talk([query, {"id": "t", "action": "terminate", "terminate_id": "long", "turns": [1]}])
    assert [a.get("turn") for a in answers] == [1, None, 0]
    assert talk([query, {"id": "t", "action": "terminate_all"}])[-1]["terminated"] == 2
    assert one({"id": "t", "action": "terminate", "terminate_id": "nobody"})["terminated"] == 0


class Arriving:
    """Lines of which each arrives when so many positions have been evaluated."""

    def __init__(self, evaluator, lines):
        self.evaluator, self.lines = evaluator, lines

    def arrived(self, seconds):
        return seconds > 0 or len(self.evaluator.batches) >= self.lines[0][0]

    def next(self):
        return self.lines.pop(0)[1] if len(self.lines) > 1 else None


def test_a_running_search_can_be_ended():
    evaluator, out = Counting(), io.BytesIO()
    long = json.dumps({"id": "long", "base": 3, "simulations": 200})
    lines = [(0, long), (20, '{"id": "v", "action": "query_version"}'), (40, '{"id": "t", "action": "terminate_all"}')]
    serve(service(evaluator), Arriving(evaluator, [*lines, (40, None)]), out)
    answers = [json.loads(line) for line in out.getvalue().splitlines()]
    assert [a["id"] for a in answers] == ["v", "long", "t"]
    assert len(evaluator.batches) < 60


def test_a_search_goes_on_where_not_all_of_it_is_ended():
    evaluator, out = Counting(), io.BytesIO()
    query = json.dumps({"id": "q", "base": 3, "moves": ["c3,a1"], "turns": [0, 1], "simulations": 60})
    end = json.dumps({"id": "t", "action": "terminate", "terminate_id": "q", "turns": [0]})
    serve(service(evaluator), Arriving(evaluator, [(0, query), (10, end), (10, None)]), out)
    answers = [json.loads(line) for line in out.getvalue().splitlines()]
    assert [(a["id"], a.get("turn")) for a in answers] == [("q", 0), ("t", None), ("q", 1)]
    assert answers[2]["simulations"] == 60


def test_no_more_is_read_than_can_wait(monkeypatch):
    monkeypatch.setattr(analysis, "_MOST_WAITING", 4)
    evaluator = Counting()
    answers = talk([{"id": n, "base": 3} for n in range(30)], service(evaluator))
    assert sorted(a["id"] for a in answers) == list(range(30))
    assert max(evaluator.batches) == 4


class Broken(UniformEvaluator):
    def __init__(self, error=None):
        self.error = error

    def evaluate(self, leaves):
        if self.error is not None:
            raise self.error
        logits, values = super().evaluate(leaves)
        return logits, values + np.float32("nan")


def test_what_goes_wrong_in_a_search_is_told_and_the_next_one_tried(capsys):
    answers = talk([{"id": 1, "base": 3}, {"id": 2, "base": 4}], service(Broken()))
    assert [a["id"] for a in answers] == [1, 2]
    assert all("no usable value" in a["error"] for a in answers)
    (answer,) = talk([{"id": 1, "base": 3}], service(Broken(RuntimeError("x\ny"))))
    assert answer == {"id": 1, "turn": 0, "error": "internal error: RuntimeError"}
    assert "RuntimeError" in capsys.readouterr().err


class Closed(io.BytesIO):
    def flush(self):
        raise BrokenPipeError


@pytest.mark.parametrize("lines", [b'{"id": 1, "base": 3}\n', b"nonsense\n" * 3])
def test_a_closed_output_ends_it(lines):
    serve(service(), LineReader(io.BytesIO(lines * 50).read, MAX_QUERY), Closed())


def test_the_guide_has_all_fields_and_its_examples_work(capsys):
    queries = re.findall(r"```text\n(.*?)\n```", GUIDE, re.DOTALL)
    answers = talk([q.encode() for q in queries])
    assert [a["turn"] for a in answers] == [2, 3]
    told = set(re.findall(r"^\| ((?:`\w+`(?:, )?)+) \|", GUIDE, re.MULTILINE))
    named = {name for row in told for name in re.findall(r"\w+", row)}
    assert named >= set(one({"id": 1, "base": 3, "prior": True}))
    (code,) = re.findall(r"```python\n(.*?)```", GUIDE, re.DOTALL)
    exec(compile(code, "docs/analysis.md", "exec"), {})
    assert len(capsys.readouterr().out.splitlines()) == 3
