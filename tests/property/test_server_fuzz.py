"""Strangers' requests: of any form, size and order they get an answer below 500, touch no file, and hold nobody up."""

import json
import os
import random
import socket
import sys
import threading
import time
from pathlib import Path

import httpx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lifeline.play.server_guard import Allowance
from web_server import serving

PATHS = ("game", "move", "analyse", "values", "komi", "side", "import", "export")
FIELDS = (
    *("base", "opening", "komi", "adjacent_setup", "start", "moves", "at", "model", "level", "simulations", "seed"),
    *("plies", "text", "number", "players", "resigned", "__proto__", ""),
)


@pytest.fixture(scope="module")
def server():
    # Rates are tested elsewhere: here as much as possible is to reach what lies behind.
    allowance = Allowance(page_rate=1e6, address_rate=1e6)
    with (
        serving(allowance=allowance, simulations=4) as (address, _),
        httpx.Client(base_url=address, timeout=60) as client,
    ):
        for base in (3, 5, 6, 8):  # kernels are there then
            client.post("/api/game", json={"base": base})
            client.post("/api/move", json={"base": base, "model": "rollouts"})
        yield address, client


_watched = []
_watching = threading.Event()


def _watch(event, arguments):
    if event == "open" and _watching.is_set():
        _watched.append(os.fsdecode(arguments[0]) if isinstance(arguments[0], str | bytes) else "")


@pytest.fixture
def opened(server):
    """The files that this process opens, in any way; but for code that is loaded when it is first needed."""
    sys.addaudithook(_watch)  # which lasts as long as the process
    _watching.set()
    yield lambda: [path for path in _watched if path and not path.endswith((".py", ".pyc", ".nbi", ".nbc", ".so"))]
    _watching.clear()


words = st.sampled_from(
    [
        *("a1", "c3", "e3", "swap", "komi", "a1,e3", "A1", "z99", "strong_pie", "weak_pie", "komi_pie", "forbidden"),
        *("rollouts", "full", "beginner", "../../etc/passwd", "/etc/passwd", "\x00", "C:\\x", "file:///etc/passwd"),
        *(
            "3/4/5/4/3 b 0 0 - 0",
            "1w1/1w2/5/1w2/3 b 4 0 - 0",
            "{}",
            "1. a1,e3 2. swap",
            '{"version": 1}',
            "💥",
            "\ud800",
        ),
    ]
)
numbers = st.one_of(st.integers(-3, 14), st.sampled_from([99, 100, 2**31, 2**53, 2**64, -(2**70), 10**400, 0.5, 1e308]))
leaves = st.one_of(st.none(), st.booleans(), numbers, words, st.text(max_size=30))
values = st.recursive(leaves, lambda inner: st.lists(inner, max_size=5) | st.dictionaries(words, inner, max_size=3))
plausible = st.fixed_dictionaries(
    {},
    optional={
        "base": st.integers(3, 12),
        "opening": st.sampled_from(["strong_pie", "weak_pie", "komi_pie"]),
        "komi": st.integers(0, 5),
        "adjacent_setup": st.sampled_from(["allowed", "forbidden"]),
        "moves": st.lists(words, max_size=6),
        "start": words,
        "at": st.integers(0, 6),
        "model": st.just("rollouts"),
        "level": st.sampled_from(["beginner", "novice"]),
        "simulations": st.integers(0, 4),
        "plies": st.lists(st.integers(0, 4), max_size=4),
        "text": words | st.text(max_size=60),
        "players": st.lists(words, max_size=3),
    },
)
queries = st.one_of(values, st.dictionaries(st.sampled_from(FIELDS), values, max_size=6), plausible)


def sound(response):
    assert response.status_code < 500, response.text
    assert response.headers["content-type"] == "application/json"
    if response.status_code != 200:
        [(key, text)] = response.json().items()
        assert key == "error"
        assert text
        assert "\n" not in text
        assert "Traceback" not in text


@settings(max_examples=120)
@given(st.sampled_from(PATHS), queries)
def test_questions_of_any_form_are_answered(server, path, query):
    body = json.dumps(query).encode("utf-8", "replace")
    sound(server[1].post(f"/api/{path}", content=body, headers={"Content-Type": "application/json"}))


@settings(max_examples=60)
@given(st.sampled_from(PATHS), plausible.map(lambda q: json.dumps({"base": 3, "model": "rollouts", **q})), st.randoms())
def test_damaged_questions_are_answered(server, path, text, rng):
    body = bytearray(text.encode())
    for _ in range(rng.randint(1, 4)):
        at = rng.randrange(len(body))
        body[at : at + rng.choice([0, 1, 5])] = rng.randbytes(rng.choice([0, 1, 3]))
    sound(server[1].post(f"/api/{path}", content=bytes(body), headers={"Content-Type": "application/json"}))


def raw(address, data, wait=0.2):
    """Bytes as they are, and what comes back within a time."""
    host, port = address.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), timeout=10) as connection:
        connection.sendall(data)
        connection.settimeout(wait)
        found = b""
        try:
            while part := connection.recv(65536):
                found += part
        except TimeoutError:
            pass
        except ConnectionResetError:
            pass
        return found


HOSTILE = [
    b"\r\n\r\n",
    b"\x16\x03\x01\x02\x00",
    b"GET / HTTP/9.9\r\n\r\n",
    b"GET /../../etc/passwd HTTP/1.1\r\nHost: localhost\r\n\r\n",
    b"GET /web/%2e%2e%2f%2e%2e%2fetc/passwd HTTP/1.1\r\nHost: localhost\r\n\r\n",
    b"GET /web/\xff\xfe HTTP/1.1\r\nHost: localhost\r\n\r\n",
    b"GET http://evil.example/ HTTP/1.1\r\nHost: localhost\r\n\r\n",
    b"GET //evil.example/%5c.. HTTP/1.1\r\nHost: localhost\r\n\r\n",
    b"GET /api/board/" + b"9" * 5000 + b" HTTP/1.1\r\nHost: localhost\r\n\r\n",
    b"GET / HTTP/1.1\r\nHost: localhost\r\nX: " + b"a" * 100_000 + b"\r\n\r\n",
    b"GET / HTTP/1.1\r\nHost: localhost\r\nX-Lifeline-Page: \xff\xfe\r\n\r\n",
    b"OPTIONS * HTTP/1.1\r\nHost: localhost\r\n\r\n",
    b"PUT /api/game HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\n\r\n{}",
    b"POST /api/game HTTP/1.1\r\nHost: localhost\r\nContent-Length: -5\r\n\r\n{}",
    b"POST /api/game HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99999999999999999999\r\n\r\n{}",
    b"POST /api/game HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
    b"POST /api/game HTTP/1.1\r\nHost: [::1]\r\nContent-Type: application/json\r\nContent-Length: 3\r\n\r\n\xff\xfe{",
    b"GET /api/info HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n",
]


def test_bytes_that_are_no_requests_do_no_harm(server):
    for data in HOSTILE:
        found = raw(server[0], data)
        assert not found.startswith(b"HTTP/1.1 5"), (data[:80], found[:200])
        assert b"root:" not in found
    assert httpx.get(f"{server[0]}/api/info").status_code == 200


def test_no_request_opens_a_file(server, opened):
    client, rng = server[1], random.Random(1)
    for path in ("/", "/rules", "/web/main.js", "/web/../server.py", "/etc/passwd", "/web//etc/passwd"):
        client.get(path)
    for path in PATHS:
        for text in ("/etc/passwd", "../x", "file:///etc/passwd", "checkpoints/x.onnx", "x.jsonl.gz"):
            fields = {"base": 3, "model": text, "text": text, "start": text, "level": text, "moves": [text]}
            kept = {k: v for k, v in fields.items() if k == "base" or rng.random() < 0.6}
            client.post(f"/api/{path}", json=kept)
    moved = client.post("/api/move", json={"base": 3, "model": "rollouts"})
    assert moved.status_code == 200
    assert opened() == []
    other = Path(__file__).parents[2] / "README.md"
    with other.open("rb"):  # it would have been seen
        assert opened() == [str(other)]


def test_a_crowd_that_asks_and_leaves_holds_nobody_up(server):
    address, _ = server
    end, moves, failures = time.monotonic() + 4, [], []

    def crowd(number):
        rng = random.Random(number)
        while time.monotonic() < end:
            body = rng.choice(
                [
                    {"base": 12, "moves": [], "model": "rollouts", "simulations": 4},
                    {"base": 12, "start": "x" * 400},
                    {"base": 3, "moves": ["a1"] * 2000},
                    {"base": 3, "text": "{" * 50_000},
                ]
            )
            try:
                path = rng.choice(["analyse", "game", "import"])
                response = httpx.post(f"{address}/api/{path}", json=body, timeout=rng.choice([0.01, 0.2, 5]))
                if response.status_code >= 500 and response.status_code != 503:
                    failures.append(response.text)
            except httpx.HTTPError:
                pass

    threads = [threading.Thread(target=crowd, args=(n,)) for n in range(6)]
    for thread in threads:
        thread.start()
    with httpx.Client(base_url=address, timeout=60, headers={"X-Lifeline-Page": "me"}) as client:
        while time.monotonic() < end:
            began = time.monotonic()
            response = client.post("/api/move", json={"base": 3, "model": "rollouts", "level": "beginner"})
            moves.append((response.status_code, time.monotonic() - began))
    for thread in threads:
        thread.join()
    assert failures == []
    assert {code for code, _ in moves} == {200}
    assert len(moves) >= 3
    assert max(seconds for _, seconds in moves) < 10
