"""The rows of files that deletion vectors choose, as bitmaps that Spark broadcasts.

A mask is an array of 64-bit words, one bit for each row of a file. Small masks are made by the driver. Large
ones are made in Spark's tasks, from the descriptors in the log, because a Connect server is slow in taking
large local data. When the masks of whole files would be too much to broadcast, only those chunks of 4,096
rows that have a bit become rows of the broadcast table.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from delta_core.deletion_vectors.roaring import Positions
from delta_core.deletion_vectors.row_choice import RowChoice
from delta_core.errors import InvalidTableError
from delta_core.storage import LogStore
from delta_core.storage.data_access import DataAccess
from delta_core.storage.parallel import parallel
from spark_jobs.engine_io import ExecutorReach, TableReach
from spark_jobs.packaging import ensure_importable
from spark_jobs.partitioning import one_row_per_partition
from spark_jobs.session import is_connect
from spark_jobs.worker_tasks import BatchFunction, plain_errors

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

CHUNK_BITS = 12
"""A chunk has 2^12 rows."""

LOCAL_BYTES = {False: 32 << 20, True: 1 << 20}
"""How many bytes of masks the driver makes at most, by whether the session is of Spark Connect."""

WHOLE_FILE_BYTES = 50 << 20
"""How many bytes of masks of whole files are broadcast at most."""

_TASKS = 64

Words = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True)
class RowMasks:
    """The choice of rows of some files, all of them with the same `keeps_listed`.

    Attributes:
        choices: one for each file.
        num_rows: the number of rows of each file, including those that are not chosen.
        reach: the stores of the table and of its deletion vectors, in the driver and in tasks.
    """

    choices: Sequence[RowChoice] = field(repr=False)
    num_rows: Sequence[int] = field(repr=False)
    reach: TableReach

    @property
    def keeps_listed(self) -> bool:
        """Whether the rows with a bit are the chosen rows."""
        return self.choices[0].keeps_listed


@dataclass(frozen=True, slots=True, kw_only=True)
class Masks:
    """The masks of some files.

    Attributes:
        words: the words of each file in order, if the driver made them.
        frame: else the columns `file` (the index of the file), `chunk` and `words`.
        chunked: whether a row of `frame` has the words of a chunk. Otherwise each file has one row with all
            of its words.
    """

    words: pa.Array | None = None
    frame: DataFrame | None = None
    chunked: bool = False


def make_masks(spark: SparkSession, paths: Sequence[str], masks: RowMasks) -> Masks:
    """The masks of the files, made by the driver or by Spark's tasks when an action runs.

    Raises:
        InvalidTableError: a deletion vector is damaged, or refers to rows that its file does not have.
        MissingDataFileError: a deletion vector's file is missing.
    """
    bytes_of_files = sum(rows // 8 for rows in masks.num_rows)
    tasks = [
        {
            "file": index,
            "path": path,
            "num_rows": rows,
            "rows": choice.to_document(),
        }
        for index, (path, rows, choice) in enumerate(zip(paths, masks.num_rows, masks.choices, strict=True))
    ]
    if bytes_of_files <= LOCAL_BYTES[is_connect(spark)]:
        store, access = masks.reach.store, masks.reach.access
        calls = [partial(_positions, task, store, access) for task in tasks]
        made = [whole_file_words(positions) for positions in parallel(store, calls)]
        return Masks(words=_lists(made))
    ensure_importable(spark)
    chunked = bytes_of_files > WHOLE_FILE_BYTES
    count = min(len(tasks), _TASKS)
    groups = [(index, json.dumps(tasks[index::count])) for index in range(count)]
    frame = one_row_per_partition(spark.createDataFrame(groups, "i int, tasks string"), count, "i")
    frame = frame.mapInArrow(
        _in_tasks(masks.reach.in_executors, chunked), "file int, chunk bigint, words array<bigint>"
    )
    return Masks(frame=frame, chunked=chunked)


def is_listed(words: Column, position: Column) -> Column:
    """Whether a row has a bit in the words of its file or chunk; false without words."""
    from pyspark.sql import functions as fn

    word = fn.get(words, fn.shiftright(position, 6).cast("int"))
    bit = fn.getbit(word, position.bitwiseAND(63).cast("int"))
    return fn.coalesce(bit, fn.lit(0).cast("tinyint")) == 1


def whole_file_words(positions: Positions) -> Words:
    """The words of a whole file, up to the last word with a bit."""
    length = 0 if not len(positions) else (int(positions[-1]) >> 6) + 1
    bits = np.zeros(length * 64, np.bool_)
    bits[positions] = True
    return np.packbits(bits, bitorder="little").view("<i8")


def chunk_words(positions: Positions) -> tuple[npt.NDArray[np.int64], Words]:
    """The numbers of the chunks that have a bit, and the words of each."""
    chunks, row = np.unique(positions >> CHUNK_BITS, return_inverse=True)
    bits = np.zeros((len(chunks), 1 << CHUNK_BITS), np.bool_)
    bits[row, positions & ((1 << CHUNK_BITS) - 1)] = True
    return chunks, np.packbits(bits, axis=1, bitorder="little").view("<i8")


def _positions(task: Mapping[str, Any], store: LogStore, access: DataAccess) -> Positions:
    rows = RowChoice.from_document(task["rows"])
    positions = rows.positions(store, num_rows=task["num_rows"], access=access)
    if len(positions) and int(positions[-1]) >= task["num_rows"]:
        raise InvalidTableError(
            f"The deletion vector of the data file {task['path']} refers to row {int(positions[-1])}.",
            cause=f"The file has {task['num_rows']} rows.",
            fix="Restore the file or the deletion vector from a backup, or restore an earlier version.",
        )
    return positions


def _in_tasks(table: ExecutorReach, chunked: bool) -> BatchFunction:
    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        with plain_errors():
            store, access = table.open()
            for batch in batches:
                for tasks in batch.column("tasks").to_pylist():
                    for task in json.loads(tasks):
                        positions = _positions(task, store, access)
                        if chunked:
                            chunks, words = chunk_words(positions)
                            yield _batch(task["file"], chunks, list(words))
                        else:
                            yield _batch(task["file"], np.zeros(1, np.int64), [whole_file_words(positions)])

    return run


def _batch(file: int, chunks: npt.NDArray[np.int64], words: Sequence[Words]) -> pa.RecordBatch:
    columns = [pa.array(np.full(len(chunks), file), pa.int32()), pa.array(chunks, pa.int64()), _lists(words)]
    return pa.RecordBatch.from_arrays(columns, names=["file", "chunk", "words"])


def _lists(words: Sequence[Words]) -> pa.Array:
    offsets = np.concatenate(([0], np.cumsum([len(some) for some in words])))
    values = np.concatenate([*words, np.empty(0, np.int64)])
    return pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), pa.array(values, pa.int64()))
