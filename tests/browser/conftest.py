"""Pages in a real browser, opened from disk as a person opens them, with no network."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Literal

import pytest
from playwright.sync_api import Browser, Page, sync_playwright

FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
Scheme = Literal["light", "dark"]
Open = Callable[..., Page]


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """The machine's own chromium, without a window."""
    chromium = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    assert chromium, "no chromium on PATH: apt-get install -y chromium"
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=chromium, headless=True, args=FLAGS)
        yield started
        started.close()


@pytest.fixture
def open_page(browser: Browser) -> Iterator[Open]:
    """Opens a file, at a width and in a colour scheme; the test fails on any script error, console message or network request."""
    trouble: list[str] = []
    contexts = []

    def opened(path: Path, *, place: str = "", width: int = 1280, scheme: Scheme = "light") -> Page:
        context = browser.new_context(
            viewport={"width": width, "height": 900}, color_scheme=scheme, reduced_motion="reduce"
        )
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(10_000)
        page.on("pageerror", lambda error: trouble.append(str(error)))
        page.on("console", lambda message: trouble.append(message.text))
        page.on(
            "request",
            lambda request: None if request.url.startswith(("file:", "data:")) else trouble.append(request.url),
        )
        page.goto(path.as_uri() + place)
        return page

    yield opened
    for context in contexts:
        context.close()
    assert not trouble
