"""What tests of the process of a program share: programs whose sources are fed, and whose results are rows of a relation."""

import contextlib
import shutil
import tempfile
import uuid
from pathlib import Path

import pyarrow as pa

from airflow_pipelines.datastream.common import WatermarkStrategy
from airflow_pipelines.streams.graph.chains import Defaults, plan_of
from airflow_pipelines.streams.operators.base import TaskSettings
from airflow_pipelines.streams.processes import ProcessSettings
from airflow_pipelines.streams.relations import RelationSink
from airflow_pipelines.streams.sources import CollectionSource
from airflow_pipelines.streams.state.database import StateDatabase
from airflow_pipelines.streams.worker.bound import bind
from airflow_pipelines.streams.worker.client import WorkerProcess
from airflow_pipelines.streams.worker.messages import FeedKind, Open, SourceFeed, elements_payload
from airflow_pipelines.streams.worker.rest import Rest
from airflow_pipelines.streams.worker.run import ProgramRun
from airflow_pipelines.streams.worker.stored_state import StoredState
from tests.datastream.programs import IN_MEMORY

ROOT = str(Path(__file__).parents[3])
TEXT = pa.schema([("text", pa.string())])


def as_text(value):
    return 0, (repr(value),)


class Endless(CollectionSource):
    is_bounded = False


def source(env, uid="in", strategy=None, bounded=True):
    made = CollectionSource([]) if bounded else Endless([])
    return env.from_source(made, strategy or WatermarkStrategy.no_watermarks(), uid).uid(uid)


def program(stream, to_row=as_text, schema=TEXT, types=(("text", "STRING"),), parallelism=1, **settings):
    """A stream whose elements become rows of the relation ``out``, as a bound program."""
    sink = RelationSink("out", types, to_row, None, schema.serialize().to_pybytes())
    node = stream.sink_to(sink).uid("out").set_parallelism(1)._node
    env = stream.get_execution_environment()
    env._take_sinks()
    return bind(plan_of(env.graph, [node.id], Defaults(parallelism)), TaskSettings(**settings))


def splits(number, uid="in"):
    return SourceFeed(uid, -1, FeedKind.SPLITS, number)


def elements(values, split=0, uid="in", timestamps=None):
    return SourceFeed(uid, split, FeedKind.ELEMENTS, len(values), elements_payload(list(values), timestamps))


def ended(split=0, uid="in"):
    return SourceFeed(uid, split, FeedKind.ENDED)


def rows(stepped):
    """All rows of a step, without their kinds."""
    return [tuple(row.values())[:-1] for output in stepped.outputs for row in _table(output).to_pylist()]


def kinds(stepped):
    return [row["__kind"] for output in stepped.outputs for row in _table(output).to_pylist()]


def _table(output):
    with pa.ipc.open_stream(output.data) as reader:
        return reader.read_all()


_FOLDERS = tempfile.TemporaryDirectory(prefix="stream-state-", dir=IN_MEMORY)


def new_folder():
    """The path of a folder that does not exist."""
    return Path(_FOLDERS.name) / uuid.uuid4().hex


class Kept:
    """State as it is kept outside of the process."""

    def __init__(self):
        self.files = None
        self.rest = None

    def save(self, process):
        """Take a checkpoint of a process, or of a run."""
        folder = new_folder()
        changes = process.take_checkpoint(folder if isinstance(process, ProgramRun) else str(folder))
        self.rest = changes.rest
        self.files = folder if changes.has_files else None

    def keys(self):
        """The numbers of operators and the key groups of all rows."""
        with contextlib.closing(StateDatabase(Path(self.stored()))) as database:
            return [key[:5] for key, _ in database.scan(b"", b"\xff" * 8) if key[2] == 0]

    def stored(self):
        """A folder with the files of the database, for another process."""
        folder = new_folder()
        if self.files is not None:
            shutil.copytree(self.files, folder)
        return str(folder)


class Held:
    """A program in this process that is used as one in its own."""

    def __init__(self, bound):
        self._bound = bound

    def open(self, rest=None, pages=(), dropped=frozenset(), *, schemas=None, now_ms=None, database=None):
        self._run, opened = begin(self._bound, rest, database, dropped, schemas=schemas, now_ms=now_ms, pages=pages)
        return opened

    def step(self, now_ms, feeds):
        return self._run.step(now_ms, feeds)

    def take_checkpoint(self, folder):
        return self._run.take_checkpoint(Path(folder))

    def notify_checkpoint_complete(self):
        self._run.notify_checkpoint_complete()

    def close(self, kill_after_s=0):
        self._run.close()


def begin(bound, rest=None, database=None, dropped=frozenset(), *, schemas=None, now_ms=None, pages=()):
    stored = StateDatabase(Path(database) if database else new_folder())
    opening = Open(bound.to_bytes(), str(stored.folder), rest, dropped, schemas or {}, now_ms)
    state = StoredState(None if rest is None else Rest.from_bytes(rest), stored, dropped)
    run = ProgramRun(bound, opening, state, pages)
    return run, run.make_opening_reply()


class Started(WorkerProcess):
    """The process of a program, with a database in a folder that vanishes."""

    def open(self, *arguments, database=None, **named):
        return super().open(*arguments, database=database or str(new_folder()), **named)


def start(bound, lines=None, memory_bytes=None, **settings):
    """The process of a program; what it prints goes to a list."""
    printed = [] if lines is None else lines
    process = ProcessSettings(paths=settings.pop("paths", (ROOT,)), **settings)
    return Started(bound.to_bytes(), process, lambda stream, line: printed.append((stream, line)), memory_bytes)
