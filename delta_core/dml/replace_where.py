"""Which files a replaceWhere takes away: whole where every row matches, rewritten where some do.

A predicate over partition columns alone decides whole files without reading them. With any other column
the candidates that partition pruning and statistics leave are read: first the columns that the predicate
names, then, of a file that matches in part, all of them.
"""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from delta_core.actions import AddFile
from delta_core.data.parquet_writer import FileOptions, write_rows_to_files
from delta_core.data.write_plan import WritePlan
from delta_core.dml.find_rows import find_rows
from delta_core.dml.matched_rows import MatchedRows
from delta_core.expressions.ast import Expression
from delta_core.snapshot.snapshot import Snapshot


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
    found = find_rows(snapshot, predicate)
    partly = [match for match in found.matches if not match.is_whole]
    rows = MatchedRows(snapshot, predicate=predicate)
    rewritten = write_rows_to_files(
        snapshot.store,
        (batch for match in partly for batch in rows.remaining(match)),
        plan=WritePlan.of(snapshot.protocol, snapshot.metadata),
        options=FileOptions(target_file_size_bytes=target_file_size_bytes),
        keep_row_ids=True,
    )
    return ReplacementPlan(
        removed=found.candidates.take(pa.array([match.index for match in found.matches], pa.int64())),
        rewritten=tuple(rewritten),
        read_paths=found.read_paths,
        kept_rows=sum(match.num_left for match in partly),
    )
