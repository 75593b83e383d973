"""Reads the manifest of a folder of files as the documentation says."""

from __future__ import annotations

import json
from typing import Any


def listed(filesystem: Any, folder: str) -> list[dict[str, Any]]:
    """The files that the manifest of a folder has, by step.

    :param filesystem: of fsspec
    :param folder: the folder
    """
    commits = [path for path in filesystem.ls(f"{folder}/_commits", detail=False) if path.endswith(".json") and "/." not in path]
    steps = {path: [int(step) for step in path.rpartition("/")[2].removesuffix(".json").split("-")] for path in commits}
    files: list[dict[str, Any]] = []
    done = -1
    for path in sorted(steps, key=lambda each: (steps[each][0], -steps[each][-1])):
        if steps[path][-1] > done:
            files += json.loads(filesystem.cat_file(path))["files"]
            done = steps[path][-1]
    return files
