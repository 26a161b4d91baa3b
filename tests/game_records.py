"""Games played at random by the kernels, and hypothesis strategies for their records."""

import numpy as np
from hypothesis import strategies as st

from game_positions import rules
from lifeline.env import BatchEnv
from lifeline.game_record import MAX_INTEGER, MAX_SECONDS, REASONS, GameRecord, PlayerInfo, Result
from lifeline.notation import action_text
from lifeline.rules import Position


def random_moves(game, seed, plies=10_000):
    """Up to so many random plies from the start, as texts, and the position behind them."""
    env, rng, moves = BatchEnv(game, 1), np.random.default_rng(seed), []
    while len(moves) < plies and not env.terminated[0]:
        action = int(rng.choice(np.flatnonzero(env.legal_action_mask[0])))
        env.step(np.array([action]))
        moves.append(action_text(action, game.board))
    return tuple(moves), env.position(0)


def played_out(game, seed=0, **fields):
    """The record of a random game played to its end."""
    moves, last = random_moves(game, seed)
    return GameRecord(game, moves, Result(last.winner, "played out"), **fields)


NAMES = st.text(min_size=1, max_size=20)
JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-MAX_INTEGER, MAX_INTEGER)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=10),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
OBJECTS = st.dictionaries(st.text(max_size=8).filter(lambda key: key != "name"), JSON, max_size=3)
PLAYERS = st.builds(PlayerInfo, NAMES, OBJECTS)
DATES = st.datetimes().map(lambda d: d.isoformat()) | st.dates().map(lambda d: d.isoformat())


@st.composite
def results(draw, last):
    """A result that the last position allows."""
    if last.is_over:
        return Result(last.winner, "played out")
    reason = draw(st.sampled_from([None, *REASONS[1:]]))
    if reason is None:
        return None
    fixed = reason in ("time", "illegal move")
    return Result(1 - last.to_play if fixed else draw(st.integers(0, 1)), reason)


@st.composite
def records(draw, of=None, longest=10_000):
    """A record with any of the fields it may have, of a game or the rest of one, finished or not."""
    game = draw(rules() if of is None else of)
    seed = draw(st.integers(0, 2**32 - 1))
    moves, last = random_moves(
        game, seed, draw(st.sampled_from([0, 1, 3, 8, 40, 10_000]).map(lambda n: min(n, longest)))
    )
    skipped = draw(st.integers(0, min(5, len(moves))))
    start = Position.start(game)
    for move in moves[:skipped]:
        start = start.play(move)
    moves = moves[skipped:]

    def series(entries):
        rng = np.random.default_rng(seed)
        if draw(st.booleans()):
            return None
        shown = draw(st.lists(st.none() | entries, min_size=1, max_size=4))
        return tuple(shown[i] for i in rng.integers(0, len(shown), len(moves)))

    return GameRecord(
        game,
        moves,
        draw(results(last)),
        (draw(PLAYERS), draw(PLAYERS)),
        start.text() if skipped or draw(st.booleans()) else None,
        series(st.floats(0, MAX_SECONDS)),
        series(st.floats(0, MAX_SECONDS)),
        series(st.floats(-1, 1)),
        series(st.integers(0, MAX_INTEGER)),
        draw(st.none() | NAMES),
        draw(st.none() | DATES),
        draw(st.none() | st.integers(0, MAX_INTEGER)),
        draw(st.none() | OBJECTS),
        # What is long on a large board is played again by the reader, if at all.
        replay=len(moves) < 100,
    )
