"""Chromium for tests and for the pictures in the documentation: the system's own, driven by Playwright."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from playwright.sync_api import Browser, ConsoleMessage, Page, sync_playwright

from served_town import ServedTown

PROGRAMS = ("chromium", "chromium-browser", "google-chrome")

PLACES: dict[str, tuple[str, str, str]] = {
    "login": ("", "http", "/login"),
    "ask": ("ada", "http", "/tables/town/ask"),
    "priced": ("ada", "http", "/tables/town/ask?question=count+by+sex"),
    "table": ("ada", "http", "/tables/town"),
    "history": ("ada", "http", "/history"),
    "releases": ("ada", "http", "/releases"),
    "release": ("ada", "http", "/releases/2026-spring"),
    "boards": ("ada", "http", "/boards"),
    "board": ("ada", "http", "/boards/chronic"),
    "api": ("ada", "http", "/api"),
    "everybody": ("olga", "http", "/history"),
    "audited table": ("olga", "http", "/tables/town"),
    "ledger": ("olga", "http", "/ledger?verify=1"),
    "audit log": ("olga", "http", "/audit?verify=1"),
    "approvals": ("carl", "admin", "/"),
    "tokens": ("carl", "admin", "/admin/tokens"),
    "tables": ("carl", "admin", "/admin/tables"),
    "jobs": ("carl", "admin", "/admin/releases"),
    "health": ("carl", "admin", "/admin/health"),
    "custodian's board": ("carl", "http", "/boards/chronic"),
}
"""Every page that is looked at: who looks, at which door, and where it is."""


def chromium_program() -> str | None:
    """The path of a Chromium that is installed."""
    return next((path for name in PROGRAMS if (path := shutil.which(name))), None)


@contextmanager
def chromium() -> Iterator[Browser]:
    """A running Chromium. As root, which tests may run as, it has no sandbox of its own."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium_program(), args=["--no-sandbox"])
        try:
            yield browser
        finally:
            browser.close()


class Watched:
    """A page of a browser, of somebody who is logged in, and all that went wrong on it."""

    def __init__(
        self,
        browser: Browser,
        town: ServedTown,
        name: str,
        door: str = "http",
        *,
        host: str = "127.0.0.1",
        **given: Any,
    ) -> None:
        self.base = town.address(door, host=host)
        self.wrong: list[str] = []
        self._context = browser.new_context(**given)
        self.page: Page = self._context.new_page()
        self.page.set_default_timeout(15_000)
        self.page.on("console", self._console)
        self.page.on("pageerror", lambda error: self.wrong.append(f"script: {error}"))
        self.page.on("dialog", self._dialog)
        self.page.on("request", self._request)
        if name:
            self.page.goto(f"{self.base}/login")
            self.page.fill("#token", town.tokens[name])
            self.page.click("button.main")
            self.page.wait_for_selector(".who")

    def _console(self, message: ConsoleMessage) -> None:
        """All that the browser writes is wrong, but for its note that this driver typed before it had drawn."""
        if not message.text.startswith("Autofocus processing was blocked"):
            self.wrong.append(f"console: {message.text}")

    def go(self, path: str) -> Page:
        self.page.goto(self.base + path)
        return self.page

    @property
    def overflow(self) -> int:
        """By how many pixels the page is wider than the window."""
        return self.page.evaluate(
            "document.documentElement.scrollWidth - document.documentElement.clientWidth"
        )

    def close(self) -> None:
        self._context.close()

    def _dialog(self, dialog: Any) -> None:
        self.wrong.append(f"dialog: {dialog.message}")
        dialog.dismiss()

    def _request(self, request: Any) -> None:
        if not request.url.startswith((self.base + "/", "about:")):
            self.wrong.append(f"foreign request: {request.url}")
