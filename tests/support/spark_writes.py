"""Writes by Spark into tables of every feature, against the state machine's model of the rows.

A case is a set of features, an operation, partitions or not, and how Spark reaches the files. The table is
made without Spark, one operation of Spark follows, and the model says what the table must then hold:
rows, change feed, row ids, statistics.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.parquet as pq
from hypothesis import strategies as st

import spark_jobs
from delta_core.errors import ConfigurationError
from delta_core.jobs.context import JobContext
from delta_core.jobs.job_result import JobStatus
from delta_core.jobs.job_spec import JobSpec, TableRef
from delta_core.jobs.params.engine_io import EngineIO
from delta_core.jobs.registry import JobRegistry
from delta_core.jobs.run_job import run_job
from delta_core.merge.clauses import MergeAction
from delta_core.run import Run
from delta_core.schema.types import StructType
from delta_core.table_features.feature import WriterKind
from spark_jobs.dml.clauses import MergeClause, MergeClauses
from spark_jobs.dml.merge import MergeRequest, merge_into
from spark_jobs.job_kinds import register
from spark_jobs.reader.arrow_variants import with_spark_variants
from spark_jobs.schema import to_spark
from spark_jobs.spark_executor import SparkExecutor
from tests.state_machine.conditions import conditions, keys_from
from tests.state_machine.machine import STEP_SECONDS, _same
from tests.state_machine.model import Row, State
from tests.state_machine.operations.registry import Draw
from tests.state_machine.reading import canonical_model, deltalake_rows
from tests.state_machine.values import Column, arrow_table
from tests.support.feature_sets import covering_sets
from tests.support.quality import NOT_NULL, expect, quality
from tests.support.rows import canonical, canonical_rows
from tests.support.spark_reads import arrow
from tests.support.written_features import all_ways, excluding
from tests.support.written_tables import WrittenTable, drawn

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

OPERATIONS = ("append", "overwrite", "replace_where", "dynamic_overwrite", "load", "merge")
PARTITIONS = "partitions"
SEED = "1"


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One case of the matrix."""

    features: tuple[str, ...]
    operation: str
    way: str

    @property
    def name(self) -> str:
        """The case in words, which also draws its values."""
        return f"{'+'.join(self.features)}:{self.operation}:{self.way}"


def cases() -> list[Case]:
    """Each feature alone with and without partitions, then pairs, with every operation."""
    ways = all_ways().keys() - {PARTITIONS}
    forbidden = excluding(frozenset({*ways, PARTITIONS}))
    sets = [(), (PARTITIONS,)]
    for name in sorted(ways):
        sets.append((name,))
        if frozenset({name, PARTITIONS}) not in forbidden:
            sets.append((name, PARTITIONS))
    names = frozenset({*ways, PARTITIONS})
    sets += [tuple(sorted(one)) for one in covering_sets(random.Random(SEED), 0, names, forbidden)]
    found, ways_io = [], (EngineIO.NATIVE, EngineIO.ARROW)
    for number, features in enumerate(sets):
        for place, operation in enumerate(OPERATIONS):
            found.append(
                Case(features=features, operation=operation, way=ways_io[(number + place) % len(ways_io)])
            )
    return found


def frame_of(spark: SparkSession, columns: Sequence[Column], rows: Sequence[Row]) -> DataFrame:
    """Rows as a DataFrame, with variants as Spark's."""
    table = arrow_table(list(columns), list(rows))
    schema = StructType(tuple(replace(column.to_field(), metadata={}, nullable=True) for column in columns))
    if not rows:
        return spark.createDataFrame([], to_spark(schema))
    if not any(column.kind in ("variant", "timestamp_ntz") for column in columns):
        return spark.createDataFrame(table)
    sink = pa.BufferOutputStream()
    batch = with_spark_variants(table.combine_chunks().to_batches()[0], table.schema)
    with pa.ipc.new_stream(sink, batch.schema) as stream:
        stream.write_batch(batch)
    return _shipped(spark, sink.getvalue().to_pybytes(), schema)


def _shipped(spark: SparkSession, data: bytes, schema: StructType) -> DataFrame:
    def read(_: Any) -> Any:
        import pyarrow

        yield from pyarrow.ipc.open_stream(data)

    return spark.range(0, 1, 1, 1).mapInArrow(read, to_spark(schema))


class SparkWrites(WrittenTable):
    """One table into which Spark writes."""

    def __init__(self, spark: SparkSession, way: str) -> None:
        super().__init__()
        self.spark = spark
        self.io = way

    def run(self, operation: str, draw: Draw) -> None:
        """One operation of Spark, and the checks after it."""
        self.clock.advance(STEP_SECONDS)
        if "vectors" in {way.name for way in self.ways} and not self.state.append_only:
            condition = keys_from(0, min(self.state.rows))
            self.table.update_incremental()
            self.table.delete(condition.text)
            self.settle(self.state.with_rows(self.state.without(condition)))
            self.clock.advance(STEP_SECONDS)
        getattr(self, f"_{operation}")(draw)
        self.clock.advance(STEP_SECONDS)
        self.check()
        self.check_by_spark()
        self.check_statistics()

    def check_by_spark(self) -> None:
        """Spark and deltalake, where it can, read what the model has."""
        expected = canonical_model(self.state.visible())
        frame = spark_jobs.read(self.spark, str(self.path), engine_io=self.io, clock=self.clock)
        _same(canonical_rows(arrow(frame)), expected, "by Spark")
        if "delta" in self.spark.conf.get("spark.sql.extensions", ""):
            _same(
                canonical_rows(arrow(self.spark.read.format("delta").load(str(self.path)))),
                expected,
                "by delta-spark",
            )
        theirs = deltalake_rows(self.path)
        if theirs is not None:
            _same(theirs, expected, "by deltalake")

    def check_statistics(self) -> None:
        """The statistics of the files of the newest commit are those of their values."""
        commit = self.path / "_delta_log" / f"{self.model.latest:020}.json"
        actions = [json.loads(line) for line in commit.read_text().splitlines()]
        for add in (action["add"] for action in actions if "add" in action):
            table = pq.read_table(self.path / unquote(add["path"]), partitioning=None)
            stats = json.loads(add["stats"])
            assert stats["numRecords"] == table.num_rows
            for name in table.column_names:
                if name.startswith("_row-") or table.column(name).type == pa.null():
                    continue
                if name in stats["nullCount"] or "dataSkipping" not in str(self.state.properties):
                    _check_leaf(table.column(name).to_pylist(), name, stats, add["partitionValues"])

    def _fits(self, row: Row) -> bool:
        return not self.state.break_a_constraint({0: row})

    def _write(self, columns: Sequence[Column], rows: Mapping[int, Row], **options: Any) -> None:
        spark_jobs.write(
            frame_of(self.spark, columns, list(rows.values())),
            str(self.path),
            engine_io=self.io,
            clock=self.clock,
            **options,
        )

    def _some_rows(self, draw: Draw, fits: Callable[[Row], bool]) -> tuple[list[Column], dict[int, Row]]:
        for _ in range(20):
            columns, rows = self.new_rows(draw, most=6, fitting=fits)
            if rows:
                break
        return columns, rows

    def _append(self, draw: Draw) -> None:
        columns, rows = self._some_rows(draw, self._fits)
        most = draw(st.sampled_from([None, 1, 2]))
        self.does(
            lambda: self._write(columns, rows, mode="append", max_records_per_file=most),
            self.state.with_more(rows),
            writer_kind=WriterKind.SPARK_ROWS,
        )

    def _overwrite(self, draw: Draw) -> None:
        columns, rows = self._some_rows(draw, self._fits)
        self.does(
            lambda: self._write(columns, rows, mode="overwrite"),
            self.state.with_rows(rows),
            writer_kind=WriterKind.SPARK_ROWS,
        )

    def _replace_where(self, draw: Draw) -> None:
        condition = draw(conditions(self.state))

        def fits(row: Row) -> bool:
            return condition.holds(row) is True and self._fits(row)

        columns, rows = self._some_rows(draw, fits)
        self.does(
            lambda: self._write(columns, rows, mode="overwrite", replace_where=condition.text),
            self.state.with_rows({**self.state.without(condition), **rows}),
            writer_kind=WriterKind.SPARK_ROWS,
        )

    def _dynamic_overwrite(self, draw: Draw) -> None:
        columns, rows = self._some_rows(draw, self._fits)
        options = {"mode": "overwrite", "partition_overwrite_mode": "dynamic"}
        names = self.state.partition_by
        if not names:
            self.fails(ConfigurationError, lambda: self._write(columns, rows, **options))
            return

        def of(row: Row) -> tuple[Any, ...]:
            return tuple(
                canonical(row.get(name) or (row.get(name) if row.get(name) != "" else None)) for name in names
            )

        replaced = {of(row) for row in rows.values()}
        kept = {key: row for key, row in self.state.rows.items() if of(row) not in replaced}
        self.does(
            lambda: self._write(columns, rows, **options),
            self.state.with_rows({**kept, **rows}),
            writer_kind=WriterKind.SPARK_ROWS,
        )

    def _load(self, draw: Draw) -> None:
        """A load with a gate; the row without `n` goes to the quarantine when one is drawn."""
        columns, rows = self._some_rows(draw, self._fits)
        # A source of Parquet files has no variants.
        given = [column for column in columns if column.kind != "variant"]
        rows = {
            key: {name: None if _is_variant(name, columns) else value for name, value in row.items()}
            for key, row in rows.items()
        }
        dropped = {key: row for key, row in rows.items() if row["n"] is None}
        good = {key: row for key, row in rows.items() if key not in dropped}
        source = self.path.parent / f"{self.path.name}-source.parquet"
        pq.write_table(arrow_table(given, list(rows.values())), source)

        def run() -> None:
            suite = quality(expect(NOT_NULL, column="n"), on_failure="quarantine", max_bad_fraction=1.0)
            spec = JobSpec(
                kind="load",
                table=TableRef(uri=str(self.path)),
                params={
                    "source": {"format": "parquet", "uris": [str(source)]},
                    "mode": "append",
                    "quality": suite,
                    "engine_io": str(self.io),
                },
            )
            registry = JobRegistry(group=None)
            register(registry)
            context = JobContext(executor=SparkExecutor(self.spark), clock=self.clock)
            result = run_job(spec, context, registry=registry)
            assert result.status is JobStatus.SUCCEEDED, result.error

        self.does(run, self.state.with_more(good), writer_kind=WriterKind.SPARK_ROWS)

    def _merge(self, draw: Draw) -> None:
        """Delete, update and insert by key."""
        columns, rows = self._some_rows(draw, self._fits)
        found = draw(st.lists(st.sampled_from(sorted(self.state.rows)), unique=True, max_size=4))
        changed: dict[int, Row] = {}
        deleted = {key for key in found if key % 3 == 0}
        source = list(rows.values())
        for key in found:
            text = draw(st.sampled_from(["m", "a", None]))
            number = draw(st.integers(0, 50))
            old = self.state.rows[key]
            row = {**old, "t": text, "n": number}
            for column in self.state.columns:
                if column.generated_from == "n":
                    row[column.name] = number + 1
            if key not in deleted and not self._fits(row):
                continue
            changed[key] = row
            source.append(
                {
                    **{one.name: None for one in columns},
                    **_filled(columns, draw),
                    KEY: key,
                    "t": text,
                    "n": number,
                }
            )
        state = self.state
        kept = {
            key: changed.get(key, row)
            for key, row in state.rows.items()
            if not (key in deleted and key in changed)
        }
        source_frame = frame_of(self.spark, columns, source).alias("s")
        request = MergeRequest(
            on="t.id = s.id",
            clauses=MergeClauses(
                matched=(
                    MergeClause(action=MergeAction.DELETE, condition="t.id % 3 = 0"),
                    MergeClause(action=MergeAction.UPDATE, values={"t": "s.t", "n": "s.n"}),
                ),
                not_matched=(
                    MergeClause(
                        action=MergeAction.INSERT,
                        values={one.name: f"s.`{one.name}`" for one in columns},
                    ),
                ),
            ),
            engine_io=EngineIO(self.io),
        )
        self.does(
            lambda: merge_into(source_frame, self.fresh().snapshot, request, run=Run(clock=self.clock)),
            state.with_rows({**kept, **rows}),
            writer_kind=WriterKind.MERGE,
        )


KEY = "id"


def _filled(columns: Sequence[Column], draw: Draw) -> Row:
    return {one.name: draw(one.draws(partition=False)) for one in columns if one.name != KEY}


def _is_variant(name: str, columns: Sequence[Column]) -> bool:
    return any(one.name == name and one.kind == "variant" for one in columns)


def _check_leaf(
    values: Sequence[Any], name: str, stats: Mapping[str, Any], partition: Mapping[str, Any]
) -> None:
    if name in partition:
        return
    if any(isinstance(value, dict) for value in values) and isinstance(stats["nullCount"].get(name), dict):
        below = {key: stats[key].get(name, {}) for key in ("minValues", "maxValues", "nullCount")}
        for field in stats["nullCount"][name]:
            of = [None if value is None else value.get(field) for value in values]
            _check_leaf(of, field, below, {})
        return
    found = [value for value in values if value is not None]
    if isinstance(stats["nullCount"].get(name), dict):
        return
    assert stats["nullCount"][name] == len(values) - len(found), f"null count of {name}"
    if not found or not isinstance(found[0], int | float | str) or isinstance(found[0], bool):
        return
    if any(value != value or value in (float("inf"), float("-inf")) for value in found):
        return
    low, high = stats["minValues"][name], stats["maxValues"][name]
    if isinstance(found[0], str):
        assert low == min(found, key=str.encode)[:32]
        assert high.encode() >= max(found, key=str.encode).encode()
    else:
        assert (low, high) == (min(found), max(found)), f"bounds of {name}"


def check_case(spark: SparkSession, case: Case) -> None:
    """Make the table of a case, and let Spark write into it."""

    def run(draw: Draw) -> None:
        table = SparkWrites(spark, case.way)
        try:
            table.begin([all_ways()[name] for name in case.features], draw)
            table.run(case.operation, draw)
        finally:
            table.teardown()

    drawn(case.name, run)


__all__ = ["OPERATIONS", "Case", "Path", "State", "cases", "check_case"]
