"""Records come back from lines and files as they went out, whatever board and opening; move lists likewise."""

import io

from hypothesis import given, settings
from hypothesis import strategies as st

from game_positions import ALL_BASES, rules
from game_records import random_moves, records
from lifeline.game_record import GameRecord
from lifeline.movelist import import_moves
from lifeline.record_json import format_record, parse_record
from lifeline.records import append_records, read_records, write_records
from lifeline.rules import OPENINGS, Rules


@settings(max_examples=100)
@given(record=records(longest=40))
def test_every_record_is_read_back_from_its_line(record):
    line = format_record(record)
    assert line.isascii()
    assert "\n" not in line
    assert parse_record(line) == parse_record(line + "\n") == record


@settings(max_examples=30)
@given(record=records(rules(bases=(3, 4, 5))))
def test_whole_games_are_played_again_by_the_reader(record):
    assert parse_record(format_record(record)) == record
    *_, last = record.positions()
    assert last.is_over == (record.result is not None and record.result.reason == "played out")


def test_every_base_and_opening_has_records_of_finished_games():
    from game_records import played_out

    for base in ALL_BASES:
        for opening in OPENINGS:
            record = played_out(Rules(base, opening), seed=base, **({} if base < 8 else {"replay": False}))
            assert parse_record(format_record(record), replay=base < 8) == record


@settings(max_examples=20)
@given(games=st.lists(records(rules(bases=(3, 4))), max_size=5), more=st.lists(records(rules(bases=(3,))), max_size=3))
def test_files_give_back_what_was_written_and_added(tmp_path_factory, games, more):
    folder = tmp_path_factory.mktemp("records")
    for name in ("games.jsonl", "games.jsonl.gz"):
        path = folder / name
        assert write_records(path, iter(games)) == len(games)
        assert append_records(path, iter(more)) == len(more)
        assert list(read_records(path)) == list(read_records(str(path))) == games + more
    text = (folder / "games.jsonl").read_text()
    assert list(read_records(io.StringIO(text))) == list(read_records(io.BytesIO(text.encode()))) == games + more


@settings(max_examples=40)
@given(game=rules(bases=(3, 4, 6)), seed=st.integers(0, 2**32 - 1), data=st.data())
def test_move_lists_become_the_records_of_their_games(game, seed, data):
    moves, last = random_moves(game, seed, data.draw(st.sampled_from([0, 1, 6, 1000])))
    tokens, left = [], list(moves)
    while left:
        cells = [m for m in left[:2] if m not in ("swap", "komi")]
        # Two stones by one player, in one token: only the first turns of strong pie have them.
        stones = sum(m not in ("swap", "komi") for m in moves[: len(moves) - len(left)])
        pair = game.opening == "strong_pie" and stones in (0, 2) and len(cells) == 2 and data.draw(st.booleans())
        tokens.append(",".join(left[: 1 + pair]))
        left = left[1 + pair :]
    numbers = data.draw(st.sampled_from(["", "{}.", "{}. ", "{}... "]))
    blank = data.draw(st.sampled_from([" ", "\n", "\r\n", "\t \n\n"]))
    text = blank.join(numbers.format(i) + token for i, token in enumerate(tokens, start=1))
    record = import_moves(text if data.draw(st.booleans()) else io.BytesIO(text.upper().encode()), game)
    assert record.moves == moves
    assert (record.result is not None and record.result.reason == "played out") == last.is_over
    # Once more, with every move played.
    assert parse_record(format_record(record)) == GameRecord(game, moves, record.result)
