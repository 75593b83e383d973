"""The files of the page, as browsers get them."""

from __future__ import annotations

from pathlib import Path

import pytest

from airflow_pipelines.serving import page_files as module
from airflow_pipelines.serving.page_files import page_files, page_response


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A page with a script, and with what is not served."""
    page = tmp_path / "page"
    (page / "js").mkdir(parents=True)
    (page / "index.html").write_text("<p>page</p>")
    (page / "js" / "app.js").write_text("1")
    (page / "LICENSE").write_text("licence")
    (tmp_path / "secret.json").write_text("{}")
    monkeypatch.setattr(module, "FOLDER", page)
    return page


def test_a_file_comes_with_its_type_and_a_policy_that_lets_nothing_else_in(folder: Path) -> None:
    assert page_files() == ["index.html", "js/app.js"]
    index, script = page_response("", {}, framed_by="'none'"), page_response("js/app.js", {}, framed_by="'self'")
    assert index is not None
    assert script is not None
    assert (index.body, index.headers["content-type"]) == (b"<p>page</p>", "text/html; charset=utf-8")
    assert script.headers["content-type"] == "text/javascript; charset=utf-8"
    policy = script.headers["content-security-policy"]
    assert "default-src 'none'; script-src 'self';" in policy
    assert policy.endswith("frame-ancestors 'self'")
    assert script.headers["x-content-type-options"] == "nosniff"


def test_a_file_that_the_browser_has_is_not_sent_again_until_it_changes(folder: Path) -> None:
    first = page_response("js/app.js", {}, framed_by="'none'")
    assert first is not None
    known = {"if-none-match": first.headers["etag"]}
    again = page_response("js/app.js", known, framed_by="'none'")
    assert again is not None
    assert (again.status_code, again.body) == (304, b"")
    (folder / "js" / "app.js").write_text("23")
    changed = page_response("js/app.js", known, framed_by="'none'")
    assert changed is not None
    assert (changed.status_code, changed.body) == (200, b"23")


@pytest.mark.parametrize(
    "path",
    [
        "../secret.json",
        "js/../../secret.json",
        "/etc/hosts.json",
        "js//app.js",
        "./index.html",
        "LICENSE",
        "js",
        "js/",
        "none.js",
        "..",
        "\0.js",
    ],
)
def test_nothing_else_is_served(folder: Path, path: str) -> None:
    assert page_response(path, {}, framed_by="'none'") is None
