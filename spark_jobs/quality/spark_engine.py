"""The Spark engine: evaluates a suite's rules on staged files in Spark's tasks, for large batches.

The tasks apply the same rules to Arrow batches as the driver does. Spark itself does not compare values with
the suite. It reads the files, collects the results of the tasks, and groups equal values.
"""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa

from delta_core.jobs.params.quality import MAX_SAMPLES
from delta_core.schema.arrow import to_arrow
from delta_core.schema.json import schema_from_json, schema_to_json
from delta_core.schema.types import BOOLEAN, DOUBLE, FLOAT, LONG, VARIANT, StructField, StructType
from spark_jobs.expressions.columns import quoted
from spark_jobs.failures import as_delta_error
from spark_jobs.file_uris import ROW_INDEX
from spark_jobs.packaging import ensure_importable
from spark_jobs.quality.engine import EngineResults, EngineRules
from spark_jobs.quality.rules import (
    CountingRule,
    EngineRule,
    RowRule,
    Rows,
    StatisticRule,
    UniqueRule,
    needed_columns,
)
from spark_jobs.quality.tallies import Tally, tally_from_json, tally_of
from spark_jobs.quality.value_counts import MAX_LISTED, POSITION_KEY, key_name, keys_of
from spark_jobs.reader.table_files import TableFile
from spark_jobs.reader.table_scan import TableScan
from spark_jobs.schema import to_spark
from spark_jobs.worker_tasks import BatchFunction
from spark_jobs.writer.staged_files import Positions, StagedFiles

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

POSITION: Final = "__deltaward_position"
_FIRST = "__deltaward_first"
_INDEX = "__deltaward_index"
_COUNT = "occurrences"
_TALLY_SCHEMA = "rule int, tally string"
_POSITION_SCHEMA = "rule int, position bigint"


class SparkEngine:
    """Evaluates rules in Spark's tasks. It caches the needed columns; `close` releases the cache.

    It runs two passes: the first computes tallies. The second locates rows only for the selected
    expectations, so that the driver's memory stays bounded.
    """

    def __init__(self, spark: SparkSession, staged: StagedFiles) -> None:
        self._spark = spark
        self._staged = staged
        self._rules: EngineRules = {}
        self._frame: DataFrame | None = None
        self._duplicates: dict[int, DataFrame] = {}

    def evaluate(self, rules: EngineRules) -> EngineResults:
        """Evaluate the rules on every row."""
        self._rules = rules
        try:
            ensure_importable(self._spark)
            columns = needed_columns(list(rules.values()))
            self._frame = keyed_rows(self._spark, self._staged, columns).persist()
            return self._evaluate(rules)
        except Exception as error:
            raise as_delta_error(error, doing="validating the staged rows") from error

    def locate(self, selected: Sequence[int]) -> dict[int, Positions]:
        by_row = {i: rule for i, rule in self._selected_rules(selected).items() if isinstance(rule, RowRule)}
        found = {index: np.empty(0, dtype=np.int64) for index in selected}
        try:
            if by_row:
                located = self._rows.mapInArrow(
                    _position_function(by_row, self._schema_json()), _POSITION_SCHEMA
                ).toArrow()
                rules = np.asarray(located.column("rule"))
                positions = np.asarray(located.column("position"))
                for index in by_row:
                    found[index] = np.sort(positions[rules == index])
            for index in self._duplicates.keys() & set(selected):
                duplicates = self._duplicates[index].toArrow().column(POSITION_KEY)
                found[index] = np.sort(np.asarray(duplicates))
        except Exception as error:
            raise as_delta_error(error, doing="locating rows that do not meet the suite") from error
        return found

    def close(self) -> None:
        """Release the caches."""
        for frame in (*self._duplicates.values(), self._frame):
            if frame is not None:
                with contextlib.suppress(Exception):  # a broken connection must not hide the error
                    frame.unpersist()
        self._frame, self._duplicates = None, {}

    @property
    def _rows(self) -> DataFrame:
        assert self._frame is not None  # evaluate comes first
        return self._frame

    def _selected_rules(self, selected: Sequence[int]) -> dict[int, EngineRule]:
        return {index: self._rules[index] for index in selected}

    def _schema_json(self) -> str:
        return schema_to_json(_keyed_schema(self._staged.schema))

    def _evaluate(self, rules: EngineRules) -> EngineResults:
        found = EngineResults(tallies={index: Tally() for index in rules})
        counts: dict[str, SparkCounts] = {}
        for row in self._rows.mapInArrow(
            _tally_function(rules, self._schema_json()), _TALLY_SCHEMA
        ).collect():
            rule = rules[row["rule"]]
            data_type = rule.data_type if isinstance(rule, StatisticRule) else None
            found.tallies[row["rule"]].add(tally_from_json(row["tally"], data_type))
        for index, rule in rules.items():
            tally = found.tallies[index]
            if tally.error is not None:
                continue
            if isinstance(rule, CountingRule):
                # Several expectations may need the counts of one column, and each count is a pass.
                key = repr(rule.selection)
                if key not in counts:
                    counts[key] = SparkCounts(self._keys(rule))
                found.counted[index] = counts[key]
            elif isinstance(rule, UniqueRule):
                tally.add(self._uniqueness(index, rule))
        return found

    def _uniqueness(self, index: int, rule: UniqueRule) -> Tally:
        # Persisted, because it is used up to three times, and each time Spark would group all rows again.
        duplicates = self._duplicates[index] = self._repeated(rule).persist()
        count = duplicates.count()
        if not count:
            return Tally()
        first = duplicates.orderBy(POSITION_KEY).limit(MAX_SAMPLES).collect()
        return Tally(unexpected=count, first=[int(row[POSITION_KEY]) for row in first])

    def _repeated(self, rule: UniqueRule) -> DataFrame:
        """The positions of the rows whose values occur in another row too."""
        from pyspark.sql import Window
        from pyspark.sql import functions as fn

        names = [key_name(index) for index in range(len(rule.selection.columns))]
        same_values = Window.partitionBy(*names)
        counted = self._keys(rule).withColumn(_COUNT, fn.count(fn.lit(1)).over(same_values))
        return counted.where(fn.col(_COUNT) > 1).select(POSITION_KEY)

    def _keys(self, rule: UniqueRule | CountingRule) -> DataFrame:
        fields = []
        for index, name in enumerate(rule.selection.columns):
            field = self._staged.schema.find(name)
            assert field is not None  # the suite's columns are checked before
            kind = DOUBLE if field.data_type == FLOAT else field.data_type
            fields.append(StructField(name=key_name(index), data_type=kind))
        schema = StructType((*fields, StructField(name=POSITION_KEY, data_type=LONG)))
        return self._rows.mapInArrow(_key_function(rule, self._schema_json()), to_spark(schema))


class SparkCounts:
    """Values counted by Spark. The driver fetches only a few at a time."""

    def __init__(self, keys: DataFrame) -> None:
        from pyspark.sql import functions as fn

        self._counts = keys.groupBy(key_name(0)).agg(fn.count(fn.lit(1)).alias(_COUNT))
        (row,) = self._counts.agg(
            fn.count(fn.lit(1)).alias("distinct"), fn.sum(_COUNT).alias("total"), fn.max(_COUNT).alias("most")
        ).collect()
        self.distinct = int(row["distinct"])
        self.total = int(row["total"] or 0)
        self._most = row["most"]

    def most_common(self) -> list[Any]:
        from pyspark.sql import functions as fn

        found = self._counts.where(fn.col(_COUNT) == fn.lit(self._most)).select(key_name(0))
        values = found.limit(MAX_LISTED + 1).toArrow().column(0)
        if pa.types.is_timestamp(values.type) and values.type.tz is not None:
            values = values.cast(pa.timestamp("us", "UTC"))
        listed: list[Any] = values.to_pylist()
        return listed

    def at(self, ranks: Sequence[int]) -> list[Any]:
        found: list[Any] = []
        end = 0
        for row in self._counts.orderBy(key_name(0)).toLocalIterator():
            end += row[_COUNT]
            while len(found) < len(ranks) and ranks[len(found)] < end:
                found.append(row[key_name(0)])
            if len(found) == len(ranks):
                break
        return found


def keyed_rows(spark: SparkSession, staged: StagedFiles, columns: Collection[str] | None = None) -> DataFrame:
    """The staged rows with a column for each row's position.

    Args:
        spark: the session.
        staged: the staged files, at least one.
        columns: the columns to read; None for all. A variant column becomes a boolean that is true when the
            value is not null.
    """
    from pyspark.sql import functions as fn

    fields = [field for field in staged.schema if columns is None or field.name in columns]
    first = StructField(name=_FIRST, data_type=LONG)
    scan = TableScan(
        reach=staged.reach,
        schema=StructType((*staged.schema.fields, first)),
        mapping=replace(staged.plan.mapping, unmapped=frozenset({_FIRST})),
        columns=[*[field.name for field in fields], _FIRST],
    )
    files = [
        TableFile(
            path=add.path,
            values={**add.partition_values, _FIRST: str(position)},
            size_bytes=add.size_bytes,
        )
        for add, position in zip(staged.adds, staged.first_positions()[:-1], strict=True)
    ]
    constants = [*staged.partition_columns, _FIRST]
    frame = scan.read(spark, files, constants=constants, metadata={_INDEX: ROW_INDEX})
    position = (fn.col(_FIRST) + fn.col(_INDEX)).alias(POSITION)
    return frame.select(*[_chosen(field) for field in fields], position)


def _chosen(field: StructField) -> Column:
    """A column of `keyed_rows`."""
    from pyspark.sql import functions as fn

    column = fn.col(quoted(field.name))
    present = fn.when(column.isNotNull(), fn.lit(True)).alias(field.name)
    return present if field.data_type == VARIANT else column


def _keyed_schema(schema: StructType) -> StructType:
    """The schema of `keyed_rows`, without the position."""
    return StructType(
        tuple(
            StructField(name=field.name, data_type=BOOLEAN if field.data_type == VARIANT else field.data_type)
            for field in schema
        )
    )


def _tally_function(rules: Mapping[int, EngineRule], schema_json: str) -> BatchFunction:
    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        totals = {index: Tally() for index in rules}
        for rows, positions in _rows_with_positions(batches, schema_json):
            for index, rule in rules.items():
                totals[index].add(tally_of(rule, rows, positions)[0])
        yield pa.RecordBatch.from_arrays(
            [
                pa.array(list(totals), pa.int32()),
                pa.array([tally.to_json() for tally in totals.values()], pa.string()),
            ],
            names=["rule", "tally"],
        )

    return run


def _position_function(rules: Mapping[int, RowRule], schema_json: str) -> BatchFunction:
    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for rows, positions in _rows_with_positions(batches, schema_json):
            for index, rule in rules.items():
                unexpected = tally_of(rule, rows, positions)[1]
                yield pa.RecordBatch.from_arrays(
                    [pa.array([index] * len(unexpected), pa.int32()), pa.array(unexpected, pa.int64())],
                    names=["rule", "position"],
                )

    return run


def _key_function(rule: UniqueRule | CountingRule, schema_json: str) -> BatchFunction:
    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for rows, positions in _rows_with_positions(batches, schema_json):
            yield keys_of(rule, rows, positions)

    return run


def _rows_with_positions(
    batches: Iterator[pa.RecordBatch], schema_json: str
) -> Iterator[tuple[Rows, Positions]]:
    """Spark's batches as (rows with the types of the staged files, the rows' positions).

    Spark returns timestamps in the session's time zone, and may return strings as `large_string`.
    """
    schema = to_arrow(schema_from_json(schema_json))
    for batch in batches:
        names = [name for name in batch.schema.names if name != POSITION]
        columns = [_cast(batch.column(name), schema.field(name).type) for name in names]
        yield (
            Rows(pa.record_batch(columns, names=names)),
            np.asarray(batch.column(POSITION), dtype=np.int64),
        )


def _cast(column: pa.Array, target: pa.DataType) -> pa.Array:
    return column if column.type == target else column.cast(target)
