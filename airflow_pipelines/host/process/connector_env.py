"""Which variables of the host's environment connectors may read."""

from __future__ import annotations

import os
from collections.abc import Sequence
from fnmatch import fnmatchcase


def connector_environment(allowed: Sequence[str]) -> dict[str, str]:
    """The variables of this process's environment that connectors may name as ``${env:NAME}``.

    :param allowed: names, in which ``*`` stands for any letters
    """
    return {name: value for name, value in os.environ.items() if any(fnmatchcase(name, pattern) for pattern in allowed)}
