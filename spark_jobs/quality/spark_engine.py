"""A suite's rules on staged files by Spark's tasks: for batches of more rows than one process should read.

The tasks apply the same rules to Arrow batches as the driver does; Spark itself compares no value with what
a suite states. It reads the files, adds the tasks up, and groups equal values.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa

from delta_core.actions.arrow_schema import LIVE_FILE_SCHEMA
from delta_core.schema.arrow import to_arrow
from delta_core.schema.json import schema_from_json, schema_to_json
from delta_core.schema.types import BOOLEAN, DOUBLE, FLOAT, LONG, VARIANT, StructField, StructType
from spark_jobs.failures import as_delta_error
from spark_jobs.packaging import ensure_importable
from spark_jobs.quality.counted import MAX_LISTED, POSITION_KEY, key_name, keys_of
from spark_jobs.quality.engine import AskingRules, Found
from spark_jobs.quality.params import MAX_SAMPLES
from spark_jobs.quality.rules import (
    AskingRule,
    CountingRule,
    RowRule,
    Rows,
    StatisticRule,
    UniqueRule,
    needed_columns,
)
from spark_jobs.quality.staged import Positions, StagedFiles
from spark_jobs.quality.tallies import Tally, tally_from_json, tally_of
from spark_jobs.reader.data_files import DataFiles, data_files
from spark_jobs.reader.native_scan import scan_files, with_partition_values
from spark_jobs.schema import to_spark
from spark_jobs.writer.columns import quoted

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

POSITION: Final = "__deltaward_position"
_FIRST = "__deltaward_first"
_INDEX = "__deltaward_index"
_COUNT = "occurrences"
_TALLY_SCHEMA = "rule int, tally string"
_PLACE_SCHEMA = "rule int, position bigint"

BatchFunction = Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]


class SparkEngine:
    """Judges on Spark's tasks. The rows that are asked about are cached; `close` gives the cache back.

    Two passes: figures first, and the positions only of the expectations that are selected then, so that
    the driver holds no more than it wants.
    """

    def __init__(self, spark: SparkSession, staged: StagedFiles) -> None:
        self._spark = spark
        self._staged = staged
        self._rules: AskingRules = {}
        self._frame: DataFrame | None = None
        self._copies: dict[int, DataFrame] = {}

    def judge(self, rules: AskingRules) -> Found:
        """Ask every row."""
        self._rules = rules
        try:
            ensure_importable(self._spark)
            columns = needed_columns(list(rules.values()))
            self._frame = keyed_rows(self._spark, self._staged, columns).persist()
            return self._judge(rules)
        except Exception as error:
            raise as_delta_error(error, doing="validating the staged rows") from error

    def locate(self, selected: Sequence[int]) -> dict[int, Positions]:
        by_row = {i: rule for i, rule in self._chosen(selected).items() if isinstance(rule, RowRule)}
        found = {index: np.empty(0, dtype=np.int64) for index in selected}
        try:
            if by_row:
                places = self._rows.mapInArrow(_placing(by_row, self._schema_json()), _PLACE_SCHEMA).toArrow()
                rules = np.asarray(places.column("rule"))
                positions = np.asarray(places.column("position"))
                for index in by_row:
                    found[index] = np.sort(positions[rules == index])
            for index in self._copies.keys() & set(selected):
                copies = self._copies[index].toArrow().column(POSITION_KEY)
                found[index] = np.sort(np.asarray(copies))
        except Exception as error:
            raise as_delta_error(error, doing="locating rows that do not meet the suite") from error
        return found

    def close(self) -> None:
        """Give the caches back."""
        for frame in (*self._copies.values(), self._frame):
            if frame is not None:
                with contextlib.suppress(Exception):  # a broken connection must not hide the error
                    frame.unpersist()
        self._frame, self._copies = None, {}

    @property
    def _rows(self) -> DataFrame:
        assert self._frame is not None  # judge comes first
        return self._frame

    def _chosen(self, selected: Sequence[int]) -> dict[int, AskingRule]:
        return {index: self._rules[index] for index in selected}

    def _schema_json(self) -> str:
        return schema_to_json(_judged_schema(self._staged.schema))

    def _judge(self, rules: AskingRules) -> Found:
        found = Found(tallies={index: Tally() for index in rules})
        counts: dict[str, SparkCounts] = {}
        for row in self._rows.mapInArrow(_tallying(rules, self._schema_json()), _TALLY_SCHEMA).collect():
            rule = rules[row["rule"]]
            data_type = rule.data_type if isinstance(rule, StatisticRule) else None
            found.tallies[row["rule"]].add(tally_from_json(row["tally"], data_type))
        for index, rule in rules.items():
            tally = found.tallies[index]
            if tally.error is not None:
                continue
            if isinstance(rule, CountingRule):
                # A suite asks several things of one column, and each count is a pass.
                key = repr(rule.asked)
                if key not in counts:
                    counts[key] = SparkCounts(self._keys(rule))
                found.counted[index] = counts[key]
            elif isinstance(rule, UniqueRule):
                tally.add(self._uniqueness(index, rule))
        return found

    def _uniqueness(self, index: int, rule: UniqueRule) -> Tally:
        # Looked at up to three times, and every time grouping all rows would be needed.
        copies = self._copies[index] = self._repeated(rule).persist()
        count = copies.count()
        if not count:
            return Tally()
        first = copies.orderBy(POSITION_KEY).limit(MAX_SAMPLES).collect()
        return Tally(unexpected=count, first=[int(one[POSITION_KEY]) for one in first])

    def _repeated(self, rule: UniqueRule) -> DataFrame:
        """The positions of the rows whose values another row has too."""
        from pyspark.sql import Window
        from pyspark.sql import functions as fn

        names = [key_name(index) for index in range(len(rule.asked.columns))]
        alike = Window.partitionBy(*names)
        counted = self._keys(rule).withColumn(_COUNT, fn.count(fn.lit(1)).over(alike))
        return counted.where(fn.col(_COUNT) > 1).select(POSITION_KEY)

    def _keys(self, rule: UniqueRule | CountingRule) -> DataFrame:
        fields = []
        for index, name in enumerate(rule.asked.columns):
            field = self._staged.schema.find(name)
            assert field is not None  # the suite's columns are checked before
            kind = DOUBLE if field.data_type == FLOAT else field.data_type
            fields.append(StructField(name=key_name(index), data_type=kind))
        schema = StructType((*fields, StructField(name=POSITION_KEY, data_type=LONG)))
        return self._rows.mapInArrow(_keying(rule, self._schema_json()), to_spark(schema))


class SparkCounts:
    """Values counted by Spark. Few of them come to the driver at a time."""

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
    """The staged rows with a column that holds each row's position.

    Args:
        spark: reads the files.
        staged: at least one file.
        columns: those of the rows that are wanted; all when None. Of variants only whether there is one.
    """
    from pyspark.sql import functions as fn

    files = _files_with_first_position(staged)
    partition_fields = [
        field for name in staged.partition_columns for field in staged.schema if field.name == name
    ]
    data_schema = StructType(tuple(field for field in staged.schema if field not in partition_fields))
    scanned = scan_files(spark, files, data_schema, metadata={_INDEX: "row_index"})
    first = StructField(name=_FIRST, data_type=LONG)
    frame = with_partition_values(spark, scanned, [*partition_fields, first], files)
    position = (fn.col(_FIRST) + fn.col(_INDEX)).alias(POSITION)
    chosen = []
    for field in staged.schema:
        if columns is None or field.name in columns:
            column = fn.col(quoted(field.name))
            present = fn.when(column.isNotNull(), fn.lit(True)).alias(field.name)
            chosen.append(present if field.data_type == VARIANT else column)
    return frame.select(*chosen, position)


def _judged_schema(schema: StructType) -> StructType:
    """The schema of `keyed_rows`, without the position."""
    return StructType(
        tuple(
            StructField(name=field.name, data_type=BOOLEAN if field.data_type == VARIANT else field.data_type)
            for field in schema
        )
    )


def _tallying(rules: Mapping[int, AskingRule], schema_json: str) -> BatchFunction:
    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        totals = {index: Tally() for index in rules}
        for rows, positions in _judged(batches, schema_json):
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


def _placing(rules: Mapping[int, RowRule], schema_json: str) -> BatchFunction:
    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for rows, positions in _judged(batches, schema_json):
            for index, rule in rules.items():
                bad = tally_of(rule, rows, positions)[1]
                yield pa.RecordBatch.from_arrays(
                    [pa.array([index] * len(bad), pa.int32()), pa.array(bad, pa.int64())],
                    names=["rule", "position"],
                )

    return run


def _keying(rule: UniqueRule | CountingRule, schema_json: str) -> BatchFunction:
    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for rows, positions in _judged(batches, schema_json):
            yield keys_of(rule, rows, positions)

    return run


def _judged(batches: Iterator[pa.RecordBatch], schema_json: str) -> Iterator[tuple[Rows, Positions]]:
    """Spark's batches in the types of the staged files: it has a time zone and wide texts of its own."""
    schema = to_arrow(schema_from_json(schema_json))
    for batch in batches:
        names = [name for name in batch.schema.names if name != POSITION]
        columns = [_as(batch.column(name), schema.field(name).type) for name in names]
        yield (
            Rows(pa.record_batch(columns, names=names)),
            np.asarray(batch.column(POSITION), dtype=np.int64),
        )


def _as(column: pa.Array, wanted: pa.DataType) -> pa.Array:
    return column if column.type == wanted else column.cast(wanted)


def _files_with_first_position(staged: StagedFiles) -> DataFiles:
    """The files; the position of the first row stands as one more partition value of each."""
    import pyarrow as pa

    listing = pa.table(
        {
            "path": pa.array([add.path for add in staged.adds], LIVE_FILE_SCHEMA.field("path").type),
            "partition_values": pa.array(
                [list(add.partition_values.items()) for add in staged.adds],
                LIVE_FILE_SCHEMA.field("partition_values").type,
            ),
        }
    )
    files = data_files(
        staged.store, listing, schema=staged.schema, partition_columns=staged.partition_columns
    )
    partitions = [
        (*values, str(first))
        for values, first in zip(files.partitions, staged.first_positions()[:-1], strict=True)
    ]
    return DataFiles(root=files.root, paths=files.paths, partitions=partitions)
