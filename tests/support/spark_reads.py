"""Spark's reads of a table against those of delta_core, at every version and over every range of changes."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

import spark_jobs
from delta_core import DeltaTable
from delta_core.clock import SYSTEM_CLOCK, Clock
from delta_core.errors import DeltaError
from delta_core.jobs.params.engine_io import EngineIO
from spark_jobs.session import is_connect
from tests.state_machine.operations.registry import Draw
from tests.support.rows import canonical_rows
from tests.support.written_features import all_ways
from tests.support.written_peers import recorded_ranges
from tests.support.written_tables import WrittenTable, drawn

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

ROW_IDS = {"_row_id": "row_id", "_row_commit_version": "row_commit_version"}


def arrow(frame: DataFrame) -> pa.Table:
    """The rows as Spark sends them.

    `toArrow` casts them once more, which Arrow refuses where a struct with a variant is null.
    """
    if is_connect(frame.sparkSession):
        return frame._to_table()[0]
    return pa.Table.from_batches(frame._collect_as_arrow(empty_list_if_zero_records=False))


def assert_same(found: pa.Table, expected: pa.Table, what: str) -> None:
    """The same columns in the same order, and the same rows in any order."""
    assert found.column_names == expected.column_names, what
    mine, theirs = canonical_rows(found), canonical_rows(expected)
    if mine != theirs:
        more = sorted(set(mine) - set(theirs)), sorted(set(theirs) - set(mine))
        raise AssertionError(f"{what}: {len(mine)} rows of {len(theirs)}: {more[0][:2]} not {more[1][:2]}")


def assert_reads_alike(
    spark: SparkSession,
    path: Path,
    *,
    versions: Iterable[int] | None = None,
    roots: Sequence[Path] = (),
    engine_io: str = EngineIO.AUTO,
    clock: Clock = SYSTEM_CLOCK,
) -> int:
    """Compare the rows, and the row ids where there are any. Returns the number of versions."""
    newest = DeltaTable(path, allowed_roots=roots, clock=clock).version()
    chosen = list(range(newest + 1) if versions is None else versions)
    for version in chosen:
        table = DeltaTable(path, version, allowed_roots=roots, clock=clock)
        options: dict[str, Any] = {
            "version": version,
            "allowed_roots": [str(root) for root in roots],
            "engine_io": engine_io,
        }
        what = f"version {version} of {path} ({engine_io})"
        frame = spark_jobs.read(spark, str(path), **options)
        assert frame.columns == list(table.schema().names), what
        assert_same(arrow(frame), table.to_pyarrow_table(), what)
        if table.metadata().configuration.get("delta.enableRowTracking") == "true":
            frame = spark_jobs.read(spark, str(path), row_ids=True, **options)
            frame = frame.select("*", *[f"_metadata.{name}" for name in ROW_IDS.values()]).drop("_metadata")
            expected = table.to_pyarrow_table(row_ids=True)
            renamed = [ROW_IDS.get(name, name) for name in expected.column_names]
            assert_same(arrow(frame), expected.rename_columns(renamed), f"row ids of {what}")
    return len(chosen)


def assert_changes_alike(
    spark: SparkSession,
    path: Path,
    *,
    first: int = 0,
    last: int | None = None,
    engine_io: str = EngineIO.AUTO,
    clock: Clock = SYSTEM_CLOCK,
) -> int | None:
    """Compare the changes of a range of versions. Returns the number of rows; None where both refuse."""
    what = f"changes of versions {first} to {last} of {path} ({engine_io})"

    def by_delta_core() -> pa.Table:
        return DeltaTable(path, last, clock=clock).load_cdf(first, last).read_all()

    def by_spark() -> pa.Table:
        frame = spark_jobs.read_changes(
            spark, str(path), starting_version=first, ending_version=last, engine_io=engine_io
        )
        return arrow(frame)

    found, expected = _result_or_refusal(by_spark), _result_or_refusal(by_delta_core)
    if isinstance(found, pa.Table) and isinstance(expected, pa.Table):
        assert_same(found, expected, what)
        return expected.num_rows
    assert type(found) is type(expected), f"{what}: {found!r} and {expected!r}"
    return None


def _result_or_refusal(read: Callable[[], pa.Table]) -> pa.Table | DeltaError:
    try:
        return read()
    except DeltaError as error:
        return error


def check_written_table(
    spark: SparkSession, name: str, features: Sequence[str], *, operations: int
) -> dict[str, int]:
    """Make a table with these features, and compare its versions and the changes that it recorded.

    Returns:
        How many versions and changed rows were compared.
    """

    def run(draw: Draw) -> dict[str, int]:
        table = WrittenTable()
        try:
            table.begin([all_ways()[feature] for feature in features], draw)
            rng = random.Random(name)
            for _ in range(operations):
                table.step(rng, draw)
            versions = table.model.promised()
            assert_reads_alike(spark, table.path, versions=versions, clock=table.clock)
            changes = [
                assert_changes_alike(spark, table.path, first=first, last=last, clock=table.clock)
                for first, last in recorded_ranges(table)
            ]
            return {"versions": len(versions), "changed_rows": sum(count or 0 for count in changes)}
        finally:
            table.teardown()

    return drawn(name, run)
