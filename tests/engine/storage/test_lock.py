"""The lock of a storage folder."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from airflow_pipelines.engine.storage.errors import StorageError, StorageProblem
from airflow_pipelines.engine.storage.lock import StorageLock, StorageLockedError


def test_a_folder_has_one_holder(tmp_path: Path) -> None:
    lock = StorageLock(tmp_path / "new" / "storage")
    with pytest.raises(StorageLockedError, match=f"in use by process {os.getpid()} on .*stop that one first"):
        StorageLock(tmp_path / "new" / "storage")
    lock.release()
    lock.release()
    StorageLock(tmp_path / "new" / "storage").release()


@pytest.mark.core
@pytest.mark.processes
def test_a_holder_that_died_leaves_the_folder_free(tmp_path: Path) -> None:
    code = (
        "import os, sys; from pathlib import Path; from airflow_pipelines.engine.storage.lock import StorageLock;"
        "lock = StorageLock(Path(sys.argv[1])); os.kill(os.getpid(), 9)"
    )
    assert subprocess.run([sys.executable, "-c", code, str(tmp_path)], check=False).returncode == -9
    StorageLock(tmp_path).release()


def test_a_folder_that_cannot_be_used_is_named(tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("not a folder")
    with pytest.raises(StorageError, match=r"/file is no folder, and a folder has to be there\. .* or choose another folder"):
        StorageLock(blocked / "storage")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_without_permission_is_named(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    with pytest.raises(StorageError, match="Permission denied") as raised:
        StorageLock(tmp_path / "storage")
    assert raised.value.problem is StorageProblem.READ_ONLY
