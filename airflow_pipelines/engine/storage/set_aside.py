"""Files that a pipeline left behind when it went back to an older checkpoint.

They are renamed, and deleted only when its storage is cleared.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Final

from uuid6 import uuid7

from airflow_pipelines.engine.storage import manifest
from airflow_pipelines.engine.storage.durable import sync_folder
from airflow_pipelines.engine.storage.errors import StorageError, storage_access
from airflow_pipelines.engine.storage.journal import FILE, read_journal
from airflow_pipelines.engine.storage.journal_end import FILE as END

FOLDER: Final = "set-aside"


def set_aside(folder: Path, manifests: Iterable[Path]) -> Path | None:
    """Move manifests and the journal out of the way.

    If this is interrupted anywhere, something that is left names what is missing, which is an error at the next start: the note of
    the newest checkpoint, the journal, or its end.

    :param folder: the storage folder
    :param manifests: the manifests to move with the journal, newest first
    :returns: the folder that has them now; None if there was nothing to move
    :raises StorageError: when something cannot be moved
    """
    paths = [path for path in (*manifests, folder / FILE, folder / END) if path.exists()]
    if not paths:
        return None
    target = folder / FOLDER / str(uuid7())
    with storage_access(target):
        target.mkdir(parents=True)
        for path in paths:
            path.rename(target / path.name)
        for changed in {target, *(path.parent for path in paths)}:
            sync_folder(changed)
    return target


def files_set_aside(folder: Path) -> set[str]:
    """Return the batch files that are needed to resume from what was set aside, as far as that can be read.

    :param folder: the storage folder
    :returns: their names
    """
    names: set[str] = set()
    for aside in (folder / FOLDER).iterdir() if (folder / FOLDER).is_dir() else ():
        for path in aside.glob("*.json"):
            try:
                names.update(manifest.read(path, None).get("files", ()))
            except StorageError:
                # Damage may be the reason why it was set aside.
                continue
        try:
            journal = read_journal(aside)
        except StorageError:
            continue
        names |= set() if journal is None else journal.files()
    return names
