"""No line, however mad, ends the analysis engine or goes without an answer."""

import io
import json

from hypothesis import given, settings
from hypothesis import strategies as st

from gtp_talk import Hash
from lifeline.play.analysis import AnalysisService, serve
from lifeline.play.analysis_queries import MAX_QUERY
from lifeline.play.lines import LineReader

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=8,
)
MOVES = st.sampled_from(["c3", "a1", "c3,a1", "b2", "swap", "komi", "z9", "", "C3", "c3,c4,c5", "\u212a1"])
# Half right: what gets past the first checks.
FIELDS = {
    "id": st.integers(0, 9) | st.text(max_size=3),
    "base": st.integers(2, 5),
    "opening": st.sampled_from(["strong_pie", "weak_pie", "komi_pie", ""]),
    "komi": st.integers(-1, 3),
    "adjacent_setup": st.sampled_from(["allowed", "forbidden"]),
    "position": st.sampled_from(["3/4/5/4/3 b 0 0 - 0", "3/4/b4/4/1b1 w 9 0 - 0", "3/4/5/4/3 b 0 0 -", "x"]),
    "moves": st.lists(MOVES, max_size=5),
    "turns": st.lists(st.integers(-1, 5), max_size=4),
    "simulations": st.sampled_from([0, 1, 2, 3, 5]),
    "seed": st.integers(-1, 2**64),
    "prior": st.booleans(),
    "action": st.sampled_from(["query_version", "terminate", "terminate_all"]),
    "terminate_id": st.integers(0, 9),
}
QUERIES = st.fixed_dictionaries(
    {"id": FIELDS["id"], "base": st.integers(3, 4)},
    optional={name: values for name, values in FIELDS.items() if name not in ("id", "base", "action", "terminate_id")},
)
MUTATED = st.builds(
    lambda query, name, value: {**query, name: value}, QUERIES, st.sampled_from([*FIELDS, "x"]), JSON | st.none()
)
ACTIONS = st.fixed_dictionaries({}, optional={name: FIELDS[name] for name in ("id", "action", "terminate_id", "turns")})
LINES = st.one_of(
    st.binary(max_size=40).map(lambda line: line.replace(b"\n", b"")),
    st.one_of(JSON, QUERIES, QUERIES, MUTATED, ACTIONS).map(lambda value: json.dumps(value).encode()),
)
SERVICE = AnalysisService(Hash(), simulations=2)


@settings(max_examples=60)
@given(st.lists(LINES, max_size=6))
def test_every_line_is_answered(lines):
    out = io.BytesIO()
    serve(SERVICE, LineReader(io.BytesIO(b"\n".join(lines)).read, MAX_QUERY), out)
    assert SERVICE.waiting == 0
    answers = [json.loads(line) for line in out.getvalue().decode("ascii").splitlines()]
    wanted = sum(bool(line.strip()) for line in lines)
    told = [a for a in answers if "warning" not in a]
    assert len(told) >= wanted
    for answer in told:
        assert "internal" not in answer.get("error", ""), answer
        assert "error" in answer or "action" in answer or "terminated" in answer or -1 <= answer["value"] <= 1
