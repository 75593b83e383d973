"""The restoring of a Delta table to an older version, in a process of its own.

The library holds up all threads of its process while it restores, which takes as long as the store takes to answer.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping
from typing import Any, Final

_LONGEST_S: Final = 600
_PROGRAM: Final = """
import json, sys
from deltalake import CommitProperties, DeltaTable, Transaction
given = json.load(sys.stdin)
transactions = [Transaction(*each) for each in given["transactions"]]
properties = CommitProperties(custom_metadata=given["metadata"], app_transactions=transactions)
try:
    table = DeltaTable(given["uri"], version=given["newest"], storage_options=given["storage"])
    table.restore(given["version"], commit_properties=properties)
except Exception as error:
    sys.exit(f"error {type(error).__name__}: {error}")
"""


class NotRestoredError(Exception):
    """The error for a table that was not restored; its message says why."""


def restore(uri: str, storage: Mapping[str, str], newest: int, version: int, properties: Mapping[str, Any]) -> None:
    """Restore a table.

    :param uri: the table
    :param storage: the options for access to its store
    :param newest: the newest version of the table
    :param version: the version to restore
    :param properties: ``metadata`` and ``transactions`` of the commit
    :raises NotRestoredError: when that cannot be done, or others have committed meanwhile
    """
    given = {"uri": uri, "storage": dict(storage), "newest": newest, "version": version, **properties}
    command = [sys.executable, "-c", _PROGRAM]
    try:
        done = subprocess.run(command, input=json.dumps(given), capture_output=True, text=True, timeout=_LONGEST_S, check=False)
    except subprocess.TimeoutExpired as error:
        raise NotRestoredError(f"it was not restored within {_LONGEST_S} s") from error
    if done.returncode:
        raise NotRestoredError(done.stderr.rpartition("error ")[2].strip() or f"the process ended with {done.returncode}")
