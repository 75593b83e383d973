"""The files of the page that shows pipelines, for both servers of it: the service and Airflow's plugin."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path, PurePosixPath
from typing import Final

from starlette.responses import Response

FOLDER: Final = Path(__file__).parents[1] / "page"
INDEX: Final = "index.html"
TYPES: Final[Mapping[str, str]] = {
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".mjs": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".svg": "image/svg+xml",
    ".png": "image/png",
    ".ico": "image/x-icon",
    ".woff2": "font/woff2",
    ".json": "application/json",
    ".map": "application/json",
}
"""The content types of the served files, by suffix. Other files of the folder, such as licences, are not served."""


def page_files() -> list[str]:
    """Return the paths of all served files, relative to the page's own."""
    paths = (file.relative_to(FOLDER).as_posix() for file in FOLDER.rglob("*") if file.is_file() and file.suffix in TYPES)
    return sorted(paths)


def page_response(path: str, given: Mapping[str, str], *, framed_by: str) -> Response | None:
    """Answer a request for one of the files.

    :param path: the file's path as in the URL, relative to the page's; empty for the page itself
    :param given: the request's headers
    :param framed_by: the pages that may show it in a frame, as a source of Content-Security-Policy
    :returns: the file, 304 if the browser has it already, or None if there is no such file
    """
    name = path or INDEX
    parts = PurePosixPath(name).parts
    if name != PurePosixPath(name).as_posix() or ".." in parts or name.startswith("/") or Path(name).suffix not in TYPES:
        return None
    file = FOLDER / name
    try:
        tag = _tag(file, file.stat().st_mtime_ns)
    except (OSError, ValueError):
        # A name with a NUL is no name of a file at all.
        return None
    headers = _headers(framed_by) | {"ETag": tag}
    if given.get("if-none-match") == tag:
        return Response(status_code=304, headers=headers)
    return Response(file.read_bytes(), headers=headers | {"Content-Type": TYPES[file.suffix]})


def _headers(framed_by: str) -> dict[str, str]:
    policy = (
        # The page loads only its own files, and connects only to its own server.
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; "
        f"connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors {framed_by}"
    )
    return {
        "Content-Security-Policy": policy,
        "X-Content-Type-Options": "nosniff",
        "Referrer-Policy": "same-origin",
        # Revalidated each time, mostly with 304: files of two releases must not be mixed.
        "Cache-Control": "no-cache",
    }


@lru_cache(maxsize=256)
def _tag(file: Path, _changed_ns: int) -> str:
    return f'"{hashlib.sha256(file.read_bytes()).hexdigest()[:32]}"'
