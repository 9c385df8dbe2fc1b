"""A checkpoint's column in pieces is the column."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from delta_core.actions.checkpoint_schema import CHECKPOINT_SCHEMA
from delta_core.checkpoint.classic import write_checkpoint
from delta_core.errors import CorruptLogError
from delta_core.log.checkpoint_part import CheckpointPart
from delta_core.replay.checkpoint_chunk import CheckpointChunk, stream_column
from delta_core.replay.file_chunk import FileChunk
from delta_core.replay.live_files import LiveFiles
from delta_core.snapshot.snapshot import Snapshot
from tests.support.log_builder import LogBuilder, add, remove

FILES = 40


@pytest.fixture
def log(tmp_path: Path) -> LogBuilder:
    made = LogBuilder(tmp_path).create()
    adds = [add(f"part-{n}", stats=f'{{"numRecords":{n}}}' if n % 7 else None) for n in range(FILES)]
    made.commit(*adds)
    made.commit(*(remove(f"part-{n}", deletion_timestamp_ms=made.clock.now_ms()) for n in range(0, FILES, 3)))
    write_checkpoint(Snapshot.load(made.store, clock=made.clock))
    return made


def shuffled(log: LogBuilder, *, seed: int, group_rows: int) -> LiveFiles:
    """The files of a checkpoint whose rows are in no order, and one of a commit."""
    (path,) = log.log.glob("*.checkpoint.parquet")
    table = pq.read_table(path)
    rows = random.Random(seed).sample(range(table.num_rows), table.num_rows)
    pq.write_table(table.take(rows).cast(CHECKPOINT_SCHEMA), path, row_group_size=group_rows)
    log.commit(add("later", stats='{"numRecords":1000}'))
    return Snapshot.load(log.store, clock=log.clock).files


def joined(pieces: Iterator[tuple[FileChunk, pa.Array]], rows: int) -> list[str | None]:
    found: list[str | None] = []
    for _, values in pieces:
        assert len(values) <= rows
        found += values.to_pylist()
    return found


@pytest.mark.parametrize("rows", [1, 4, 1000])
@pytest.mark.parametrize("group_rows", [5, 1000])
@pytest.mark.parametrize("run_rows", [3, 1000])
def test_every_row_once(
    log: LogBuilder, monkeypatch: pytest.MonkeyPatch, rows: int, group_rows: int, run_rows: int
) -> None:
    monkeypatch.setattr("delta_core.log.checkpoint_part.BATCH_ROWS", run_rows)
    files = shuffled(log, seed=rows + group_rows, group_rows=group_rows)
    pieces = joined(stream_column(files.chunks, "stats", rows=rows), rows)
    assert pieces == [text for chunk in files.chunks for text in chunk.column("stats").to_pylist()]
    assert pieces == files.to_table(["stats"]).column("stats").to_pylist()
    assert len(pieces) == FILES - len(range(0, FILES, 3)) + 1


def test_files_of_commits_come_in_pieces_too(log: LogBuilder) -> None:
    log.commit(*(add(f"later-{n}", stats=f"{n}") for n in range(9)))
    chunk = Snapshot.load(log.store, clock=log.clock).files.chunks[-1]
    pieces = [values.to_pylist() for _, values in stream_column([chunk], "stats", rows=4)]
    assert pieces == [["0", "1", "2", "3"], ["4", "5", "6", "7"], ["8"]]
    assert joined(stream_column([chunk], "clustering_provider", rows=4), 4) == [None] * 9


def test_chunks_in_any_order(log: LogBuilder) -> None:
    chunks = shuffled(log, seed=4, group_rows=9).chunks[::-1]
    by_chunk = {id(chunk): chunk.column("stats").to_pylist() for chunk in chunks}
    found: dict[int, list[str | None]] = {}
    for chunk, values in stream_column(chunks, "stats", rows=1000):
        found.setdefault(id(chunk), []).extend(values.to_pylist())
    assert found == by_chunk


def test_some_of_the_chunks(log: LogBuilder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("delta_core.log.checkpoint_part.BATCH_ROWS", 3)
    chunks = shuffled(log, seed=1, group_rows=20).chunks[1::2]
    found: dict[int, list[str | None]] = {}
    for chunk, values in stream_column(chunks, "stats", rows=2):
        found.setdefault(id(chunk), []).extend(values.to_pylist())
    assert found == {id(chunk): chunk.column("stats").to_pylist() for chunk in chunks}


@pytest.mark.parametrize("more", [-1, 1])
def test_a_column_of_another_length(log: LogBuilder, monkeypatch: pytest.MonkeyPatch, more: int) -> None:
    files = shuffled(log, seed=2, group_rows=1000)
    stream = CheckpointPart.stream

    def wrong(part: CheckpointPart, *arguments: object, **options: object) -> Iterator[pa.StructArray]:
        (rows,) = stream(part, *arguments, **options)  # type: ignore[arg-type]
        yield rows.slice(1) if more < 0 else pa.concat_arrays([rows, rows.slice(0, 1)])

    monkeypatch.setattr(CheckpointPart, "stream", wrong)
    with pytest.raises(CorruptLogError, match=r"The column add\.stats does not have \d+ rows"):
        joined(stream_column(files.chunks, "stats", rows=1000), 1000)


def test_what_is_streamed_is_not_kept(log: LogBuilder) -> None:
    (chunk, *_) = shuffled(log, seed=3, group_rows=1000).chunks
    assert isinstance(chunk, CheckpointChunk)
    joined(stream_column([chunk], "stats", rows=1000), 1000)
    assert "stats" not in chunk._columns
