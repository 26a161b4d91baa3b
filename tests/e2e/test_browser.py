"""The page in Debian's Chromium: a game by clicks, keys and taps, and all that stands around the board."""

import json
import os
import re
import shutil
import time
from pathlib import Path

import pytest

from lifeline.play.server_bots import load_bots, rollout_bot
from web_server import serving

CHROMIUM = shutil.which("chromium")
pytestmark = pytest.mark.skipif(
    CHROMIUM is None and not os.environ.get("CI"), reason="needs Debian's chromium: apt-get install chromium"
)


@pytest.fixture(scope="module")
def address():
    with serving(simulations=4) as (address, server):
        for base in (8, 3):  # what pages here would wait for
            server.warm_up(base)
        yield address


@pytest.fixture(scope="module")
def browser():
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture
def open_page(browser, address):
    """Opens the page at a link, and sees at the end that nothing went wrong in it."""
    contexts, troubles = [], []

    def opened(link="", expected=(), at=address, **options):
        context = browser.new_context(**{"viewport": {"width": 1100, "height": 760}, **options})
        context.set_default_timeout(20_000)
        contexts.append(context)
        page = context.new_page()
        page.on("pageerror", lambda error: troubles.append(str(error)))
        page.on("console", lambda m: m.type == "error" and m.text not in expected and troubles.append(m.text))
        page.goto(f"{at}/{link}")
        page.wait_for_selector(".cell")
        until(page, "document.getElementById('status').textContent !== 'Setting up the board…'")
        return page

    yield opened
    for context in contexts:
        context.close()
    assert troubles == []


def until(page, condition):
    """Wait until an expression is true; the page's own policy forbids it to look for itself."""
    end = time.monotonic() + 20
    while not page.evaluate(condition):
        assert time.monotonic() < end, f"{condition} is not so; {page.locator('#status').all_text_contents()}"
        page.wait_for_timeout(20)


BAD_REQUEST = "Failed to load resource: the server responded with a status of 400 (Bad Request)"
UNREACHABLE = "Failed to load resource: net::ERR_CONNECTION_REFUSED"
BOT = "beginner.rollouts"


def cell(page, label):
    return page.locator(f'[data-cell="{label}"]')


def place(page, label):
    """Click on a cell, and wait until the stone is there."""
    cell(page, label).click()
    until(page, f"/black|white/.test(document.querySelector('[data-cell={label}]').ariaLabel)")


def plies(page):
    return page.locator("#moves button").count()


def moves(page):
    return [text.split(" ")[0] for text in page.locator("#moves button").all_text_contents()]


def status(page, pattern):
    until(page, f"new RegExp({json.dumps(pattern)}).test(document.getElementById('status').textContent)")


def stones(page):
    return page.locator(".stones circle").count()


def test_a_whole_game_against_the_bot_by_clicks(open_page):
    page = open_page()
    status(page, "Your turn, Black: two stones")
    for _ in range(200):
        until(page, "!/thinking/.test(document.getElementById('status').textContent)")
        if "won" in page.locator("#status").text_content():
            break
        if page.locator("#swap").is_visible():
            page.locator("#swap").click()
        else:
            before = plies(page)
            page.locator(".cell.open").first.click()
            until(page, f"document.querySelectorAll('#moves button').length > {before}")
    status(page, "(You have|rollouts .* has) won, (Black|White)")
    assert page.locator(".cell.open").count() == 0
    assert page.locator("#hint").is_disabled()
    assert page.locator(".player.won").count() == 1
    record = page.evaluate("location.hash")
    page.reload()
    status(page, "won")
    assert page.evaluate("location.hash") == record


def test_a_turn_of_two_stones_whose_first_can_be_taken_back(open_page):
    page = open_page("#base=3&second=" + BOT)
    place(page, "c3")
    status(page, "the second stone")
    assert stones(page) == 1
    # The second may not touch the first.
    assert cell(page, "c4").get_attribute("aria-disabled") == "true"
    cell(page, "c4").click(force=True)
    assert plies(page) == 1
    page.locator("#undo").click()
    status(page, "two stones")
    assert stones(page) == 0
    place(page, "a1")
    assert moves(page)[0] == "a1"
    place(page, "e3")
    until(page, "document.querySelectorAll('#moves button').length > 2")


def test_the_second_player_may_swap(open_page):
    page = open_page("#base=3&moves=a1.c3")
    status(page, "White to play: two stones, or swap sides")
    assert page.locator(".player").nth(0).locator(".colour").text_content() == "Black"
    page.locator("#swap").click()
    until(page, "document.querySelectorAll('#moves button').length === 3")
    assert moves(page) == ["a1", "c3", "swap"]
    assert page.locator("#swap").is_hidden()
    assert page.locator('[data-seat="0"] .colour').text_content() == "White"
    assert stones(page) == 2


def test_komi_is_named_sides_are_chosen_and_points_spent(open_page):
    page = open_page()
    page.locator("#new-game").click()
    page.locator("#new-opening").select_option("komi_pie")
    page.get_by_text("The bot begins").click()
    page.locator("#new-level").fill("0")
    page.locator("#new-start").click()
    page.locator("#side-dialog").wait_for(state="visible")
    assert re.search(r"names a komi of \d+ points?", page.locator("#side-text").text_content())
    page.locator("#side-white").click()
    until(page, "/opening=komi_pie/.test(location.hash)")
    assert page.locator('[data-seat="1"] .colour').text_content().startswith("White, komi")
    page.goto(page.url.split("#")[0] + "#base=3&opening=komi_pie&komi=2&moves=a1.e3.c1.c5.b1")
    status(page, "White to play")
    spend = page.get_by_role("button", name="Spend a point of komi (2 left)")
    spend.click()
    until(page, "document.querySelectorAll('#moves button').length === 6")
    assert spend.is_hidden()
    assert "komi 1" in page.locator('[data-seat="1"] .colour').text_content()


def test_the_person_names_a_komi_and_the_bot_takes_a_side(open_page):
    page = open_page()
    page.locator("#new-game").click()
    page.locator("#new-opening").select_option("komi_pie")
    page.locator("#new-komi").fill("7")
    page.locator("#new-start").click()
    until(page, "/komi=7/.test(location.hash)")
    assert re.search("takes (Black|White)", page.locator("#tip").text_content())


def test_undo_and_redo_go_to_where_the_person_was_to_move(open_page):
    page = open_page("#base=3&second=" + BOT)
    place(page, "a1")
    place(page, "e3")
    until(page, "document.querySelectorAll('#moves button').length >= 3")
    until(page, "!/thinking/.test(document.getElementById('status').textContent)")
    count = plies(page)
    page.locator("#undo").click()
    until(page, "document.querySelectorAll('.stones circle').length === 1")
    assert plies(page) == count
    page.locator("#redo").click()
    until(page, f"document.getElementById('where').textContent === '{count} of {count}'")
    page.locator("#undo").click()
    until(page, "document.querySelectorAll('.stones circle').length === 1")
    page.locator(".cell.open").first.click()  # what had been taken back is forgotten
    until(page, "!document.querySelector('#moves button.ahead')")


def test_a_hint_rings_a_legal_cell(open_page):
    page = open_page("#base=3&moves=a1.e3.c1.c5.b3")
    page.locator("#hint").click()
    page.locator(".hint-ring").wait_for(state="attached")
    assert re.search(r"Hint: [a-e][1-5], \d+ % to win", page.locator("#tip").text_content())


def test_pointing_shows_what_a_stone_would_capture(open_page):
    page = open_page("#base=3&start=3/2wb/4w/w1bw/b1b+b+6+0+-+0")
    cell(page, "c4").hover()
    assert page.locator("#tip").text_content() == "c4 captures 2 white stones"
    assert page.locator(".cross").count() == 2
    cell(page, "c4").click()
    until(page, "document.querySelectorAll('.stones circle').length === 7")
    assert page.locator("#moves").text_content().endswith("c4 ×2")


def test_a_record_is_saved_and_loaded(open_page, tmp_path):
    page = open_page("#base=4&moves=a1.d4.swap.b2.e5")
    page.locator("#tab-share").click()
    with page.expect_download() as download:
        page.locator("#save-record").click()
    path = tmp_path / "game.jsonl"
    download.value.save_as(path)
    record = json.loads(path.read_text())
    assert record["moves"] == ["a1", "d4", "swap", "b2", "e5"]
    with page.expect_download() as download:
        page.locator("#save-moves").click()
    assert Path(download.value.path()).read_text() == "1. a1,d4 2. swap b2,e5\n"
    text = page.locator("#position-text").input_value()
    page.goto(page.url.split("#")[0] + "#base=3")
    until(page, "document.querySelectorAll('.cell').length === 19")
    page.locator("#tab-share").click()
    page.locator("#load-file").set_input_files(path)
    until(page, "document.querySelectorAll('.cell').length === 37")
    assert page.locator("#position-text").input_value() == text
    page.locator("#load-text").fill("3/4/5/4/3 b 0 0 - 0")
    page.locator("#load").click()
    until(page, "document.querySelectorAll('.cell').length === 19")


def test_a_bad_record_and_a_bad_link_are_told_in_a_line(open_page):
    page = open_page("#base=3&moves=a1.a1", expected=[BAD_REQUEST])
    status(page, "Your turn")
    assert "This link does not lead to a game: ply 2: illegal move" in page.locator("#tip").text_content()
    for link, why in {
        "#base=99": "base must be",
        "#moves=a1": "does not name a board",
        "#base=3&at=x": "at must",
    }.items():
        page.goto(page.url.split("#")[0] + link)
        until(page, f"document.getElementById('tip').textContent.includes({json.dumps(why)})")
        assert plies(page) == 0
    page.locator("#tab-share").click()
    page.locator("#load-text").fill('{"version": 9}')
    page.locator("#load").click()
    until(page, "/version/.test(document.getElementById('load-error').textContent)")
    page.locator("#load-text").fill('<img src=x onerror="document.title=1">')
    page.locator("#load").click()
    until(page, "/ply 1/.test(document.getElementById('load-error').textContent)")
    assert page.title() == "Lifeline"


def test_the_board_is_played_by_keys_and_read_aloud(open_page):
    page = open_page("#base=3")
    cell(page, "c3").focus()
    for key, label in {"ArrowRight": "c4", "ArrowUp": "d4", "ArrowDown": "c4", "Home": "c1", "End": "c5"}.items():
        page.keyboard.press(key)
        assert page.evaluate("document.activeElement.dataset.cell") == label
    assert page.locator('.cell[tabindex="0"]').count() == 1
    page.keyboard.press("Enter")
    until(page, "document.querySelectorAll('#moves button').length === 1")
    assert cell(page, "c5").get_attribute("aria-label") == "c5, black, last move"
    assert cell(page, "c4").get_attribute("aria-label") == "c4, empty, no stone may be placed here"
    assert page.locator("#status").get_attribute("aria-live") == "polite"
    assert page.locator("#board").get_attribute("role") == "grid"


def test_moves_are_gone_through_by_arrow_keys(open_page):
    page = open_page("#base=3&moves=a1.e3.c1.c5")
    page.locator("#tab-moves").focus()
    page.locator("#status").click()
    page.evaluate("document.activeElement.blur()")
    page.keyboard.press("ArrowLeft")
    until(page, "document.getElementById('where').textContent === '3 of 4'")
    assert stones(page) == 3
    page.keyboard.press("Home")
    until(page, "document.getElementById('where').textContent === '0 of 4'")
    page.keyboard.press("End")
    until(page, "document.getElementById('where').textContent === '4 of 4'")
    page.locator("#moves button").nth(1).click()
    until(page, "document.getElementById('where').textContent === '2 of 4'")
    assert page.locator('[aria-current="step"]').text_content() == "e3"


def test_a_study_shows_chances_heat_and_the_line_expected(open_page):
    page = open_page("#base=3&moves=a1.e3.c1.c5.b3")
    page.locator("#tab-study").click()
    page.locator("#advice tbody tr").first.wait_for()
    page.locator("#show-heat").check()
    assert page.locator(".share").count() >= 1
    page.locator("#show-line").check()
    assert page.locator(".line-stone").count() >= 1
    until(page, "document.querySelector('#graph .curve')?.getAttribute('points').split(' ').length === 6")
    assert re.search(r"\d+ % to win after ply 5", page.locator("#graph-text").text_content())


def test_groups_that_hang_on_one_region_are_marked(open_page):
    page = open_page("#base=3&start=b2/w3/1bww1/3b/1b1+w+5+0+-+0")
    page.locator("#show-groups").check()
    assert page.locator(".region-name").count() == 12
    assert page.locator(".hanging").count() == 2
    cell(page, "e1").hover()
    assert page.locator("#tip").text_content() == "e1: a lone stone, hangs on one region"


def test_two_bots_play_and_can_be_stopped(open_page):
    page = open_page(f"#base=3&first={BOT}&second={BOT}")
    until(page, "document.querySelectorAll('#moves button').length >= 2")
    page.locator("#pause").click()
    assert page.locator("#pause").text_content() == "Go on"
    page.locator('[data-seat="0"] select').select_option("")
    page.locator('[data-seat="1"] select').select_option("")
    until(page, "document.querySelectorAll('.cell.open').length > 0")


def test_the_person_resigns(open_page):
    page = open_page("#base=3&second=" + BOT)
    page.locator("#resign").click()
    status(page, "rollouts .beginner. has won, White, by resignation")


def test_a_phone_is_wide_enough(open_page):
    phone = {"viewport": {"width": 360, "height": 700}, "is_mobile": True, "has_touch": True}
    page = open_page("#base=3&moves=a1.e3", **phone)
    for tab in ("#tab-moves", "#tab-study", "#tab-share"):
        page.locator(tab).tap()
        assert page.evaluate("document.documentElement.scrollWidth") <= 360
    page.locator("#tab-moves").tap()
    cell(page, "c1").tap()
    until(page, "document.querySelectorAll('.stones circle').length === 3")
    page.goto(page.url.split("#")[0] + "#base=9&moves=a1.e3")
    until(page, "document.querySelectorAll('.cell').length === 217")
    # Cells as small as these take two taps.
    cell(page, "i9").tap()
    assert page.locator("#tip").text_content() == "i9"
    assert stones(page) == 2
    cell(page, "i9").tap()
    until(page, "document.querySelectorAll('.stones circle').length === 3")


def test_colours_follow_the_system_and_the_switch(open_page):
    page = open_page(color_scheme="dark")
    ground = "getComputedStyle(document.body).backgroundColor"
    dark = page.evaluate(ground)
    page.locator("#theme").click()
    assert page.evaluate(ground) != dark
    page.reload()
    page.wait_for_selector(".cell")
    assert page.evaluate(ground) != dark
    page.locator("#theme").click()
    assert page.evaluate(ground) == dark


def test_the_rules_have_pictures_that_can_be_played_on(open_page):
    page = open_page()
    page.locator('nav a[href="/rules"]').click()
    until(page, "document.querySelectorAll('figure .board').length === 7")
    assert page.locator(".cross").count() == 2
    page.locator("figure a").first.click()
    until(page, "/start=/.test(location.hash)")


def test_a_page_outlives_its_server(open_page, browser):
    with serving(simulations=4) as (address, _):
        page = open_page("#base=3&moves=a1.e3", expected=[UNREACHABLE], at=address)
        link = page.url.split("#")[1]
    cell(page, "c1").click()
    page.locator("#trouble").wait_for(state="visible")
    assert "trying again" in page.locator("#trouble").text_content()
    with serving(simulations=4) as (address, _):
        # Another server, at another address, has the game as soon as it has the link.
        page.goto(f"{address}/#{link}")
        until(page, "document.querySelectorAll('.stones circle').length === 2")


def test_several_models_are_offered_with_what_they_were_trained_on(open_page, tmp_path):
    from tiny_run import TINY
    from training.config import NetworkConfig
    from training.export import export_onnx
    from training.network import Network

    for name in ("one", "two"):
        config = NetworkConfig(**TINY["network"])
        data = export_onnx(config, Network(config).state_dict(), {"bases_trained": "4"})
        (tmp_path / f"{name}.onnx").write_bytes(data)
    bots = load_bots([tmp_path / "one.onnx", tmp_path / "two.onnx"])
    with serving(bots=bots, simulations=4) as (address, _):
        page = open_page("#base=4&second=novice.two", expected=[UNREACHABLE], at=address)
        assert "trained on base 4" in page.locator("#about").text_content()
        place(page, "a1")
        place(page, "d4")
        until(page, "document.querySelectorAll('#moves button').length >= 3")
        page.locator('[data-seat="1"] select').select_option("one")
        until(page, "/second=novice.one/.test(location.hash)")
        page.locator("#new-game").click()
        page.locator("#new-base").select_option("5")
        assert "without having been trained" in page.locator("#new-bot-note").text_content()


def test_without_a_model_the_page_says_so(open_page):
    assert "No trained bot is here" in open_page().locator("#about").text_content()
    assert not rollout_bot().is_model
