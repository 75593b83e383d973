"""Files of other machines, read through blocks that are fetched ahead."""

from __future__ import annotations

import io
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from airflow_pipelines.systems.files.remote import AHEAD, BlockFile

DATA = bytes(range(256)) * 4
BLOCK = 100


@pytest.fixture
def pool() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(4) as threads:
        yield threads


def opened(data: bytes, pool: ThreadPoolExecutor, block_bytes: int = BLOCK) -> BlockFile:
    return BlockFile(lambda begin, end: data[begin:end], len(data), pool, block_bytes)


@pytest.mark.parametrize("size", [1, BLOCK - 1, BLOCK, BLOCK + 1, 3 * BLOCK, len(DATA), -1])
@pytest.mark.parametrize("offset", [0, 1, BLOCK - 1, BLOCK, len(DATA) - 1, len(DATA)])
def test_any_part_is_what_the_file_has_there(pool: ThreadPoolExecutor, offset: int, size: int) -> None:
    file = opened(DATA, pool)
    wanted = io.BytesIO(DATA)
    for each in (file, wanted):
        each.seek(offset)
    assert file.read(size) == wanted.read(size)
    assert file.tell() == wanted.tell()
    for each in (file, wanted):
        each.seek(offset)
    assert bytes(file.read_buffer(size)) == wanted.read(size)
    assert file.tell() == wanted.tell()


def test_what_is_in_one_block_is_not_copied(pool: ThreadPoolExecutor) -> None:
    blocks: list[bytes] = []

    def fetch(begin: int, end: int) -> bytes:
        blocks.append(DATA[begin:end])
        return blocks[-1]

    file = BlockFile(fetch, BLOCK, pool, BLOCK)
    file.seek(10)
    buffer = file.read_buffer(20)
    assert buffer.obj is blocks[0]
    file.close()
    # Whoever still has it can read it.
    assert bytes(buffer) == DATA[10:30]


def test_the_next_blocks_are_on_their_way(pool: ThreadPoolExecutor) -> None:
    asked: list[int] = []

    def fetch(begin: int, end: int) -> bytes:
        asked.append(begin // BLOCK)
        return DATA[begin:end]

    file = BlockFile(fetch, len(DATA), pool, BLOCK)
    file.read(1)
    pool.shutdown(wait=True)
    assert sorted(asked) == list(range(AHEAD + 1))


def test_a_block_that_is_too_short_is_no_end(pool: ThreadPoolExecutor) -> None:
    file = BlockFile(lambda begin, end: DATA[begin : end - 1], len(DATA), pool, BLOCK)
    with pytest.raises(EOFError, match="a block ends before byte 99"):
        file.read(BLOCK + 1)


def test_pyarrow_reads_parquet_through_blocks(pool: ThreadPoolExecutor) -> None:
    table = pa.table({"id": range(5_000), "name": [f"name {number % 70}" for number in range(5_000)]})
    written = io.BytesIO()
    pq.write_table(table, written, row_group_size=700)
    assert pq.read_table(opened(written.getvalue(), pool, 1_000)).equals(table)
