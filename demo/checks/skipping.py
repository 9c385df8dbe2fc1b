"""File skipping: the files that a reader can skip according to the minima and maxima in the log."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet

from demo.checks.evidence import Evidence
from demo.table_reader import TableReader

Equals = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class SkippingAnswer:
    """The files and rows that one query reads from one version.

    Attributes:
        files_total: the files of the partitions that match the query, or of all partitions.
        files_read, bytes_read: the files that the statistics do not rule out.
        rows_found: rows of the answer in those files.
        rows_expected: rows of the answer in the whole version.
    """

    query: str
    files_total: int
    files_read: int
    bytes_read: int
    rows_found: int
    rows_expected: int

    @property
    def share_skipped(self) -> float:
        return 1 - self.files_read / self.files_total

    @property
    def skipped(self) -> str:
        return (
            f"{self.files_total - self.files_read} of {self.files_total} files skipped "
            f"({self.share_skipped:.0%}), {self.bytes_read:,} bytes left to read"
        )


def typical_queries(evidence: Evidence, point: str) -> list[SkippingAnswer]:
    """The flights of one month to one destination, and all flights of one carrier, at a point."""
    table, month = evidence.tables["flights"], evidence.profile.months[-1]
    version = evidence.version(point, "flights")
    queries: tuple[Equals, ...] = ({"month": month, "dest": "SFO"}, {"carrier": "AS"})
    return [answer(table, version, query) for query in queries]


def answer(table: TableReader, version: int, query: Equals) -> SkippingAnswer:
    """Plan the query with the log, and run it on the remaining files and on the whole version."""
    files = [file for file in table.files(version) if _partition_may_hold(file, query)]
    left = [file for file in files if _statistics_may_hold(file, query)]
    inside = {name: value for name, value in query.items() if name not in files[0]["partition"]}
    return SkippingAnswer(
        query=" AND ".join(f"{name} = {value!r}" for name, value in query.items()),
        files_total=len(files),
        files_read=len(left),
        bytes_read=sum(file["size_bytes"] for file in left),
        rows_found=sum(_count(_read(table, file, list(inside)), inside) for file in left),
        rows_expected=_count(table.rows(version), query),
    )


def _partition_may_hold(file: Mapping[str, Any], query: Equals) -> bool:
    partition = file["partition"]
    return all(partition[name] == value for name, value in query.items() if name in partition)


def _statistics_may_hold(file: Mapping[str, Any], query: Equals) -> bool:
    """False if minima and maxima show that no row of the file is in the answer."""
    low, high = file["min"], file["max"]
    return all(low[name] <= value <= high[name] for name, value in query.items() if name in low)


def _read(table: TableReader, file: Mapping[str, Any], columns: list[str]) -> pa.Table:
    return pyarrow.parquet.read_table(table.path / file["path"], columns=columns, partitioning=None)


def _count(rows: pa.Table, query: Equals) -> int:
    """The number of rows that have all the values of the query."""
    held = pa.array([True] * rows.num_rows)
    for name, value in query.items():
        scalar = pa.scalar(value)
        held = pc.and_kleene(held, pc.equal(rows[name].cast(scalar.type), scalar))
    return int(pc.sum(held).as_py() or 0)
