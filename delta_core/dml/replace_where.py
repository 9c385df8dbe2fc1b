"""Which files a replaceWhere takes away: whole where every row matches, rewritten where some do.

A predicate over partition columns alone decides whole files without reading them. With any other column
the candidates that partition pruning and statistics leave are read: first the columns that the predicate
names, then, of a file that matches in part, all of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from delta_core.actions import AddFile
from delta_core.data.parquet_reader import FileReader
from delta_core.data.parquet_writer import FileOptions, write_rows_to_files
from delta_core.data.write_plan import WritePlan
from delta_core.expressions.ast import TRUE, Expression
from delta_core.expressions.columns import referenced_columns
from delta_core.expressions.evaluate import evaluate
from delta_core.scan.partition_pruning import partition_mask, split_by_partition_columns
from delta_core.scan.scan import Scan
from delta_core.schema.arrow import to_arrow
from delta_core.snapshot.snapshot import Snapshot
from delta_core.storage.uri import resolve_data_path
from delta_core.transaction.file_actions import add_actions


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplacementPlan:
    """What a replaceWhere removes.

    Attributes:
        removed: live files (LIVE_FILE_SCHEMA) that go, whole or rewritten.
        rewritten: files written with the rows of partly matching files that stay.
        read_paths: every file whose rows the decision rests on.
        kept_rows: rows that were copied.
    """

    removed: pa.Table
    rewritten: tuple[AddFile, ...]
    read_paths: tuple[str, ...]
    kept_rows: int


def plan_replacement(
    snapshot: Snapshot, predicate: Expression, *, target_file_size_bytes: int
) -> ReplacementPlan:
    """Decide what goes, and write the rows that stay.

    Args:
        snapshot: the table.
        predicate: resolved against the table's schema.
        target_file_size_bytes: of files rewritten.

    Cost: no data is read for a predicate over partition columns; otherwise each candidate file is read
    once in the predicate's columns, and those matching in part once more.
    """
    candidates = Scan(snapshot, predicate=predicate).files()
    on_partitions, on_rows = split_by_partition_columns(predicate, snapshot.partition_columns)
    if on_rows == TRUE:
        mask = partition_mask(
            candidates,
            on_partitions,
            snapshot.schema,
            snapshot.partition_columns,
            mapping=snapshot.column_mapping,
        )
        return ReplacementPlan(
            removed=candidates.filter(pa.array(mask, type=pa.bool_())),
            rewritten=(),
            read_paths=tuple(candidates.column("path").to_pylist()),
            kept_rows=0,
        )
    removed: list[int] = []
    rewritten: list[AddFile] = []
    kept_rows = 0
    for index, add in enumerate(add_actions(candidates, data_change=True)):
        matching, total = _count_matches(snapshot, add, predicate)
        if matching == 0:
            continue
        removed.append(index)
        if matching < total:
            rewritten += _rewrite_rest(snapshot, add, predicate, target_file_size_bytes)
            kept_rows += total - matching
    return ReplacementPlan(
        removed=candidates.take(pa.array(removed, type=pa.int64())),
        rewritten=tuple(rewritten),
        read_paths=tuple(candidates.column("path").to_pylist()),
        kept_rows=kept_rows,
    )


def _rows(snapshot: Snapshot, add: AddFile, *, columns: Sequence[str] | None) -> Iterator[pa.RecordBatch]:
    reader = FileReader(
        schema=snapshot.schema,
        columns=columns,
        partition_columns=snapshot.partition_columns,
        mapping=snapshot.column_mapping,
    )
    return reader.read(
        snapshot.store, resolve_data_path(add.path, root_uri=snapshot.store.uri), add.partition_values
    )


def _count_matches(snapshot: Snapshot, add: AddFile, predicate: Expression) -> tuple[int, int]:
    """How many rows of a file match, and how many it has."""
    names = sorted({path[0] for path in referenced_columns(predicate)})
    matching = total = 0
    for batch in _rows(snapshot, add, columns=names):
        matching += pc.sum(pc.fill_null(evaluate(predicate, batch), False), min_count=0).as_py()
        total += batch.num_rows
    return matching, total


def _rewrite_rest(
    snapshot: Snapshot, add: AddFile, predicate: Expression, target_file_size_bytes: int
) -> list[AddFile]:
    """Write the rows of a file for which the predicate is not true."""

    def staying() -> Iterator[pa.RecordBatch]:
        for batch in _rows(snapshot, add, columns=None):
            matches = pc.fill_null(evaluate(predicate, batch), False)
            yield batch.filter(pc.invert(matches))

    return write_rows_to_files(
        snapshot.store,
        pa.RecordBatchReader.from_batches(to_arrow(snapshot.schema), staying()),
        plan=WritePlan.of(snapshot.protocol, snapshot.metadata),
        options=FileOptions(target_file_size_bytes=target_file_size_bytes),
    )
