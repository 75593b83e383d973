"""The page of a service with a real pipeline on a real host: what it shows of it, and what a decision on it does."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest
import uvicorn
from fastapi import FastAPI
from playwright.sync_api import Page, Route, expect

from airflow_pipelines import BootstrapPolicy, Pipeline, PipelineBuilder, PipelineClient, PipelineStatus
from tests.fixtures.serving import serving
from tests.page.conftest import Watched

if TYPE_CHECKING:
    from tests.inprocess_host import InProcessHost


SQL = """
create table orders (id bigint, amount bigint) with ('materialized' = 'true');
create materialized view totals as select count(*) as n, sum(amount) as s from orders;
create materialized view small as select id from orders where amount < 3;
"""
CHANGED = SQL.replace("sum(amount) as s", "max(amount) as m").replace("view small", "view tiny").replace("< 3", "< 2")
CHANGED_AGAIN = SQL.replace("sum(amount) as s", "min(amount) as m")


@pytest.fixture
def url(warm_host: InProcessHost, service_app: FastAPI) -> Iterator[str]:
    """The service of the warm host, served. Others use it afterwards, so it is not ended with the server."""
    config = uvicorn.Config(service_app, log_level="warning", timeout_graceful_shutdown=1, lifespan="off")
    with serving(service_app, config=config) as url:
        yield url


@pytest.fixture
def pipeline(embedded_client: PipelineClient, pipeline_name: str) -> Pipeline:
    """A pipeline that runs and has taken in five rows."""
    pipeline = PipelineBuilder(embedded_client, pipeline_name, SQL).create_or_replace()
    pipeline.start(timeout_s=60)
    pipeline.input_json("orders", [{"id": number, "amount": number} for number in range(5)])
    return pipeline


def changed(pipeline: Pipeline, sql: str, *, force: bool = False) -> None:
    """Let a pipeline wait with another program for approval."""
    pipeline.stop(force=force, timeout_s=60)
    pipeline.modify(sql=sql)
    pipeline.start(bootstrap_policy=BootstrapPolicy.AWAIT_APPROVAL, timeout_s=60)


@pytest.mark.core(slow_because="a browser follows a pipeline from its start to the approval of a change")
def test_a_pipeline_and_the_approval_of_its_change(page: Page, watched: Watched, url: str, pipeline: Pipeline) -> None:
    # A pipeline that starts, or waits, has no statistics yet.
    watched.expected.append("503")
    page.goto(url)
    row = page.locator(".pipelines tbody tr", has=page.get_by_role("link", name=pipeline.name, exact=True))
    expect(row).to_contain_text("Running")
    page.get_by_role("link", name=pipeline.name, exact=True).click()
    expect(page.locator('[data-node="relation:totals"]')).to_be_visible()
    expect(page.locator("path.edge title")).to_have_count(2)
    expect(page.locator(".facts")).to_contain_text("5 rows")
    expect(page.locator(".chart canvas")).to_have_count(2)
    expect(page.get_by_role("log")).to_contain_text("now Running")
    page.get_by_role("tab", name="checkpoints").click()
    expect(page.get_by_text("No checkpoints")).to_be_visible()

    # The same page goes on with what happens to the pipeline.
    changed(pipeline, CHANGED)
    expect(page.locator("section.change")).to_contain_text("1 changed, 1 new, 1 dropped; 2 views to evaluate anew")
    expect(page.locator('[data-node="relation:small"]')).to_have_class("node kind-view heat-0 effect-dropped")
    expect(page.locator("section.change mark", has_text="max")).to_have_count(1)
    expect(page.locator("table.checkpoints tbody tr")).to_have_count(1)
    page.get_by_role("button", name="Approve …").click()
    assert pipeline.status() is PipelineStatus.AWAITINGAPPROVAL
    page.get_by_role("button", name="Approve this change").click()
    expect(page.get_by_role("status").filter(has_text="Approved")).to_be_visible()
    expect(page.locator(".pill").first).to_have_text("Running")
    assert list(pipeline.query("select * from totals")) == [{"n": 5, "m": 4}]
    expect(page.locator('[data-node="relation:tiny"]')).to_be_visible()
    expect(page.locator('[data-node="relation:small"]')).to_have_count(0)


def test_what_was_shown_is_what_is_approved_or_nothing(page: Page, watched: Watched, url: str, pipeline: Pipeline) -> None:
    watched.expected += ["503", "412"]
    changed(pipeline, CHANGED)
    page.goto(f"{url}/#/pipelines/{pipeline.name}")
    expect(page.locator("section.change mark", has_text="max")).to_have_count(1)

    def as_before(route: Route) -> None:
        route.fulfill(body=shown.body(), content_type="application/json")

    shown = page.request.get(f"{url}/v0/pipelines/{pipeline.name}?selector=status")
    page.route("**/v0/pipelines/*?selector=status", as_before)
    changed(pipeline, CHANGED_AGAIN, force=True)
    page.get_by_role("button", name="Approve …").click()
    page.get_by_role("button", name="Approve this change").click()
    expect(page.locator("section.change").get_by_role("alert")).to_contain_text(
        "Another change waits by now, and nothing was approved"
    )
    assert pipeline.status() is PipelineStatus.AWAITINGAPPROVAL
    # Then the page shows what waits, and a rejection stops the pipeline with its checkpoint.
    page.unroute("**/v0/pipelines/*?selector=status")
    expect(page.locator("section.change mark", has_text="min")).to_have_count(1)
    page.get_by_role("button", name="Reject and stop …").click()
    page.get_by_role("button", name="Reject, and stop the pipeline").click()
    expect(page.locator(".pill").first).to_have_text("Stopped")
    page.get_by_role("tab", name="checkpoints").click()
    expect(page.locator("table.checkpoints tbody tr")).to_have_count(1)
