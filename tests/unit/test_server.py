"""The server's answers: what is right in them, and what is refused and how."""

import json
import socket
import threading
import time

import httpx
import pytest

from lifeline import Position, Rules
from lifeline.play.engine import Engine
from lifeline.play.server_guard import Allowance
from lifeline.play.server_pool import Limits
from lifeline.play.server_rollouts import RolloutEvaluator
from lifeline.record_json import parse_record
from web_server import serving

CAPTURE = "3/2wb/4w/w1bw/b1b b 6 0 - 0"


@pytest.fixture(scope="module")
def client():
    with serving() as (address, _), httpx.Client(base_url=address, timeout=60) as client:
        yield client


def ask(client, path, **query):
    response = client.post(path, json=query)
    assert response.status_code == 200, response.text
    return response.json()


def refused(client, path, **query):
    response = client.post(path, json=query)
    assert response.status_code == 400, response.text
    [(key, text)] = response.json().items()
    assert key == "error"
    assert "\n" not in text
    return text


def test_what_is_offered_is_told(client):
    info = client.get("/api/info").json()
    assert [bot["id"] for bot in info["bots"]] == ["rollouts"]
    assert not info["bots"][0]["is_model"]
    assert info["levels"][0] == "beginner"
    assert info["bases"] == list(range(3, 13))
    assert info["openings"] == ["strong_pie", "weak_pie", "komi_pie"]


def test_the_board_has_the_labels_and_places_of_the_pictures(client):
    board = client.get("/api/board/3").json()
    assert [cell["label"] for cell in board["cells"]] == list(Rules(3).board.labels)
    centre = board["cells"][9]
    assert (centre["label"], centre["row"]) == ("c3", 2)
    assert {text["text"] for text in board["texts"]} == set("abcde123")
    assert client.get("/api/board/13").status_code == 404
    assert client.get("/api/board/x").status_code == 404


def test_a_position_is_told_with_all_that_the_page_draws(client):
    told = ask(client, "/api/game", base=5, moves=["c4,g3", "swap", "d6", "f2"])
    assert [m["move"] for m in told["moves"]] == ["c4", "g3", "swap", "d6", "f2"]
    assert [m["seat"] for m in told["moves"]] == [0, 0, 1, 0, 0]
    assert [m["colour"] for m in told["moves"]] == ["black", "black", "white", "white", "white"]
    assert [(m["turn"], m["stone"]) for m in told["moves"]] == [(1, 1), (1, 2), (2, 1), (2, 1), (2, 2)]
    position = Position.start(Rules(5)).play("c4,g3").play("swap").play("d6,f2")
    assert told["position"] == position.text()
    assert told["stones"] == "".join(position.stones)
    assert told["to_play"] == {"seat": 1, "colour": "black"}
    assert told["black"] == 1
    assert told["last"] == ["d6", "f2"]
    assert sorted(told["legal"]) == sorted(m for m in position.legal_moves() if m != "swap")
    assert not told["may_swap"]
    assert told["result"] is None


def test_an_earlier_position_of_the_game_can_be_meant(client):
    told = ask(client, "/api/game", base=5, moves=["c4", "g3", "d6"], at=2)
    assert len(told["moves"]) == 3
    assert told["may_swap"]
    assert told["last"] == ["c4", "g3"]
    assert (told["placed"], told["stones_in_turn"]) == (0, 2)
    assert "no position after 4" in refused(client, "/api/game", base=5, moves=["c4", "g3", "d6"], at=4)


def test_what_a_stone_takes_is_told_for_each_cell(client):
    told = ask(client, "/api/game", base=3, start=CAPTURE)
    assert told["effects"]["c4"] == {"captured": ["c5", "b4"], "lost": []}
    position = Position.parse(CAPTURE, Rules(3))
    for label in told["legal"]:
        after = position.play(label)
        gone = {c for c, s in enumerate(position.stones) if s != "." and after.stones[c] == "."}
        effect = told["effects"].get(label, {"captured": [], "lost": []})
        own = {position.rules.board.cell(c) for c in effect["lost"] if c != label}
        assert gone == {position.rules.board.cell(c) for c in effect["captured"]} | own
    after = ask(client, "/api/game", base=3, start=CAPTURE, moves=["c4"])
    assert after["moves"][0]["removed"] == 2


def test_komi_and_the_end_are_told(client):
    game = {"base": 3, "opening": "komi_pie", "komi": 2, "moves": ["a1", "e3", "c1", "c5", "b1"]}
    told = ask(client, "/api/game", **game)
    assert told["may_spend"]
    assert told["komi"] == 2
    assert ask(client, "/api/game", **game | {"moves": [*game["moves"], "komi"]})["komi"] == 1
    over = ask(client, "/api/game", base=3, start="1w1/1w2/5/1w2/3 b 4 0 - 0")
    assert over["result"] == {"winner": 1, "colour": "white"}
    assert over["legal"] == []


def test_a_bot_moves_as_the_engine_does_and_analyses_alike(client):
    query = {"base": 3, "moves": ["a1", "e3"], "model": "rollouts", "seed": 5}
    rules = Rules(3)
    position = Position.start(rules).play("a1,e3")
    expected = Engine(rules, RolloutEvaluator(rules)).analyse(position, 5, 8)
    analysis = ask(client, "/api/analyse", **query)
    texts = [*rules.board.labels, "swap", "komi"]
    assert analysis["best"] == texts[expected.best]
    assert analysis["win"] == pytest.approx((1 + expected.value) / 2, abs=1e-4)
    assert analysis["first"] == pytest.approx(1 - analysis["win"], abs=2e-4)
    assert analysis["moves"][0]["line"][0]["move"] == analysis["best"]
    assert sum(analysis["policy"].values()) == pytest.approx(1, abs=0.01)
    assert ask(client, "/api/move", **query)["move"] == analysis["best"]
    weak = ask(client, "/api/move", **query, level="beginner")
    assert weak["move"] in [*position.legal_moves()]


def test_a_whole_game_is_judged_at_once(client):
    game = {"base": 3, "start": "1w1/4/5/1w2/3 w 3 0 - 0", "moves": ["d2"]}
    told = ask(client, "/api/values", **game, model="rollouts", plies=[0, 1])
    assert told["first"][1] == 0.0  # White, who is seat 1, has won
    assert 0 <= told["first"][0] <= 1


def test_a_bot_names_a_komi_and_takes_a_side(client):
    komi = ask(client, "/api/komi", base=3, opening="komi_pie", model="rollouts")
    assert 0 <= komi["komi"] <= 9
    side = ask(client, "/api/side", base=3, opening="komi_pie", komi=30, model="rollouts")
    assert side["colour"] == ("black" if side["black"] >= 0.5 else "white")
    assert "komi_pie" in refused(client, "/api/komi", base=3, model="rollouts")


def test_records_go_out_and_come_back(client):
    game = {"base": 4, "moves": ["a1", "d4", "swap", "b2", "e5"]}
    texts = ask(client, "/api/export", **game, players=["person", "bot"], resigned=1)
    record = parse_record(texts["record"])
    assert record.moves == tuple(game["moves"])
    assert (record.result.winner, record.result.reason) == (0, "resigned")
    assert [player.name for player in record.players] == ["person", "bot"]
    assert texts["moves"] == "1. a1,d4 2. swap b2,e5"
    for text in (texts["record"], json.dumps(json.loads(texts["record"]), indent=2), texts["moves"]):
        back = ask(client, "/api/import", base=4, text=text)
        assert back["moves"] == game["moves"]
        assert back["rules"]["base"] == 4
    assert ask(client, "/api/import", base=4, text=texts["record"])["result"]["reason"] == "resigned"


def test_a_position_text_names_its_board_itself(client):
    back = ask(client, "/api/import", base=7, text=CAPTURE)
    assert (back["rules"]["base"], back["start"], back["moves"]) == (3, CAPTURE, [])


def test_one_of_several_records_can_be_had(client):
    texts = [
        ask(client, "/api/export", base=3, moves=moves, players=["a", "b"])["record"] for moves in (["a1"], ["b2"])
    ]
    several = "\n".join(texts)
    assert ask(client, "/api/import", base=3, text=several)["records"] == 2
    assert ask(client, "/api/import", base=3, text=several, number=2)["moves"] == ["b2"]
    assert "no record 3" in refused(client, "/api/import", base=3, text=several, number=3)


BAD = {
    "no JSON": ("/api/game", "{", "JSON"),
    "not an object": ("/api/game", "[]", "object"),
    "no base": ("/api/game", "{}", "base"),
    "a text for a number": ("/api/game", '{"base": "3"}', "base"),
    "a truth for a number": ("/api/game", '{"base": true}', "base"),
    "a number too high": ("/api/game", '{"base": 13}', "base"),
    "a huge number": ("/api/game", '{"base": 3, "at": 1' + "0" * 300 + "}", "at"),
    "an unknown field": ("/api/game", '{"base": 3, "path": "/etc/passwd"}', "path"),
    "no such opening": ("/api/game", '{"base": 3, "opening": "x"}', "opening"),
    "komi where there is none": ("/api/game", '{"base": 3, "komi": 3}', "komi"),
    "no such cell": ("/api/game", '{"base": 3, "moves": ["z9"]}', "ply 1"),
    "an illegal move": ("/api/game", '{"base": 3, "moves": ["a1", "a1"]}', "ply 2: illegal move"),
    "a move after the end": (
        "/api/game",
        '{"base": 3, "start": "1w1/1w2/5/1w2/3 b 4 0 - 0", "moves": ["a1"]}',
        "the game is over",
    ),
    "a position that cannot be": ("/api/game", '{"base": 3, "start": "b2/4/5/4/3 b 6 0 - 0"}', "dead"),
    "nested deeply": ("/api/game", '{"base": ' + "[" * 5000 + "]" * 5000 + "}", "JSON"),
    "an unknown bot": ("/api/move", '{"base": 3, "model": "../../x"}', "no bot"),
    "an unknown level": ("/api/move", '{"base": 3, "model": "rollouts", "level": "god"}', "level"),
    "a game that is over": (
        "/api/move",
        '{"base": 3, "model": "rollouts", "start": "1w1/1w2/5/1w2/3 b 4 0 - 0"}',
        "the game is over",
    ),
    "too many simulations": ("/api/analyse", '{"base": 3, "model": "rollouts", "simulations": 100000}', "simulations"),
    "one simulation": ("/api/analyse", '{"base": 3, "model": "rollouts", "simulations": 1}', "simulations"),
    "plies there are not": ("/api/values", '{"base": 3, "model": "rollouts", "plies": [1]}', "no position after 1"),
    "too many plies": (
        "/api/values",
        json.dumps({"base": 3, "model": "rollouts", "plies": [0] * 33}),
        "plies",
    ),
    "a record of another kind": ("/api/import", '{"base": 3, "text": "{\\"a\\": 1}"}', "version"),
    "no move list": ("/api/import", '{"base": 3, "text": "hello"}', "ply 1"),
    "no text at all": ("/api/import", '{"base": 3, "text": "{"}', "JSON"),
    "no name": ("/api/export", '{"base": 3, "players": ["", "b"]}', "players"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_questions_are_answered_with_one_line(client, name):
    path, body, told = BAD[name]
    response = client.post(path, content=body, headers={"Content-Type": "application/json"})
    assert response.status_code == 400
    assert told.lower() in response.json()["error"].lower()
    assert "\n" not in response.json()["error"]


def test_other_methods_paths_and_kinds_are_refused_as_json(client):
    assert client.get("/api/game").status_code == 405
    assert client.post("/").status_code == 405
    for path in (
        "/etc/passwd",
        "/web/../server.py",
        "/web/%2e%2e/server.py",
        "/web/",
        "/web/index.html",
        "/x//",
        "/%00",
    ):
        response = client.get(path)
        assert response.status_code == 404
        assert list(response.json()) == ["error"]
    response = client.post("/api/game", content='{"base": 3}', headers={"Content-Type": "text/plain"})
    assert response.status_code == 415


def test_pages_are_whole_and_kept_by_browsers(client):
    for path, kind in {"/": "text/html", "/rules": "text/html", "/web/main.js": "text/javascript"}.items():
        page = client.get(path)
        assert page.status_code == 200
        assert page.headers["content-type"].startswith(kind)
        assert client.get(path, headers={"If-None-Match": page.headers["etag"]}).status_code == 304


def test_browsers_are_told_to_run_nothing_but_the_pages_own(client):
    for response in (client.get("/"), client.get("/nowhere"), client.post("/api/game", json={})):
        policy = response.headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        assert "frame-ancestors 'none'" in policy
        assert response.headers["x-content-type-options"] == "nosniff"
        assert response.headers["x-frame-options"] == "DENY"
        assert not any(name.startswith("access-control") for name in response.headers)
        assert "server" not in response.headers


def test_pages_of_other_names_that_lead_here_are_refused(client):
    for host in ("evil.example", "evil.example:80", "127.0.0.1.evil.example", "[::2]:80", ""):
        assert client.get("/api/info", headers={"Host": host}).status_code == 421
    for host in ("localhost", "LOCALHOST:99", "127.0.0.1", "[::1]:8000"):
        assert client.get("/api/info", headers={"Host": host}).status_code == 200


def test_long_bodies_are_refused_unread_and_read(client):
    assert client.post("/api/game", content=b" " * 70_000).status_code == 413

    def pieces():
        for _ in range(80):
            yield b" " * 1000

    assert client.post("/api/game", content=pieces()).status_code == 413
    assert client.post("/api/import", content=b" " * 2_600_000).status_code == 413


def test_whoever_asks_too_fast_is_told_to_wait_and_others_are_not():
    with serving(allowance=Allowance(page_rate=2, burst=2)) as (address, _), httpx.Client(base_url=address) as client:
        fast, slow = {"X-Lifeline-Page": "fast"}, {"X-Lifeline-Page": "slow"}
        answers = [client.get("/api/info", headers=fast) for _ in range(8)]
        assert [a.status_code for a in answers].count(429) >= 3
        assert int(answers[-1].headers["retry-after"]) >= 1
        assert list(answers[-1].json()) == ["error"]
        assert client.get("/api/info", headers=slow).status_code == 200


def test_pages_of_one_address_have_an_end_together():
    allowance = Allowance(page_rate=100, address_rate=3, burst=2)
    with serving(allowance=allowance) as (address, _), httpx.Client(base_url=address) as client:
        codes = [client.get("/api/info", headers={"X-Lifeline-Page": str(n)}).status_code for n in range(12)]
        assert codes.count(429) >= 4


def test_more_questions_than_may_wait_are_answered_503():
    limits = Limits(waiting=2, of_page=2, seconds=60)
    with serving(limits=limits, simulations=100) as (address, _):
        codes = []

        def one():
            response = httpx.post(f"{address}/api/analyse", json={"base": 5, "model": "rollouts"}, timeout=60)
            codes.append((response.status_code, response.headers.get("retry-after")))

        threads = [threading.Thread(target=one) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert {code for code, _ in codes} == {200, 503}
        assert all(wait for code, wait in codes if code == 503)


def test_a_body_that_does_not_arrive_is_given_up():
    with serving(allowance=Allowance(body_seconds=0.3)) as (address, _):
        host, port = address.removeprefix("http://").split(":")
        with socket.create_connection((host, int(port)), timeout=10) as connection:
            head = f"POST /api/game HTTP/1.1\r\nHost: {host}\r\nContent-Length: 20\r\n\r\n{{"
            connection.sendall(head.encode())
            assert connection.recv(100).startswith(b"HTTP/1.1 408")


def test_what_nobody_waits_for_any_more_is_not_thought_about():
    with serving(simulations=2000) as (address, server), httpx.Client(base_url=address, timeout=60) as client:
        slow = {"base": 6, "model": "rollouts", "simulations": 2000}
        for seed in range(4):
            with pytest.raises(httpx.ReadTimeout):
                httpx.post(f"{address}/api/analyse", json={**slow, "seed": seed}, timeout=0.15)
        end = time.monotonic() + 30
        while server.waiting and time.monotonic() < end:
            time.sleep(0.02)
        began = time.monotonic()
        assert ask(client, "/api/move", base=3, model="rollouts", level="beginner")
        assert time.monotonic() - began < 20
