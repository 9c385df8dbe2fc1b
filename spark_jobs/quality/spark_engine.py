"""A suite on staged files by Spark: for batches that do not fit into one process's memory."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from delta_core.actions.arrow_schema import LIVE_FILE_SCHEMA
from delta_core.schema.types import DOUBLE, FLOAT, LONG, StructField, StructType
from spark_jobs.failures import as_delta_error
from spark_jobs.quality.expectations_library import validate
from spark_jobs.quality.outcome import ExpectationOutcome, outcome_of, schema_outcomes
from spark_jobs.quality.params import MAX_SAMPLES
from spark_jobs.quality.staged import Positions, StagedFiles
from spark_jobs.quality.suite import PlannedExpectation
from spark_jobs.quality.verdict import MAX_COLLECTED_ROWS
from spark_jobs.reader.data_files import DataFiles, data_files
from spark_jobs.reader.native_scan import scan_files, with_partition_values
from spark_jobs.writer.columns import quoted

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

POSITION: Final = "__deltaward_position"
_FIRST = "__deltaward_first"
_INDEX = "__deltaward_index"


def evaluate_with_spark(
    spark: SparkSession, staged: StagedFiles, planned: Sequence[PlannedExpectation], *, samples: int
) -> list[ExpectationOutcome]:
    """The outcomes in the order of the suite.

    Two passes over cached rows: counts and samples first, and the rows' positions only of expectations
    that failed and that tell of no more rows than the driver should hold.

    Raises:
        JobFailedError: Spark failed.
    """
    outcomes = schema_outcomes(planned, staged.schema)
    counted = {"result_format": "SUMMARY", "partial_unexpected_count": MAX_SAMPLES}
    located = {
        "result_format": "COMPLETE",
        "partial_unexpected_count": MAX_SAMPLES,
        "unexpected_index_column_names": [POSITION],
        "include_unexpected_rows": False,
    }
    try:
        with _cached_rows(spark, staged) as keyed:
            plain = keyed.drop(POSITION)
            wanted = {index: item.expectation for index, item in enumerate(planned) if index not in outcomes}
            for index, result in validate(plain, wanted, source="spark", result_format=counted):
                outcomes[index] = outcome_of(planned[index], result, samples=samples, rows=None)
            failed = _to_locate(outcomes)
            for index, result in validate(
                keyed, {i: wanted[i] for i in failed}, source="spark", result_format=located
            ):
                outcomes[index] = outcome_of(planned[index], result, samples=samples, rows=_positions(result))
    except Exception as error:
        raise as_delta_error(error, doing="validating the staged files") from error
    return [outcomes[index] for index in range(len(planned))]


def _to_locate(outcomes: Mapping[int, ExpectationOutcome]) -> list[int]:
    """The failed row-level expectations, when what they tell of fits into the driver."""
    failed = [
        index
        for index, outcome in outcomes.items()
        if outcome.blocks and outcome.planned.row_level and outcome.error is None
    ]
    total = sum(outcomes[index].unexpected_count or 0 for index in failed)
    return failed if total <= MAX_COLLECTED_ROWS else []


@contextmanager
def _cached_rows(spark: SparkSession, staged: StagedFiles) -> Iterator[DataFrame]:
    """The staged rows with their positions, kept for the many jobs of a suite."""
    frame = keyed_rows(spark, staged).persist()
    try:
        yield frame
    finally:
        with contextlib.suppress(Exception):  # a broken connection must not hide the error
            frame.unpersist()


def keyed_rows(spark: SparkSession, staged: StagedFiles) -> DataFrame:
    """The staged rows with a column that holds each row's position.

    NaN becomes null: pandas takes both for a missing value, and a suite means the same on both engines.
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
    columns = []
    for field in staged.schema:
        column = fn.col(quoted(field.name))
        if field.data_type in (FLOAT, DOUBLE):
            column = fn.when(~fn.isnan(column), column).alias(field.name)
        columns.append(column)
    return frame.select(*columns, position)


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


def _positions(result: Any) -> Positions | None:
    found = (result.result or {}).get("unexpected_index_list")
    if found is None:
        return None
    return np.unique(np.asarray([row[POSITION] for row in found], dtype=np.int64))
