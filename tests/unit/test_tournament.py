"""Tournaments as values and as folders: every game once, the same game every time, nothing lost."""

import json

import numpy as np
import pytest
import torch

from gtp_talk import ask, engine
from lifeline import ConfigError, Rules
from lifeline.errors import ForfeitError, LifelineError, NotationError, RecordError
from lifeline.notation import action_text
from lifeline.play.book import Book, make_book, read_book, rollout_judge, shipped_book, solver_judge
from lifeline.play.openings import Opening
from lifeline.play.players import Budget, RandomPlayer, RolloutPlayer, choose_move, make_player
from lifeline.records import read_records
from training.arena import paired, pairs_of, play_games
from training.config import NetworkConfig
from training.entrants import parse_entrants
from training.export import export_onnx
from training.network import Network
from training.ratings import Pair
from training.tournament import MatchTable, Ticket, Tournament, opening_set
from training.tournament_run import report
from training.tournament_store import create, locked, resume, units

RULES = Rules(3)
PLAYERS = ("random", "rollout:5", "other=rollout:5")


def tournament(pairs=3, players=PLAYERS, **changes):
    openings, source = opening_set(RULES, pairs, None, 0)
    settings = {"gauntlet": False, "seed": 1, "openings_from": source} | changes
    return Tournament(RULES, tuple(parse_entrants(players, Budget())), openings[:50], pairs, **settings)


def test_all_meet_all_or_the_first_meets_all():
    assert tournament().pairings == [(0, 1), (0, 2), (1, 2)]
    assert tournament().games == 18
    assert tournament(gauntlet=True).pairings == [(0, 1), (0, 2)]


def test_a_game_is_the_same_whenever_and_wherever_it_is_played():
    t = tournament()
    tickets = [Ticket(pair, 0, 1, game) for pair in range(3) for game in (0, 1)]
    together = MatchTable(t).play(tickets)
    alone = [MatchTable(t, threads=2).play([ticket])[0] for ticket in reversed(tickets)]
    assert [r.moves for r in together] == [r.moves for r in reversed(alone)]
    assert len({r.moves for r in together}) == 6


def test_a_pair_is_one_opening_with_seats_exchanged():
    t = tournament()
    first, second = (t.fixture(Ticket(2, 0, 1, game)) for game in (0, 1))
    assert first.opening == second.opening
    assert (first.first_seat, second.first_seat) == (0, 1)
    assert first.seed != second.seed
    records = MatchTable(t).play([Ticket(2, 0, 1, 0), Ticket(2, 0, 1, 1)])
    assert [p.name for p in records[0].players] == ["random", "rollout:5"]
    assert [p.name for p in records[1].players] == ["rollout:5", "random"]
    assert records[0].moves[:5] == records[1].moves[:5]


def test_records_tell_of_game_players_and_opening(tmp_path):
    store = create(tmp_path / "t", tournament())
    store.add(MatchTable(store.tournament).play([Ticket(0, 0, 1, 0)]))
    (record,) = read_records(store.folder / "games.jsonl")  # replayed by the rules
    assert record.id == "0-1-0-0"
    assert record.extra == {"pair": 0, "opening_plies": 5}
    assert record.players[1].info == {"player": "rollout:5"}
    assert record.seed is not None


def test_what_has_been_played_is_not_played_again(tmp_path):
    store = create(tmp_path / "t", tournament())
    table = MatchTable(store.tournament)
    bundles = units(store, workers=2, batch=4)
    assert sum(map(len, bundles)) == 18
    for bundle in bundles[:2]:
        store.add(table.play(bundle))
    again = resume(store.folder)
    assert again.done == store.done
    assert again.left() == store.left()
    for bundle in units(again, workers=1, batch=100):
        again.add(table.play(bundle))
    assert again.left() == []
    assert len(again.done) == 18
    assert len({r.id for r in again.records()}) == 18
    assert len(again.pairs()) == 9


def test_half_a_pair_counts_for_nothing_until_it_is_whole(tmp_path):
    store = create(tmp_path / "t", tournament())
    table = MatchTable(store.tournament)
    store.add(table.play([Ticket(0, 0, 1, 1)]))
    assert store.pairs() == []
    assert store.scores(0, 1) == []
    assert Ticket(0, 0, 1, 0) in store.left()
    store.add(table.play([Ticket(0, 0, 1, 0)]))
    assert len(store.pairs()) == 1
    assert store.scores(0, 1) == [sum(won for _, won in store.pairs()[0].results) / 2]


def test_scores_stop_at_the_first_pair_that_is_missing(tmp_path):
    store = create(tmp_path / "t", tournament())
    table = MatchTable(store.tournament)
    for pair in (0, 2):
        store.add(table.play([Ticket(pair, 0, 1, 0), Ticket(pair, 0, 1, 1)]))
    assert len(store.scores(0, 1)) == 1


def test_a_line_cut_off_by_a_kill_costs_that_game_alone(tmp_path):
    store = create(tmp_path / "t", tournament())
    table = MatchTable(store.tournament)
    store.add(table.play([Ticket(0, 0, 1, 0), Ticket(0, 0, 1, 1)]))
    path = store.folder / "games.jsonl"
    whole = path.read_bytes()
    for cut in (1, 30, len(whole.splitlines()[1]) - 5):
        path.write_bytes(whole[:-cut])
        again = resume(store.folder)
        missing = {Ticket(0, 0, 1, 1)} if cut > 1 else set()
        assert set(store.done) - set(again.done) == missing
        again.add(table.play([Ticket(1, 0, 1, 0)]))
        assert len(list(read_records(path))) == len(again.done)


def test_damage_in_the_middle_is_told(tmp_path):
    store = create(tmp_path / "t", tournament())
    store.add(MatchTable(store.tournament).play([Ticket(0, 0, 1, 0), Ticket(0, 0, 1, 1)]))
    path = store.folder / "games.jsonl"
    path.write_bytes(b"x" + path.read_bytes())
    with pytest.raises(RecordError, match=r"games\.jsonl: line 1"):
        resume(store.folder)
    path.write_bytes(path.read_bytes()[1:] + path.read_bytes()[1:])
    with pytest.raises(RecordError, match="twice"):
        resume(store.folder)


def test_a_folder_holds_one_tournament(tmp_path):
    store = create(tmp_path / "t", tournament())
    assert create(tmp_path / "t", tournament()).tournament == store.tournament
    store.add(MatchTable(store.tournament).play([Ticket(0, 0, 1, 0)]))
    with pytest.raises(ConfigError, match="6 games for each two players; for more: --resume"):
        create(tmp_path / "t", tournament(pairs=4))
    with pytest.raises(ConfigError, match="other seed"):
        create(tmp_path / "t", tournament(seed=2))
    with pytest.raises(ConfigError, match="other players"):
        create(tmp_path / "t", tournament(players=("random", "rollout:6", "rollout:5")))
    (tmp_path / "u").mkdir()
    (tmp_path / "u" / "mine").write_text("")
    with pytest.raises(ConfigError, match="in use"):
        create(tmp_path / "u", tournament())
    with pytest.raises(ConfigError, match="holds no tournament"):
        resume(tmp_path / "u")


def test_more_games_can_be_asked_for_later_but_not_fewer(tmp_path):
    store = create(tmp_path / "t", tournament(pairs=2))
    before = [store.tournament.fixture(t) for t in store.left()]
    more = resume(store.folder, pairs=4)
    assert [more.tournament.fixture(t) for t in more.left()][: len(before)] == before
    assert resume(store.folder).tournament.pairs == 4
    with pytest.raises(ConfigError, match="8 games"):
        resume(store.folder, pairs=1)


@pytest.mark.parametrize("damage", ["{", "[]", '{"format": 1}', '{"format": 99}'])
def test_damaged_settings_are_told_in_one_line(tmp_path, damage):
    store = create(tmp_path / "t", tournament())
    (store.folder / "tournament.json").write_text(damage)
    with pytest.raises(ConfigError, match=r"tournament\.json"):
        resume(store.folder)


def test_two_processes_do_not_play_the_same_tournament(tmp_path):
    with (
        locked(tmp_path / "t", make=True),
        pytest.raises(ConfigError, match="another process"),
        locked(tmp_path / "t", make=True),
    ):
        pass
    create(tmp_path / "t", tournament())
    with locked(tmp_path / "t", make=False):
        pass


def test_what_is_no_tournament_is_left_as_it_is(tmp_path):
    for name in ("mine", "players"):
        (tmp_path / name / name).mkdir(parents=True)
        with pytest.raises(ConfigError, match="in use"), locked(tmp_path / name, make=True):
            pass
        with pytest.raises(ConfigError, match="holds no tournament"), locked(tmp_path / name, make=False):
            pass
        assert [p.name for p in (tmp_path / name).iterdir()] == [name]
    with pytest.raises(ConfigError, match="holds no tournament"), locked(tmp_path / "nowhere", make=False):
        pass
    assert not (tmp_path / "nowhere").exists()


@pytest.mark.parametrize("left", ["tournament", "players", "nothing"])
def test_a_folder_of_a_failed_start_can_be_used_again(tmp_path, left):
    folder = tmp_path / "t"
    with locked(folder, make=True):
        if left == "tournament":
            create(folder, tournament(players=("random", "gtp:/nowhere/program")))
        elif left == "players":  # killed before it was whole
            (folder / "players").mkdir()
            (folder / "players" / "0.onnx").write_bytes(b"cut off")
    with locked(folder, make=True):
        create(folder, tournament())
    assert resume(folder).tournament == tournament()
    assert list((folder / "players").iterdir()) == []


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"openings": []}, "no openings"),
        ({"openings": [5]}, "damaged"),
        ({"players": 5}, "damaged"),
        ({"rules": {"base": 99}}, "base must be"),
    ],
)
def test_settings_changed_by_hand_are_told_in_one_line(tmp_path, change, says):
    store = create(tmp_path / "t", tournament())
    path = store.folder / "tournament.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | change))
    with pytest.raises(ConfigError, match=says):
        resume(store.folder)


def test_a_missing_model_is_named(tmp_path):
    model = export_onnx(tiny := NetworkConfig(blocks=1, channels=8), Network(tiny).state_dict())
    (tmp_path / "m.onnx").write_bytes(model)
    store = create(tmp_path / "t", tournament(players=(str(tmp_path / "m.onnx"), "random")))
    (store.folder / "players" / "0.onnx").unlink()
    with pytest.raises(ConfigError, match=r"0\.onnx cannot be read: No such file"):
        resume(store.folder)


def test_games_of_another_tournament_are_refused(tmp_path):
    store = create(tmp_path / "t", tournament())
    store.add(MatchTable(store.tournament).play([Ticket(0, 1, 2, 0)]))
    path = store.folder / "tournament.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"gauntlet": True}))
    with pytest.raises(RecordError, match="another tournament: id '1-2-0-0'"):
        resume(store.folder)


def test_a_tournament_stopped_before_its_anchor_has_played_is_reported(tmp_path):
    store = create(tmp_path / "t", tournament())
    store.add(MatchTable(store.tournament).play([Ticket(0, 1, 2, 0), Ticket(0, 1, 2, 1)]))
    assert report(store, "random", 100.0, None).anchor == "rollout:5"
    (store.folder / "report.html").unlink()
    (store.folder / "report.html").mkdir()
    with pytest.raises(LifelineError, match=r"report\.html: cannot be written: Is a directory"):
        report(store, "random", 100.0, None)


def test_models_that_meet_again_from_the_same_opening_say_nothing_new(tmp_path):
    model = export_onnx(tiny := NetworkConfig(blocks=1, channels=8), Network(tiny).state_dict())
    (tmp_path / "m.onnx").write_bytes(model)
    players = ("random", f"a={tmp_path / 'm.onnx'}@0", f"b={tmp_path / 'm.onnx'}@2", f"c={tmp_path / 'm.onnx'}@1s")
    assert tournament(pairs=50, players=players).repeated_pairs == 0
    assert tournament(pairs=53, players=players).repeated_pairs == 3
    t = tournament(pairs=53, players=players)
    records = MatchTable(t).play([Ticket(pair, 1, 2, 0) for pair in (2, 52)])
    assert records[0].moves == records[1].moves


class Breaks:
    """Plays a while, then fails in a way of its own."""

    name = "breaks"
    batched = False

    def __init__(self, reason):
        self.reason = reason
        self.asked = 0

    def choose(self, env, rows, keys, histories=None, seconds=None):
        self.asked += 1
        if len(histories[0]) >= 7:
            raise ForfeitError(self.reason, "it broke")
        return RandomPlayer().choose(env, rows, keys)


@pytest.mark.parametrize("reason", ["time", "illegal move", "adjudicated", "resigned"])
def test_a_player_that_cannot_go_on_loses_and_the_others_play_on(reason):
    openings = opening_set(RULES, 4, None, 0)[0][:4]
    fixtures = paired(openings, np.random.default_rng(0))
    broken = Breaks(reason)
    games = play_games(broken, RolloutPlayer(RULES, 5), fixtures)
    lost = [g for g in games if g.result.reason == reason]
    assert len(lost) >= 6
    for game in lost:
        assert not game.first_won
        assert game.detail == "it broke"
    assert broken.asked < 8 * 4  # none was asked again after its end
    assert [p.results for p in pairs_of(games, "a", "b")] == [
        tuple((g.fixture.first_seat == 0, g.first_won) for g in games[i : i + 2]) for i in range(0, 8, 2)
    ]


def test_forfeits_are_counted_and_kept(tmp_path):
    t = tournament(pairs=1, players=("random", "rollout:5"))
    store = create(tmp_path / "t", t)
    tickets = store.left()
    games = play_games(Breaks("time"), RandomPlayer(), [t.fixture(ticket) for ticket in tickets])
    store.add([t.record(ticket, game) for ticket, game in zip(tickets, games, strict=True)])
    assert resume(store.folder).forfeits() == {"random": 2, "rollout:5": 0}
    records = list(read_records(store.folder / "games.jsonl"))
    assert [r.extra["detail"] for r in records] == ["it broke"] * 2
    assert [s is None for s in records[0].seconds_used[:5]] == [True] * 5
    assert isinstance(store.pairs()[0], Pair)


def test_games_by_the_clock_and_programs_come_a_pair_at_a_time(tmp_path):
    store = create(tmp_path / "t", tournament(pairs=6, players=("random", "rollout:5@1s", "gtp:nothing")))
    assert {len(b) for b in units(store, workers=2, batch=64)} == {2}
    plain = create(tmp_path / "u", tournament(pairs=60, players=("random", "rollout:5")))
    assert {len(b) for b in units(plain, workers=2, batch=64)} == {30}
    assert {len(b) for b in units(plain, workers=1, batch=64)} == {60}


def test_books_are_even_varied_and_read_back(tmp_path):
    book = make_book(RULES, rollout_judge(RULES, 50), "few rollouts", 30, np.random.default_rng(0))
    assert len(book.openings) == 30
    assert sorted(map(abs, book.values)) == list(map(abs, book.values))
    assert all(o.position.turn == 2 and not o.position.may_swap for o in book.openings)
    book.write(tmp_path / "b.json")
    again = read_book(tmp_path / "b.json")
    assert again.openings == book.openings
    assert again.values == pytest.approx(book.values, abs=1e-4)
    assert (again.rules, again.made_by) == (RULES, "few rollouts")


def test_no_opening_of_a_book_is_the_mirror_image_of_another():
    book = make_book(RULES, lambda positions: [0.0] * len(positions), "nobody", 400, np.random.default_rng(0))
    seen = set()
    for opening in book.openings:
        stones = np.array(list(opening.position.stones))
        assert "".join(stones) not in seen
        seen |= {"".join(stones[s]) for s in RULES.board.symmetries}


def test_the_solvers_judgement_is_the_share_of_winning_continuations():
    """Checked against counting them out one by one."""
    opening = Opening.of(RULES, [RULES.board.cell(c) for c in ("b3", "a1", "b4", "d4")])
    (value,) = solver_judge(RULES)([opening.position])
    from lifeline.solver import Solver

    solver, expected = Solver(RULES), []
    for action in opening.position.legal_actions():
        after = opening.position.play(action)
        replies = [after.play(a) for a in after.legal_actions()]
        won = [
            r.winner == 0 if r.is_over else (solver.solve(r).value == 1) == (r.to_play == 0)  # for seat 0
            for r in replies
        ]
        expected.append(2 * np.mean(won) - 1)
    assert opening.position.to_play == 0
    assert value == pytest.approx(np.mean(expected))


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "no book"),
        ("[]", "no book"),
        ("{}", "no book of openings: KeyError"),
        ('{"format": 2}', "this version reads 1"),
        ("[" * 5000, "no book"),
    ],
)
def test_what_is_no_book_is_refused(tmp_path, text, says):
    (tmp_path / "b.json").write_text(text)
    with pytest.raises(NotationError, match=says):
        read_book(tmp_path / "b.json")


def test_an_illegal_opening_is_named(tmp_path):
    book = Book(RULES, (Opening.of(RULES, [0, 5, 9, 18]),), (0.0,), "me")
    book.write(tmp_path / "b.json")
    value = json.loads((tmp_path / "b.json").read_text())
    value["openings"][0]["moves"] = "a1 a1"
    (tmp_path / "b.json").write_text(json.dumps(value))
    with pytest.raises(NotationError, match=r"b\.json: .*opening 1: illegal move: a1"):
        read_book(tmp_path / "b.json")
    with pytest.raises(NotationError, match="cannot be read"):
        read_book(tmp_path / "none.json")


@pytest.mark.parametrize("base", [3, 4, 5, 6, 7])
def test_the_books_that_come_along_hold(base):
    book = shipped_book(Rules(base))
    assert len(book.openings) >= 200
    assert book.rules == Rules(base)
    assert all(o.position.turn in (2, 3) and not o.position.may_swap for o in book.openings)


def test_there_are_openings_without_a_book(monkeypatch):
    monkeypatch.setattr("training.tournament._ROLLOUTS", 20)
    monkeypatch.setattr("training.tournament._LEAST_OPENINGS", 10)
    rules = Rules(3, "weak_pie")
    openings, source = opening_set(rules, 5, None, 0)
    assert len(openings) >= 5
    assert "rollouts" in source
    assert all(not o.position.may_swap for o in openings)


def test_a_move_is_the_same_in_a_tournament_from_python_and_over_gtp(tmp_path):
    """For the same position, model, seed and simulations; whatever other games a batch holds."""
    small = NetworkConfig(blocks=1, channels=8, pool_every=1, head_channels=4, value_hidden=8)
    path = tmp_path / "m.onnx"
    torch.manual_seed(3)
    path.write_bytes(export_onnx(small, Network(small).state_dict()))
    t = tournament(pairs=12, players=(f"{path}@24", "rollout:40"))
    records = MatchTable(t).play([Ticket(pair, 0, 1, game) for pair in range(12) for game in (0, 1)])
    players = {"m@24": make_player(str(path), RULES, 24), "rollout:40": make_player("rollout:40", RULES)}
    for record in records[::3]:
        gtp = engine(RULES, lambda rules: players["m@24"], seed=record.seed)
        for ply, (position, move) in enumerate(zip(record.positions(), record.moves, strict=False)):
            colour = {"b": "black", "w": "white"}[position.colour]
            name = record.players[position.to_play].name
            if ply >= record.extra["opening_plies"]:
                assert action_text(choose_move(players[name], position, record.seed), RULES.board) == move
            if ply >= record.extra["opening_plies"] and name == "m@24":
                assert ask(gtp, f"genmove {colour}") == move
            else:
                ask(gtp, f"play {colour} {move}")


def test_every_pair_has_an_opening_of_its_own_even_beyond_the_book(tmp_path, monkeypatch):
    monkeypatch.setattr("training.tournament._ROLLOUTS", 10)
    book, _ = opening_set(RULES, 200, None, 0)
    openings, source = opening_set(RULES, 230, None, 0)
    assert openings[: len(book)] == book
    assert "then others judged by 10 rollouts" in source
    seen = set()
    for opening in openings:
        stones = np.array(list(opening.position.stones))
        assert "".join(stones) not in seen
        seen |= {"".join(stones[s]) for s in RULES.board.symmetries}
    assert len(openings) == 230
    # The same where they are asked for later.
    t = Tournament(RULES, tuple(parse_entrants(PLAYERS, Budget())), book, 200, False, 0, source)
    store = create(tmp_path / "t", t)
    store.add(MatchTable(t).play([Ticket(0, 0, 1, 0)]))
    assert resume(store.folder, pairs=230).tournament.openings == openings
    assert resume(store.folder).tournament.openings == openings


def test_an_opening_is_written_as_it_is_read():
    opening = opening_set(RULES, 5, None, 0)[0][0]
    assert Opening.parse(RULES, opening.text()) == opening
