"""Pictures of a run have the right form and show what they should."""

import io

import numpy as np
import pytest
from matplotlib.image import imread

from lifeline import Position, Rules
from training.pictures import MAX_BOARDS, board_picture, elo_curve_png, game_picture

POINTS = [(60.0 * i, 100.0 * i, 100.0 * i - 80, 100.0 * i + 90) for i in range(1, 12)]
BASELINES = {"random": 0.0, "rollout:1000": 640.0}


def game(base=3, seed=0):
    """A random game: its positions and the actions that led to them."""
    rng = np.random.default_rng(seed)
    positions, lasts = [Position.start(Rules(base))], [None]
    while not positions[-1].is_over:
        lasts.append(int(rng.choice(positions[-1].legal_actions())))
        positions.append(positions[-1].play(lasts[-1]))
    return positions, lasts


def pixels(png):
    assert png.startswith(b"\x89PNG\r\n\x1a\n")
    return imread(io.BytesIO(png))


@pytest.mark.parametrize("points", [POINTS, POINTS[:1], POINTS[:2], [(0.0, 0.0, 0.0, 0.0)], []])
@pytest.mark.parametrize("baselines", [BASELINES, {}])
def test_the_curve_is_a_picture_for_any_number_of_points(points, baselines):
    assert pixels(elo_curve_png(points, baselines, "a run")).shape[:2] == (500, 900)


def test_the_curve_shows_points_baselines_and_the_title_as_it_stands():
    pictures = [
        pixels(elo_curve_png(points, baselines, title))
        for points in (POINTS, POINTS[:5])
        for baselines in (BASELINES, {"random": 0.0})
        for title in ("one", "$\\two$ and $^")  # no formula
    ]
    assert len({picture.tobytes() for picture in pictures}) == len(pictures)


def test_what_is_not_finite_is_left_out_of_the_curve():
    broken = [*POINTS, (700.0, float("nan"), float("-inf"), float("inf"))]
    assert elo_curve_png(broken, BASELINES, "") == elo_curve_png(POINTS, BASELINES, "")


def test_an_interval_beside_its_rating_is_drawn_all_the_same():
    # Resampled intervals need not hold the estimate.
    pixels(elo_curve_png([(10.0, 100.0, 120.0, 150.0)], {}, ""))


@pytest.mark.parametrize(("base", "size"), [(3, 300), (5, 115), (12, 480)])  # 115 / 100 * 100 is less than 115
def test_a_board_is_a_square_picture(base, size):
    picture = board_picture(Position.start(Rules(base)), size=size)
    assert picture.shape == (size, size, 3)
    assert picture.dtype == np.uint8


def test_different_positions_and_last_moves_look_different():
    position = Position.start(Rules(3)).play("c4,e2")
    cell = position.rules.board.cell
    pictures = [
        board_picture(position),
        board_picture(position, cell("e2")),
        board_picture(position, cell("c4")),
        board_picture(position, cell("a1")),  # its stone is gone again
        board_picture(position, position.rules.swap_action),
        board_picture(position.play("a1")),
        board_picture(position.play("a2")),
    ]
    assert len({picture.tobytes() for picture in pictures}) == len(pictures)


def test_black_stones_are_dark_and_white_ones_light():
    start = Position.start(Rules(3))
    middle = (slice(136, 146), slice(154, 164))  # of the centre cell, c3
    empty = board_picture(start, size=300)[middle].mean()
    black = board_picture(start.play("c3"), size=300)[middle].mean()
    white = board_picture(start.play("a1,a3").play("c3"), size=300)[middle].mean()
    assert black < 50 < empty < 250 < white


def test_a_game_is_a_grid_of_at_most_twelve_boards():
    positions, lasts = game()
    assert len(positions) > MAX_BOARDS
    assert game_picture(positions, lasts, size=100).shape == (300, 400, 3)
    assert game_picture(positions[:3], lasts[:3], size=100).shape == (100, 300, 3)
    assert game_picture(positions[:5], lasts[:5], size=100).shape == (200, 400, 3)
    assert game_picture(positions[:1], lasts[:1], size=100).shape == (100, 100, 3)


def test_different_games_look_different():
    assert not np.array_equal(game_picture(*game(seed=0), size=100), game_picture(*game(seed=1), size=100))


def test_what_is_no_game_is_refused():
    positions, lasts = game()
    with pytest.raises(ValueError, match="a game needs positions"):
        game_picture([], [])
    with pytest.raises(ValueError, match="a game needs positions"):
        game_picture(positions, lasts[:-1])
    with pytest.raises(ValueError, match="no action 21"):
        board_picture(positions[0], 21)
