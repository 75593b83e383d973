"""Chromium, and a real service without Spark that it looks at."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from playwright.sync_api import Browser, ConsoleMessage, Dialog, Page, Request, expect, sync_playwright

from airflow_pipelines.common.settings import Settings
from airflow_pipelines.service.app import create_app
from airflow_pipelines.service.control_plane import ControlPlane
from tests.fixtures.serving import serving

LIMIT_MS = 20_000
expect.set_options(timeout=LIMIT_MS)


@dataclass
class Service:
    """A service behind real HTTP.

    :param url: where it answers
    :param control_plane: what it answers from
    """

    url: str
    control_plane: ControlPlane


@dataclass
class Watched:
    """What a page did that no page of ours may do.

    :param faults: exceptions, errors of the console (refusals of the Content-Security-Policy are some), dialogs
    :param strangers: addresses of other hosts that it asked
    :param expected: parts of errors of the console that a test brings about, such as the answer 401
    """

    faults: list[str] = field(default_factory=list)
    strangers: list[str] = field(default_factory=list)
    expected: list[str] = field(default_factory=list)

    def console(self, message: ConsoleMessage) -> None:
        # A page that is still there when its service has ended goes on asking.
        if message.type == "error" and not any(part in message.text for part in (*self.expected, "ERR_CONNECTION_REFUSED")):
            self.faults.append(message.text)

    def request(self, request: Request) -> None:
        if not request.url.startswith(("http://127.0.0.1:", "data:")):
            self.strangers.append(request.url)


@pytest.fixture(scope="module")
def chromium(processes: None) -> Iterator[Browser]:
    """The browser of a file's tests. Playwright keeps an event loop here; other tests have their own."""
    program = shutil.which("chromium")
    assert program is not None, "the tests of the page need Debian's chromium: apt-get install chromium"
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox", "--disable-dev-shm-usage"])
        yield browser
        browser.close()


@pytest.fixture
def watched() -> Watched:
    """What the test's page did."""
    return Watched()


@pytest.fixture
def page(chromium: Browser, watched: Watched) -> Iterator[Page]:
    """A tab of its own. At its end it has run without a fault and asked no other host."""
    context = chromium.new_context(viewport={"width": 1280, "height": 800}, timezone_id="UTC")
    page = context.new_page()
    page.set_default_timeout(LIMIT_MS)
    page.on("console", watched.console)
    page.on("pageerror", lambda error: watched.faults.append(str(error)))
    page.on("request", watched.request)

    def refuse(dialog: Dialog) -> None:
        watched.faults.append(f"a dialog: {dialog.message}")
        dialog.dismiss()

    page.on("dialog", refuse)
    yield page
    context.close()
    assert watched.faults == []
    assert watched.strangers == []


@pytest.fixture
def service(tmp_path: Path, processes: None) -> Iterator[Service]:
    """A service without pipelines and keys."""
    app = create_app(Settings.load(tmp_path, api_keys=()))
    with serving(app) as url:
        yield Service(url, app.state.control_plane)
    app.state.control_plane.close()
