"""A tournament's report: whole, self-contained, true to the rules, and safe whatever players are called."""

import base64
import hashlib
import io
import json
import re
import shutil
import subprocess
from html.parser import HTMLParser

import numpy as np
import pytest
from matplotlib.image import imread
from rich.console import Console

from lifeline import BatchEnv, Rules
from lifeline.errors import RecordError, RulesError
from lifeline.game_record import GameRecord, PlayerInfo, Result
from lifeline.notation import action_text
from lifeline.rules import Position
from training.ratings import Pair
from training.report import ratings_png, report_html, standings_json, standings_table
from training.report_games import GameSelection, game_data
from training.sprt import Sprt
from training.standings import standings

WON, LOST, SPLIT = ((True, True), (False, True)), ((True, False), (False, False)), ((True, True), (False, False))
EVIL = [
    "</script><b>bold</b><script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "<!-- <![CDATA[ &amp; '",
    "\u202eright to left [red]no markup[/red]",
    "lone \ud800 surrogate and \x00 nothing",
]
VOID = {"meta", "line", "circle", "rect"}


def random_game(rules, seed, names=("a", "b"), start=None, **more):
    """A game played at random by the kernels, its swap and komi taken half the time."""
    rng, env, moves = np.random.default_rng(seed), BatchEnv(rules, 1), []
    env.reset(positions=None if start is None else [start])
    while not env.terminated[0]:
        legal = np.flatnonzero(env.legal_action_mask[0])
        action = legal[-1] if legal[-1] >= rules.num_cells and rng.random() < 0.5 else rng.choice(legal)
        env.step(np.array([action]))
        moves.append(action_text(int(action), rules.board))
    players = tuple(PlayerInfo(name) for name in names)
    text, result = None if start is None else start.text(), Result(env.position(0).winner, "played out")
    return GameRecord(rules, tuple(moves), result, players, text, replay=False, **more)


def some_standings(names=("a", "b", "c"), sprt=None):
    pairs = [Pair(x, y, kind) for i, x in enumerate(names) for y in names[i + 1 :] for kind in (WON, WON, SPLIT, LOST)]
    state = None if sprt is None else sprt.state(10, 20, 30)
    return standings(pairs, names[-1], np.random.default_rng(0), 100.0, {names[0]: 3}, state)


def some_page(names=("a", "b", "c"), games=4, title="A tournament", facts=None, sprt=None, **more):
    played = [random_game(Rules(3), i, (names[i % 2], names[-1])) for i in range(games)]
    return report_html(title, Rules(3), facts or {"Seed": "7"}, some_standings(names, sprt), played, **more)


def data_of(page):
    return json.loads(re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.DOTALL)[1])


class Tree(HTMLParser):
    """The elements of a page, which must be closed in the order they were opened."""

    def __init__(self, page):
        super().__init__()
        self.open, self.elements, self.text = [], [], {}
        self.feed(page)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, text):
        self.text.setdefault(self.open[-1] if self.open else "", []).append(text)

    def all(self, tag):
        return [attributes for name, attributes in self.elements if name == tag]


# ------------------------------------------------------------------------------------------------------ the page


def test_the_page_is_well_formed_and_has_its_parts():
    tree = Tree(some_page(names=("a", "b"), sprt=Sprt(0, 50)))
    assert tree.text["h2"] == ["Ranking", "Sequential test", "Crosstable", "Games", "Settings"]
    assert tree.text["h1"] == ["A tournament"]
    assert tree.text["dt"] == ["Seed"]
    assert tree.text["dd"] == ["7"]
    assert "All 4 games." in "".join(tree.text["p"])
    assert [a["href"] for a in tree.all("a")] == ["#games=0,1", "#games=1,0"]


def test_the_page_asks_for_nothing_and_runs_no_script_but_its_own():
    page = some_page()
    tree = Tree(page)
    assert set(re.findall(r"https?://[^\s\"'`]*", page)) == {"http://www.w3.org/2000/svg"}
    assert "url(" not in page
    assert "@import" not in page
    assert not any("src" in attributes for _, attributes in tree.elements)
    assert {name for name, _ in tree.elements}.isdisjoint({"link", "iframe", "img", "object", "base", "form"})
    scripts = re.findall(r"<script>(.*?)</script>", page, re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(scripts[0].encode()).digest()).decode()
    assert len(scripts) == 1
    assert f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{digest}'" in page
    for name in ("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "Function("):
        assert name not in scripts[0]


def test_names_and_facts_are_text_and_nothing_else():
    names = EVIL
    page = some_page(names, games=8, title=EVIL[0], facts={EVIL[1]: EVIL[2], "seed": EVIL[0]})
    page.encode()  # a lone surrogate would not go into a file
    tree, plain = (
        Tree(page),
        Tree(some_page(["p", "q", "r", "s", "t"], games=8, title="x", facts={"f": "g", "seed": "h"})),
    )
    assert [name for name, _ in tree.elements] == [name for name, _ in plain.elements]
    keys = [sorted(attributes) for _, attributes in tree.elements]
    assert keys == [sorted(attributes) for _, attributes in plain.elements]
    shown = {name.replace("\u202e", "\ufffd").replace("\ud800", "\ufffd").replace("\x00", "\ufffd") for name in names}
    assert set(tree.text["bdi"]) == shown
    assert set(data_of(page)["players"]) == shown
    assert tree.text["h1"] == [EVIL[0]]
    assert tree.text["dd"] == [EVIL[2], EVIL[0]]
    assert page.count("</script>") == 2


def test_the_crosstable_links_count_players_as_the_data_does():
    found = some_standings(("a", "b", "c"))
    page = report_html("t", Rules(3), {}, found, [random_game(Rules(3), 0, ("stranger", "b"))])
    players = data_of(page)["players"]
    assert players[:3] == [p.name for p in found.players]
    assert players[3:] == ["stranger"]


def test_players_that_never_met_have_an_empty_cell():
    pairs = [Pair("hero", name, kind) for name in "abc" for kind in (WON, SPLIT, LOST)]
    page = report_html("t", Rules(3), {}, standings(pairs, "hero", np.random.default_rng(0)), [])
    assert len(re.findall(r'<td class="none">', page)) == 6
    assert len(re.findall(r'<td class="self"', page)) == 4
    assert len(re.findall(r'<a href="#games=', page)) == 6
    assert "All" not in page.split("<h2>Games</h2>")[1].split("<noscript>")[0]


def test_games_beyond_the_limit_are_left_out_and_the_page_says_so():
    page = some_page(games=30, max_games=10)
    assert len(data_of(page)["games"]) == 10
    assert "10 of 30 games: the first of each two players." in page
    assert "30 games</p></header>" in page
    assert "All 30 games." in some_page(games=30, max_games=30)


@pytest.mark.parametrize(
    ("sizes", "limit", "kept"),
    [([5, 5], 6, [3, 3]), ([1, 9], 6, [1, 5]), ([2, 30, 40], 22, [2, 10, 10]), ([3], 9, [3])],
)
def test_each_two_players_have_their_share_of_the_games_shown(sizes, limit, kept):
    game = random_game(Rules(3), 0)
    players = [i for i, size in enumerate(sizes) for _ in range(size)]
    records = [
        GameRecord(game.rules, game.moves, game.result, (PlayerInfo(f"p{i}"), PlayerInfo("x")), replay=False)
        for i in players
    ]
    chosen = GameSelection(iter(records), limit)
    assert chosen.total == len(records)
    numbers = [n for n, _ in chosen.games]
    assert numbers == sorted(numbers)
    assert [sum(players[n - 1] == i for n in numbers) for i in range(len(sizes))] == kept
    # of each, the first ones
    assert all(n - 1 - players.index(players[n - 1]) < kept[players[n - 1]] for n in numbers)


def test_a_game_of_other_rules_is_refused_by_its_number():
    games = [random_game(Rules(3), 0), random_game(Rules(4), 0)]
    with pytest.raises(RulesError, match="game 2 is of base 4, strong pie, the report of base 3, strong pie"):
        report_html("t", Rules(3), {}, some_standings(), games)


def test_a_game_with_an_illegal_move_is_refused_by_its_number_and_ply():
    bad = GameRecord(Rules(3), ("a1", "a2"), replay=False)
    with pytest.raises(RecordError, match="game 1, ply 2: illegal move"):
        report_html("t", Rules(3), {}, some_standings(), [bad])


# ------------------------------------------------------------------------------------ games as the page plays them


def code(text, i):
    return ((ord(text[i]) | 32) - 97) * 26 + ((ord(text[i + 1]) | 32) - 97)


def replayed(game, ply, cells):
    """What `replay` in report.js does: stones, whether sides are swapped, and what the last ply removed."""
    stones, swapped, removed = list(game.get("s", "." * cells)), bool(game.get("u")), []
    for i in range(1, ply + 1):
        action = code(game["m"], 2 * i - 2)
        if action < cells:
            stones[action] = "w" if game["m"][2 * i - 2] < "a" else "b"
        if action == cells:
            swapped = not swapped
        removed, gone = [], game["x"].get(str(i), "")
        for k in range(0, len(gone), 2):
            cell = code(gone, k)
            removed.append((cell, stones[cell]))
            stones[cell] = "."
    return tuple(stones), swapped, removed


def check_game(game, record):
    positions = list(record.positions())
    rules = record.rules
    removals = 0
    assert len(game["m"]) == 2 * len(record.moves)
    for ply, position in enumerate(positions):
        stones, swapped, removed = replayed(game, ply, rules.num_cells)
        assert stones == position.stones
        assert swapped == position.swapped
        assert all(stone in "bw" for _, stone in removed)
        removals += len(removed)
        if ply < len(record.moves):
            assert action_text(code(game["m"], 2 * ply), rules.board) == record.moves[ply]
            colour = "w" if game["m"][2 * ply] < "a" else "b"
            assert colour == position.colour
            # the page's `owner`: which seat has that colour
            assert int((colour == "w") != swapped) == position.to_play
    return removals


@pytest.mark.parametrize(
    "rules",
    [
        Rules(3),
        Rules(5),
        Rules(4, "weak_pie", adjacent_setup="forbidden"),
        Rules(4, "komi_pie", komi=5),
        pytest.param(Rules(12), marks=pytest.mark.slow),
    ],
)
def test_the_page_plays_games_as_the_rules_do(rules):
    many = 1 if rules.base == 12 else 6
    records = [random_game(rules, seed, extra={"pair": seed, "opening_plies": 2}) for seed in range(many)]
    page = report_html("t", rules, {}, some_standings(("a", "b")), records)
    data = data_of(page)
    assert data["moves"] == [action_text(a, rules.board) for a in range(rules.num_actions)]
    assert sum(check_game(game, record) for game, record in zip(data["games"], records, strict=True)) > 0
    for game, record in zip(data["games"], records, strict=True):
        assert [data["players"][i] for i in game["p"]] == ["a", "b"]
        assert (game["w"], data["reasons"][game["r"]]) == (record.result.winner, "played out")
        assert (game["k"], game["o"]) == (record.extra["pair"], 2)
    if rules.opening != "komi_pie":
        assert {"swap" in record.moves for record in records} == {True, False} or many == 1


def test_games_from_a_position_begin_there():
    start = Position.start(Rules(4)).play("c4,e2").play("swap").play("d4,b3")
    record = random_game(Rules(4), 1, start=start)
    game = json.loads(json.dumps(game_data(1, record, ["a", "b"], ["played out"])))
    assert game["s"] == "".join(start.stones)
    assert game["u"]
    assert check_game(game, record) > 0


def test_games_without_a_result_or_with_strange_extras_are_shown_all_the_same():
    record = GameRecord(Rules(3), ("a1", "b3"), extra={"pair": "one", "opening_plies": 99})
    game = game_data(5, record, ["?"], ["played out"])
    assert (game["n"], game["w"], game["r"], game["o"]) == (5, None, None, 0)
    assert "k" not in game
    forfeit = GameRecord(Rules(3), ("a1",), Result(1, "time"))
    assert game_data(1, forfeit, ["?"], ["played out", "time"])["r"] == 1


def test_2_000_games_make_a_page_of_less_than_a_megabyte():
    games = [random_game(Rules(5), seed) for seed in range(3)]
    empty = len(report_html("t", Rules(5), {}, some_standings(), []))
    each = (len(report_html("t", Rules(5), {}, some_standings(), games)) - empty) / 3
    assert empty + 2000 * each < 1_000_000


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("chromium") is None, reason="needs a browser")
def test_a_browser_opens_a_game_at_a_ply(tmp_path):
    record = random_game(Rules(4), 3, EVIL[:2])
    ply = len(record.moves) - 1
    page = tmp_path / "report.html"
    page.write_text(report_html("t", Rules(4), {}, some_standings(EVIL[:2]), [record]), encoding="utf-8")
    options = ["--headless", "--no-sandbox", "--disable-gpu", "--virtual-time-budget=2000", "--dump-dom"]
    address = f"{page.as_uri()}#game=1&ply={ply}"
    dom = subprocess.run(["chromium", *options, address], capture_output=True, timeout=120, check=True).stdout.decode()
    position = list(record.positions())[ply]
    assert len(re.findall(r'class="stone b"', dom)) == position.stones.count("b")
    assert len(re.findall(r'class="stone w"', dom)) == position.stones.count("w")
    assert f"Ply {ply} of {len(record.moves)}: " in dom
    assert "<b>bold" not in dom
    assert "<img" not in dom


# ------------------------------------------------------------------------------------------- console, JSON, picture


def printed(found, width=80):
    console = Console(width=width, file=io.StringIO(), color_system=None)
    console.print(standings_table(found))
    return console.file.getvalue()


def test_the_console_shows_ranking_crosstable_first_seat_and_test():
    text = printed(some_standings(("a", "b", "c")))
    assert "95 % interval" in text
    assert "fixed" in text
    assert "62.5 %" in text
    assert "2-1-1" in text
    assert "1-1-2" in text
    assert "advantage of the first seat" in text
    assert "forfeits" in text
    two = printed(some_standings(("old-model", "b"), Sprt(0, 50)))
    assert "old-model against b: 5-3, 62.5 %, +79 Elo" in two
    assert "of its pairs 2 won, 1 split, 1 lost" in " ".join(two.split())
    assert "sequential test of old-model, +50 against 0 Elo: elo1 accepted after 60 pairs" in " ".join(two.split())


def test_names_are_no_markup_in_the_console():
    text = printed(some_standings(["[red]x[/red]", "[/]", "y"]), width=120)
    assert "[red]x[/red]" in text
    assert "[/]" in text


def test_many_players_fit_into_a_terminal():
    text = printed(some_standings([f"iteration-{i:04d}" for i in range(12)]), width=100)
    assert max(map(len, text.splitlines())) <= 100
    assert "iteration-0011" in text


def test_standings_are_json_without_anything_infinite():
    pairs = [Pair("bot", "random", WON)] * 100
    found = standings(pairs, "random", np.random.default_rng(0), sprt=Sprt(0, 50).state(0, 0, 100))
    values = json.loads(json.dumps(standings_json(found), allow_nan=False))
    assert [(p["rank"], p["name"], p["wins"], p["is_anchor"]) for p in values["players"]] == [
        (1, "bot", 200, False),
        (2, "random", 0, True),
    ]
    assert values["encounters"][0]["pairs_won"] == 100
    assert values["sprt"]["verdict"] == "elo1 accepted"
    assert values["sprt_first"] == "bot"
    assert values["first_seat_low"] < values["first_seat"] < values["first_seat_high"]


def test_the_picture_grows_with_the_players_and_takes_any_name():
    def height(names):
        return imread(io.BytesIO(ratings_png(some_standings(names)))).shape[:2]

    assert height(["a", "b"]) == (198, 900)
    assert height(["$\\frac", "x" * 200, "c"]) == (232, 900)
