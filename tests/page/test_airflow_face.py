"""The page in Airflow: reviews that wait there, the change on the live picture, and texts that want to be code."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, expect

from tests.fixtures.serving import serving
from tests.page.airflow_double import BASE, HOSTILE, AirflowDouble, change, descriptor, relation, review
from tests.page.conftest import Watched

SHOP = "#/pipelines/shop?connection=main"
IN_A_FRAME = """address => {
    const frame = document.createElement('iframe');
    Object.assign(frame, { sandbox: 'allow-scripts allow-same-origin allow-forms', src: address, width: 1000, height: 700 });
    document.documentElement.className = 'dark';
    document.body.replaceChildren(frame);
}"""
LONGEST_TASK = """() => new Promise((resolve) => {
    const seen = [0];
    const take = (list) => seen.push(...list.getEntries().map((entry) => entry.duration));
    new PerformanceObserver(take).observe({ entryTypes: ['longtask'] });
    setTimeout(() => resolve(Math.max(...seen)), 3000);
})"""


@pytest.fixture
def airflow() -> AirflowDouble:
    return AirflowDouble()


@pytest.fixture
def address(airflow: AirflowDouble, processes: None) -> Iterator[str]:
    with serving(airflow.app) as url:
        yield url + BASE


def test_the_change_of_a_running_pipeline_is_on_its_picture(page: Page, airflow: AirflowDouble, address: str) -> None:
    airflow.has(descriptor())
    airflow.reviews = [review()]
    page.goto(address)
    expect(page.get_by_text("A change waits for approval")).to_be_visible()
    page.get_by_role("link", name="shop").click()
    named = {name: page.locator(f'[data-node="relation:{name}"]') for name in ("orders", "kept", "totals", "large")}
    expect(named["totals"]).to_have_attribute("aria-label", "view totals, 25 % · 5/s, changed, 1.2 M entries · 12 s")
    expect(named["large"]).to_have_attribute("aria-label", "view large, view, new, 1.2 M entries · 3 s")
    expect(named["kept"]).to_have_attribute("aria-label", "view kept, 75 % · 50/s, dropped, 4.5 k entries go")
    expect(named["orders"]).to_have_attribute("aria-label", "table orders, table · 95/s")
    assert [named[name].locator(".hatch").count() for name in ("orders", "kept", "totals", "large")] == [0, 0, 1, 1]
    # What the new view reads is drawn, too.
    expect(page.locator("path.edge.effect-new title")).to_contain_text(["orders → totals", "orders → large"])
    expect(page.locator("path.edge.effect-dropped title")).to_contain_text(["orders → kept", "kept → totals"])
    changed = page.locator("section.change")
    expect(changed).to_contain_text(
        "1 changed, 1 new, 1 dropped; 2 views to evaluate anew from 2,400,000 entries in storage, about 15 s."
    )
    expect(changed).to_contain_text("The pipeline goes on with its program until then.")
    expect(changed.locator("mark", has_text="max(x) AS m")).to_have_count(1)
    expect(changed.locator("td.ins", has_text="FROM orders")).to_have_count(1)
    page.get_by_role("button", name="Running program").click()
    expect(page.locator("[data-node]")).to_have_count(5)
    assert airflow.headers == []


@pytest.mark.core
def test_an_approval_is_airflows_own(page: Page, airflow: AirflowDouble, address: str) -> None:
    airflow.has(descriptor())
    airflow.reviews = [review()]
    page.goto(address + SHOP)
    page.get_by_role("button", name="Approve …").focus()
    page.keyboard.press("Enter")
    expect(page.get_by_role("group", name="Confirm")).to_be_visible()
    # A key that is held down answers nothing; the next button is the answer.
    page.keyboard.press("Enter")
    assert airflow.given == []
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    expect(page.get_by_role("status").filter(has_text="Airflow has the answer “Approve”")).to_be_visible()
    assert airflow.given == [{"chosen_options": ["Approve"], "params_input": {}}]
    expect(page.locator("section.change")).to_have_count(0)


@pytest.mark.parametrize(
    ("status", "answer", "said"),
    [
        (403, {"detail": "Forbidden"}, "You may not decide about this. Forbidden"),
        (409, {"detail": "answered"}, "Somebody has answered already. answered"),
        (401, {"detail": "Not authenticated"}, "You are not logged in to Airflow any more"),
    ],
)
def test_what_airflow_refuses_is_said(
    page: Page, airflow: AirflowDouble, address: str, watched: Watched, status: int, answer: object, said: str
) -> None:
    watched.expected.append(str(status))
    airflow.has(descriptor())
    airflow.reviews = [review()]
    airflow.refusal = (status, answer)
    page.goto(address + SHOP)
    page.get_by_role("button", name="Reject …").click()
    page.get_by_role("button", name="Reject, in Airflow").click()
    expect(page.locator("section.change").get_by_role("alert")).to_contain_text(said)
    assert airflow.given == []
    expect(page.get_by_role("button", name="Approve …")).to_be_visible()


def test_what_was_not_shown_cannot_be_approved(page: Page, airflow: AirflowDouble, address: str) -> None:
    # The pipeline waits with another change than the one that the request was written for.
    waiting = change() | {"programs": {"saved": {"hash": "a" * 64, "version": 1}, "new": {"hash": "c" * 64, "version": 3}}}
    airflow.has(descriptor(deployment_status="AwaitingApproval", deployment_runtime_status_details=waiting))
    airflow.reviews = [review()]
    page.goto(address + SHOP)
    expect(page.get_by_role("note")).to_contain_text("written for another change than the one that waits now")
    airflow.reviews = [review(programs=waiting["programs"], params={"strategy": {"value": "keep"}})]
    page.reload()
    expect(page.get_by_role("note")).to_contain_text("answer it in Airflow")
    airflow.reviews = []
    page.reload()
    expect(page.get_by_role("note")).to_contain_text("No task of Airflow asks for this approval")
    expect(page.get_by_role("button", name="Approve")).to_have_count(0)


def test_a_request_whose_pipeline_moved_can_only_be_rejected(page: Page, airflow: AirflowDouble, address: str) -> None:
    airflow.has(descriptor(version=4, program_version=3))
    airflow.answers["overview"]["pipelines"][0] |= {"version": 4, "program_version": 3}
    airflow.reviews = [review(version=1)]
    page.goto(address)
    expect(page.get_by_text("A request for approval was overtaken")).to_be_visible()
    page.goto(address + SHOP)
    expect(page.locator("section.change").get_by_role("note")).to_contain_text("it is version 4 now, and was version 1")
    expect(page.get_by_role("button", name="Approve …")).to_be_disabled()
    airflow.reviews = [review()]
    page.reload()
    expect(page.locator("section.change").get_by_role("note")).to_contain_text("the change was planned for version 1")
    page.get_by_role("button", name="Reject …").click()
    page.get_by_role("button", name="Reject, in Airflow").click()
    expect(page.get_by_role("status").filter(has_text="Airflow has the answer “Reject”")).to_be_visible()


def test_the_newest_request_is_the_one_that_counts(page: Page, airflow: AirflowDouble, address: str) -> None:
    airflow.has(descriptor())
    newer = review(run_id="manual__2", asked_at=2, change=change(relations={}, evaluated={}, dropped={}, rows=0, seconds=0))
    airflow.reviews = [review(asked_at=1), newer]
    page.goto(address + SHOP)
    expect(page.locator("section.change")).to_contain_text("Nothing that is declared differs")
    expect(page.get_by_role("button", name="Approve …")).to_be_enabled()
    expect(page.locator("section.overtaken li")).to_contain_text(["run manual__1"])
    expect(page.locator("section.overtaken")).to_contain_text("A newer request has replaced this one: that of DAG release, run")


def test_no_text_becomes_code(page: Page, airflow: AirflowDouble, address: str) -> None:
    hostile = f"large {HOSTILE}"
    found = descriptor(program_status="SystemError", program_error={"system_error": HOSTILE}, deployment_error={"message": HOSTILE})
    found["program_info"]["dataflow"]["nodes"].append(relation(hostile))
    airflow.has(found)
    patch = f"--- a/p.py\n+++ b/p.py\n@@ -1 +1 @@\n-x = 1\n+x = '{HOSTILE}' # </td></table>\n"
    operator = {
        "uid": HOSTILE,
        "name": HOSTILE,
        "change": "added",
        "kept_states": [],
        "dropped_states": [],
        "reason": HOSTILE,
        "keys": None,
        "bytes": None,
    }
    refusal = {"error_code": "X", "message": HOSTILE}
    airflow.reviews = [
        review(
            change=change(files=[{"path": HOSTILE, "change": "modified", "diff": patch}], operators=[operator], refusals=[refusal])
        )
    ]
    page.goto(address)
    expect(page.locator(".pipelines")).to_contain_text(HOSTILE)
    page.goto(address + SHOP)
    expect(page.locator("td.ins", has_text=HOSTILE)).to_have_count(2)
    expect(page.get_by_role("log")).to_contain_text(HOSTILE)
    page.locator('[data-node="input:orders.in"]').click()
    expect(page.locator("aside.details .errors")).to_contain_text(HOSTILE)
    for tab in ("events", "checkpoints", "program"):
        page.get_by_role("tab", name=tab).click()
    assert page.locator("#app img, #app script").count() == 0
    assert page.title().startswith("shop ")


def test_the_tab_of_a_task_shows_its_pipeline(page: Page, airflow: AirflowDouble, address: str) -> None:
    airflow.has(descriptor())
    airflow.reviews = [review()]
    airflow.task = {"pipeline": "shop", "connection": "main", "review": airflow.reviews[0]}
    page.goto(f"{address}?dag_id=release&run_id=manual__1&task_id=gate&map_index=-1")
    expect(page.locator("section.change")).to_be_visible()
    page.get_by_role("link", name="All pipelines").click()
    expect(page.get_by_role("link", name="shop", exact=True)).to_be_visible()
    airflow.task = {"pipeline": None, "connection": None, "review": None}
    page.go_back()
    expect(page.get_by_text("This task is of no pipeline")).to_be_visible()


def test_in_a_frame_a_link_leads_airflow_itself(page: Page, airflow: AirflowDouble, address: str) -> None:
    airflow.has(descriptor())
    airflow.reviews = [review()]
    # As Airflow frames the pages of plugins: such a frame may not lead the window elsewhere.
    page.goto(address.removesuffix(BASE))
    page.evaluate(IN_A_FRAME, f"{address}?x=1{SHOP}")
    frame = page.frame_locator("iframe")
    expect(frame.locator("html")).to_have_attribute("data-theme", "dark")
    frame.get_by_role("link", name="Open it in Airflow").click()
    page.wait_for_url("**/dags/release/runs/manual__1/tasks/gate/required_actions")


def test_a_view_that_is_recomputed_says_why(page: Page, airflow: AirflowDouble, address: str) -> None:
    found = descriptor()
    part = {"view": "kept", "relation": "kept$1", "message": "no equality joins", "expression": "a < b", "start_line_number": 7}
    found["program_info"]["recomputed"] = [part]
    airflow.has(found)
    page.goto(address + SHOP)
    page.locator('[data-node="relation:kept"]').click()
    expect(page.get_by_role("complementary", name="Details of kept")).to_contain_text("no equality joins: a < b line 7")
    page.locator('[data-node="relation:totals"]').click()
    expect(page.get_by_role("complementary", name="Details of totals")).not_to_contain_text("Recomputed")


def test_the_keyboard_goes_along_the_graph(page: Page, airflow: AirflowDouble, address: str) -> None:
    airflow.has(descriptor())
    page.goto(address + SHOP)
    nodes = page.locator("[data-node]")
    expect(nodes).to_have_count(5)
    assert page.locator('[data-node][tabindex="0"]').count() == 1
    nodes.first.focus()
    for _ in range(3):
        page.keyboard.press("ArrowRight")
    assert page.evaluate("document.activeElement.dataset.node") == "relation:totals"
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("Enter")
    expect(page.get_by_role("complementary", name="Details of kept")).to_contain_text("75 %")
    page.keyboard.press("Escape")
    expect(page.get_by_role("complementary")).to_have_count(0)
    page.get_by_role("tab", name="logs").focus()
    page.keyboard.press("ArrowRight")
    expect(page.get_by_role("tab", name="events")).to_have_attribute("aria-selected", "true")


def test_operators_of_a_stream_program_take_its_place(page: Page, airflow: AirflowDouble, address: str) -> None:
    found = descriptor(stream_files={"p.py": "x"})
    found["program_info"]["dataflow"] = {
        "nodes": [
            relation("orders", "table"),
            relation("alerts"),
            {"id": "relation:stream program", "kind": "stream_program", "name": "stream program"},
        ],
        "edges": [
            {"from": "relation:orders", "to": "relation:stream program"},
            {"from": "relation:stream program", "to": "relation:alerts"},
        ],
    }
    airflow.has(found)
    parts = {"is_keyed": False, "states": None, "kind": "process"}
    airflow.answers["pipelines/shop/stream_graph"] = {
        "name": "p",
        "execution_plan": {"nodes": []},
        "sources": [],
        "operators": [
            {**parts, "uid": "in", "name": "read", "inputs": []},
            {**parts, "uid": "out", "name": "write", "inputs": ["in"], "is_keyed": True},
        ],
        "inputs": [{"uid": "in", "relation": "orders", "with_changes": False}],
        "outputs": [{"uid": "out", "relation": "alerts"}],
    }
    page.goto(address + SHOP)
    expect(page.locator('[data-node="operator:out"]')).to_have_attribute("aria-label", "operator write, process · keyed")
    expect(page.locator('[data-node="relation:stream program"]')).to_have_count(0)
    edges = page.locator("path.edge title")
    expect(edges).to_have_count(3)
    assert [text.split(":")[0] for text in edges.all_text_contents()] == ["read → write", "orders → read", "write → alerts"]


def test_a_graph_of_two_hundred_nodes(page: Page, airflow: AirflowDouble, address: str) -> None:
    found = descriptor()
    names = [f"v{number}" for number in range(200)]
    edges = [{"from": f"relation:v{max(0, number - 1 - number * 7 % 23)}", "to": f"relation:v{number}"} for number in range(1, 200)]
    found["program_info"]["dataflow"] = {"nodes": [relation(name) for name in names], "edges": edges}
    airflow.has(found)
    page.goto(address + SHOP)
    expect(page.locator("[data-node]")).to_have_count(200)
    # New figures come every two seconds: drawing them anew takes a small part of that, also on a busy machine.
    assert page.evaluate(LONGEST_TASK) < 500
    page.get_by_label("Go to a table").fill("v137")
    expect(page.get_by_role("complementary", name="Details of v137")).to_be_visible()
    expect(page.locator('[data-node="relation:v137"]')).to_be_in_viewport()


READS = {
    'create view v as select a, orders from Big b, (select 1 from inside) x join "Last" on orders = b.c': ["Last", "big", "inside"],
    "with c as (select * from t where x in (select y from u)) select count(*) as n, z from c group by z, w": ["c", "t", "u"],
    "select 'from none' /* from none */ from `odd``one` -- from none\n, lateral explode(a), table f": ["explode", "f", "odd`one"],
    "select 1 union select 2 from a, b where c = 1 and d in (1, e) order by f, g": ["a", "b"],
    "((": [],
}


@pytest.mark.core
def test_what_a_statement_reads(page: Page, airflow: AirflowDouble, address: str) -> None:
    airflow.has(descriptor())
    page.goto(address)
    read = "async sql => [...(await import(new URL('js/sql_names.js', document.baseURI))).namesRead(sql)].sort()"
    assert {sql: page.evaluate(read, sql) for sql in READS} == READS
