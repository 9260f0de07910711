"""The pages in Chromium: every role, telephone and desk, light and dark, with and without a script."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, expect

from browsers import PLACES, Watched, chromium, chromium_program
from page_checks import HOSTILE
from served_town import ServedTown, predictions

PHONE: dict[str, Any] = {"viewport": {"width": 390, "height": 844}, "color_scheme": "dark"}
DESK: dict[str, Any] = {"viewport": {"width": 1440, "height": 900}, "color_scheme": "light"}


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    if chromium_program() is None:
        pytest.skip("no Chromium is installed: apt-get install chromium")
    with chromium() as opened:
        yield opened


@pytest.fixture(scope="module")
def kept() -> Iterator[dict[Any, Watched]]:
    """Pages of people who are logged in at a usual window, for all tests: each costs Chromium new processes."""
    logged_in: dict[Any, Watched] = {}
    yield logged_in
    for one in logged_in.values():
        one.close()
    assert [wrong for one in logged_in.values() for wrong in one.wrong] == []


@pytest.fixture
def watching(browser: Browser, town: ServedTown, kept: dict[Any, Watched]) -> Iterator[Any]:
    """Opens pages for somebody; at the end of the test nothing may have gone wrong on any of them."""
    opened: list[Watched] = []

    def watch(name: str, door: str = "http", **given: Any) -> Watched:
        usual = next((place for place, one in enumerate((PHONE, DESK)) if given == one), None)
        watched = kept.get((name, door, usual)) or Watched(browser, town, name, door, **given)
        if usual is not None:
            kept[name, door, usual] = watched
        if watched not in opened:
            opened.append(watched)
        return watched

    yield watch
    wrong = [wrong for one in opened for wrong in one.wrong]
    for one in opened:
        if one in kept.values():
            one.wrong.clear()
        else:
            one.close()
    assert wrong == []


def walk(watching: Any, **given: Any) -> None:
    """Look at every page, as everybody who sees it."""
    watched: dict[tuple[str, str], Watched] = {}
    for place, (name, door, path) in PLACES.items():
        if (name, door) not in watched:
            watched[name, door] = watching(name, door, **given)
        one = watched[name, door]
        page = one.go(path)
        assert one.overflow <= 0, f"{place} is wider than the window"
        assert page.locator("h1").count() == 1, place
        assert page.locator("main :is(input, select, textarea):not([type=hidden])").evaluate_all(
            "all => all.filter(e => !e.labels.length && !e.ariaHidden).map(e => e.outerHTML)"
        ) == [], f"{place} has a field without a label"  # fmt: skip
        assert page.evaluate("document.querySelectorAll('style, [style], script:not([src])').length") == 0, (
            place
        )
        wide = page.evaluate(
            "[...document.querySelectorAll('table')].filter(t => !t.closest('.scroll')).length"
        )
        assert wide == 0, f"a table of {place} can widen the page"


def test_every_page_on_a_dark_telephone(watching: Any) -> None:
    walk(watching, **PHONE)


@pytest.mark.slow("the other widths, schemes, and a page without a script")
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [320, 390, 768, 1440, 2200])
@pytest.mark.parametrize("script", [True, False])
def test_every_page_everywhere(watching: Any, scheme: str, width: int, script: bool) -> None:  # noqa: FBT001
    size = {"width": width, "height": 900}
    walk(watching, viewport=size, color_scheme=scheme, java_script_enabled=script)


def test_asking_with_a_script(watching: Any, town: ServedTown) -> None:
    one = watching("ada", **DESK)
    page = one.go("/tables/town/ask")
    expect(page.locator("#price-button")).to_be_hidden()
    page.fill("#question", "count by tenure")
    expect(page.locator("#price")).to_contain_text("of the budget")
    page.fill("#question", "count by tenur")
    expect(page.locator("#price")).to_contain_text("no attribute")
    page.fill("#question", "count by tenure")
    expect(page.locator("#price")).to_contain_text("like this")
    page.keyboard.press("Control+Enter")
    table = page.locator("#answer table")
    expect(table).to_contain_text("mortgaged")
    expect(page.locator("#answer .badge")).to_have_text("measured")
    expect(page.locator("#price")).to_contain_text("Free")
    expect(page.locator("#last")).to_contain_text("count by tenure")
    assert page.locator("#answer svg.spread line").count() == 3 * page.locator("#answer tbody tr").count()
    page.click("#ask button.main")  # a second time: a repeat
    expect(page.locator("#answer .badge")).to_have_text("asked before")
    page.fill("#question", "count by colour")
    page.click("#ask button.main")
    expect(page.locator("#answer [role=alert]")).to_contain_text("What to do")
    # A refusal is a status that Chromium writes to its console: it is no fault of the page.
    one.wrong = [wrong for wrong in one.wrong if "status of 422" not in wrong]


def test_asking_without_a_script(watching: Any) -> None:
    page = watching("ada", java_script_enabled=False, **PHONE).go("/tables/town/ask")
    page.fill("#question", "count by marital")
    page.click("#price-button")
    expect(page.locator("#price")).to_contain_text("of the budget")
    expect(page.locator("#question")).to_have_value("count by marital")
    page.click("#ask button.main")
    expect(page.locator("#answer table")).to_contain_text("widowed")
    page.click("text=Page of this answer")
    expect(page.locator("main")).to_contain_text("What it rests on")


def test_cells_are_put_into_the_question(watching: Any) -> None:
    page = watching("ada", **DESK).go("/tables/town")
    page.click("text=Dovegarth")
    expect(page.locator("#draft")).to_have_value("count district = Dovegarth")
    page.locator("#smoker").get_by_text("true", exact=True).click()
    expect(page.locator("#draft")).to_have_value("count district = Dovegarth and smoker = true")
    page.click("text=Go and ask")
    expect(page.locator("#question")).to_have_value("count district = Dovegarth and smoker = true")
    expect(page.locator("#price")).to_contain_text("people")


def test_hostile_words_stay_words(watching: Any) -> None:
    """In labels of cells, names of submissions, questions and reasons: they are shown, and do nothing."""
    shown = HOSTILE[0]
    ada = watching("ada", **DESK)
    expect(ada.go("/tables/town").locator("#mark")).to_contain_text(shown)
    page = ada.go("/tables/town/ask")
    page.fill("#question", "count by mark")
    page.click("#ask button.main")
    expect(page.locator("#answer table")).to_contain_text(shown)
    expect(ada.go("/boards/chronic").locator("main")).to_contain_text(f"ada: {shown}")
    page = ada.go(f"/tables/town/ask?question={shown}")
    expect(page.locator("#question")).to_have_value(shown)
    expect(page.locator("#price .bad-word")).to_be_visible()
    expect(watching("carl", "admin", **PHONE).go("/").locator("main")).to_contain_text(shown)
    for one in (ada,):
        assert (
            one.page.evaluate(
                "document.querySelectorAll('main script, main img, [onload], [onerror]').length"
            )
            == 0
        )


def test_predictions_are_uploaded(watching: Any, tmp_path: Path) -> None:
    one = watching("ada", **PHONE)
    page = one.go("/boards/chronic")
    file = tmp_path / "<i>mine.csv"
    file.write_text(predictions(5))
    page.set_input_files("#file", file)
    page.fill("#name", "boosted")
    page.click("text=Submit >> nth=-1")
    expect(page.locator("[role=status]")).to_contain_text("ada: boosted")
    file.write_text("id,chronic\np1,1\n")
    page.set_input_files("#file", file)
    page.click("text=Submit >> nth=-1")
    expect(page.locator("[role=alert]")).to_contain_text("What to do")
    one.wrong = [wrong for wrong in one.wrong if "status of 4" not in wrong]


def test_a_report_is_shown_in_its_frame(watching: Any) -> None:
    page = watching("ada", **DESK).go("/releases/2026-spring")
    frame = page.frame_locator("iframe.report")
    expect(frame.locator("h1")).to_contain_text("Release of town")
    colour = frame.locator(".facts div").first.evaluate("e => getComputedStyle(e).backgroundColor")
    assert colour != "rgba(0, 0, 0, 0)"  # its own style sheet is allowed


def test_a_custodian_decides_by_keyboard(watching: Any, town: ServedTown) -> None:
    town.client("ben").ask("count by district, health", "town", error=40.0, why="for the keyboard")
    page = watching("carl", "admin", **DESK).go("/")
    card = page.locator(".approval", has_text="for the keyboard")
    card.locator("input[name=reason]").focus()
    page.keyboard.type("ask for less")
    page.keyboard.press("Tab")
    page.keyboard.press("Tab")
    assert page.evaluate("getComputedStyle(document.activeElement).outlineStyle") != "none"
    page.keyboard.press("Enter")
    expect(page.locator("table", has_text="ask for less")).to_be_visible()


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
def test_the_login_holds_on_plain_loopback(watching: Any, host: str) -> None:
    """Under both names of this machine; the cookie is not visible to scripts."""
    one = watching("ada", host=host, **DESK)
    page = one.go("/history")
    expect(page.locator("h1")).to_have_text("History")
    assert page.evaluate("document.cookie") == ""
    page.click("text=Log out")
    expect(page.locator("h1")).to_have_text("Log in")
