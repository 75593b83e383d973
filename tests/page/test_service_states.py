"""The page of a service: the list, keys, and pipelines that do not run. Nothing here needs Spark."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from uuid import UUID

import pytest
from playwright.sync_api import Page, expect
from uuid6 import uuid7

from airflow_pipelines.common.settings import Settings
from airflow_pipelines.service.app import create_app
from airflow_pipelines.service.records import PipelineRecord
from tests.fixtures.serving import serving
from tests.page.conftest import Service, Watched
from tests.service import records as given

HOSTILE = "<script>alert(1)</script><img src=x onerror=alert(2)>"
KEY = "s3cret-key"


def have(service: Service, make: Callable[[], PipelineRecord], name: str, **fields: object) -> None:
    service.control_plane.store.create(replace(make(), name=name, id=UUID(int=uuid7().int), **fields))  # type: ignore[arg-type]


def test_a_service_without_pipelines_says_what_to_do(page: Page, service: Service) -> None:
    page.goto(service.url)
    expect(page.get_by_text("No pipelines yet")).to_be_visible()


def test_what_needs_a_person_comes_first_and_can_be_filtered(page: Page, service: Service) -> None:
    have(service, given.stopped, "calm")
    have(service, given.failed, "fallen")
    have(service, given.broken, "wrong", description=HOSTILE)
    page.goto(service.url)
    rows = page.locator(".pipelines tbody tr")
    expect(rows).to_have_count(3)
    assert rows.get_by_role("link").all_inner_texts() == ["fallen", "wrong", "calm"]
    expect(rows.nth(0)).to_contain_text("Failed")
    expect(rows.nth(0)).to_contain_text("it broke")
    expect(rows.nth(1)).to_contain_text("Does not compile")
    expect(rows.nth(1)).to_contain_text(HOSTILE)
    expect(rows.nth(2)).to_contain_text("Stopped")
    page.get_by_role("searchbox").fill("stopp")
    expect(rows).to_have_count(1)
    page.get_by_role("searchbox").fill("no such")
    expect(page.get_by_text("No pipeline matches")).to_be_visible()
    page.get_by_role("searchbox").fill("")
    page.get_by_role("link", name="fallen").click()
    expect(page.get_by_role("alert")).to_contain_text("it broke")
    expect(page.get_by_text("There is nothing in it yet")).to_have_count(0)


def test_fifty_pipelines_are_drawn_at_once(page: Page, service: Service) -> None:
    for number in range(50):
        have(service, given.stopped, f"pipeline-{number:02d}")
    page.goto(service.url)
    expect(page.locator(".pipelines tbody tr")).to_have_count(50)
    # What one drawing of the whole list costs, without the network.
    took = page.evaluate("""async () => {
        const { Sparkline } = await import(new URL('js/sparkline.js', document.baseURI));
        const { h, render } = await import(new URL('js/html.js', document.baseURI));
        const place = document.createElement('div');
        const values = Array.from({ length: 30 }, (_, each) => each % 7);
        const start = performance.now();
        for (let each = 0; each < 50; each += 1) render(h(Sparkline, { values: [...values], label: 'x' }), place);
        return performance.now() - start;
    }""")
    assert took < 1000


def test_a_service_that_ends_and_comes_again(page: Page, tmp_path: Path) -> None:
    app = create_app(Settings.load(tmp_path, api_keys=()))
    have(Service("", app.state.control_plane), given.stopped, "calm")
    with serving(app) as url:
        page.goto(url)
        expect(page.get_by_role("link", name="calm")).to_be_visible()
    port = int(url.rsplit(":", 1)[1])
    expect(page.get_by_role("alert")).to_contain_text("No news for")
    expect(page.get_by_role("alert")).to_contain_text("The service cannot be reached")
    # What was known is still there.
    expect(page.get_by_role("link", name="calm")).to_be_visible()
    again = create_app(Settings.load(tmp_path, api_keys=()))
    with serving(again, port):
        page.get_by_role("button", name="Try now").click()
        expect(page.get_by_role("alert")).to_have_count(0)
    for each in (app, again):
        each.state.control_plane.close()


@pytest.mark.core
def test_a_key_is_asked_for_and_kept_in_the_tab_only(page: Page, tmp_path: Path, watched: Watched) -> None:
    watched.expected.append("401")
    app = create_app(Settings.load(tmp_path, api_keys=(KEY,)))
    have(Service("", app.state.control_plane), given.stopped, "calm")
    with serving(app) as url:
        page.goto(url)
        expect(page.get_by_text("This service wants an API key")).to_be_visible()
        page.get_by_label("API key").fill("wrong")
        page.get_by_role("button", name="Use this key").click()
        expect(page.get_by_role("alert")).to_contain_text("wants an API key")
        page.get_by_label("API key").fill(KEY)
        page.get_by_role("button", name="Use this key").click()
        expect(page.get_by_role("link", name="calm")).to_be_visible()
        assert KEY not in page.url
        assert page.evaluate("[JSON.stringify(localStorage), document.cookie]") == ['{"airflow-pipelines-theme":"auto"}', ""]
        assert page.context.cookies() == []
        other = page.context.new_page()
        other.goto(url)
        expect(other.get_by_text("This service wants an API key")).to_be_visible()
        page.get_by_role("button", name="Forget key").click()
        expect(page.get_by_label("API key")).to_be_visible()
    app.state.control_plane.close()


def test_a_program_that_does_not_compile_and_a_pipeline_that_is_not_there(page: Page, service: Service, watched: Watched) -> None:
    watched.expected.append("404")
    message = {"message": HOSTILE, "start_line_number": 2, "start_column": 25, "warning": False, "snippet": "    2|nope"}
    have(service, given.broken, "wrong", program_error={"sql_compilation": {"exit_code": 1, "messages": [message]}})
    page.goto(f"{service.url}/#/pipelines/wrong?view=program")
    alert = page.get_by_role("alert")
    expect(alert).to_contain_text("line 2, column 25")
    expect(alert).to_contain_text(HOSTILE)
    expect(page.get_by_text("The graph is known when the program is compiled")).to_be_visible()
    expect(page.get_by_role("tab", name="program")).to_have_attribute("aria-selected", "true")
    expect(page.get_by_role("region", name="SQL")).to_contain_text("create table t(id int);")
    page.goto(f"{service.url}/#/pipelines/%2Fno%3Fsuch")
    expect(page.get_by_role("alert")).to_contain_text("There is no such pipeline")


@pytest.mark.core
def test_it_is_readable_in_a_narrow_window_and_in_the_dark(page: Page, service: Service) -> None:
    for number in range(4):
        have(
            service,
            given.failed,
            f"a-pipeline-with-a-rather-long-name-{number}",
            description="what it is about, in many words " * 4,
        )
    page.set_viewport_size({"width": 800, "height": 600})
    page.emulate_media(color_scheme="dark")
    page.goto(service.url)
    expect(page.locator(".pipelines tbody tr")).to_have_count(4)
    expect(page.locator("html")).to_have_attribute("data-theme", "dark")
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    table = "document.querySelector('.scrolls')"
    assert page.evaluate(f"{table}.scrollWidth <= {table}.clientWidth")
    page.get_by_label("Theme").select_option("light")
    expect(page.locator("html")).to_have_attribute("data-theme", "light")
    page.reload()
    expect(page.locator(".pipelines tbody tr")).to_have_count(4)
    expect(page.locator("html")).to_have_attribute("data-theme", "light")
