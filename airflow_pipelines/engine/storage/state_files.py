"""Files of the database that an operator keeps its state in, as parts of checkpoints: a store of batches has them, too.

A database never changes a file with rows. So a checkpoint shares these with the database, and with earlier checkpoints, as Flink's
incremental checkpoints do, and costs what has changed.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from airflow_pipelines.engine.storage.batch_store import STATE, BatchStore, link_or_copy
from airflow_pipelines.engine.storage.errors import storage_access

_IMMUTABLE = ".sst"
"""The end of the names of files with rows, which a database may share with the store."""


@dataclass(frozen=True, eq=False)
class StateFiles:
    """The files of a database in a store. They stay there for as long as something refers to this.

    :param names: their names in the store, by the names that the database gave them
    """

    names: Mapping[str, str] = field(default_factory=dict)

    @property
    def files(self) -> tuple[str, ...]:
        """The names in the store."""
        return tuple(self.names.values())


NO_STATE_FILES = StateFiles()


def hold_state(store: BatchStore, names: Mapping[str, str]) -> StateFiles:
    """Return files that are in a store.

    :param store: the store
    :param names: their names there, by the names that the database gave them
    """
    files = StateFiles(dict(names))
    store.hold(files)
    return files


def adopt_state(store: BatchStore, folder: Path, before: StateFiles) -> StateFiles:
    """Take the files of a database into a store, and remove the folder.

    :param store: the store
    :param folder: a folder with the files of a checkpoint of the database
    :param before: the files of the last checkpoint of the same database: those that are still the same are not read again
    :returns: the files
    :raises StorageError: when a file cannot be read or linked
    """
    names: dict[str, str] = {}
    with store.lock, storage_access(store.folder):
        for path in sorted(folder.iterdir()):
            known = before.names.get(path.name)
            names[path.name] = known if known and _is_same_file(path, store.path(known)) else store.adopt_copy(path, STATE)
        files = hold_state(store, names)
    shutil.rmtree(folder, ignore_errors=True)
    return files


def link_state(store: BatchStore, files: StateFiles, folder: Path) -> None:
    """Make a folder with the files of a database.

    :param store: the store that has them
    :param files: the files
    :param folder: the folder, which does not exist
    :raises StorageError: when a file is missing or damaged, or cannot be linked
    """
    with storage_access(folder):
        folder.mkdir(parents=True)
    for name, stored in files.names.items():
        path = store.open(stored)
        with storage_access(path):
            if name.endswith(_IMMUTABLE):
                link_or_copy(path, folder / name)
            else:
                shutil.copyfile(path, folder / name)


def _is_same_file(path: Path, other: Path) -> bool:
    return other.exists() and path.samefile(other)
