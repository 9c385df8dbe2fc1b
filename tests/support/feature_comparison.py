"""A table read by us and by delta-spark: every version, random predicates, changes between versions."""

from __future__ import annotations

import json
import random
import time
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql.types import StructType

from delta_core.errors import DeltaError
from delta_core.scan.change_data import ChangeDataScan
from delta_core.scan.commit_changes import COMMIT_TIMESTAMP
from delta_core.scan.scan import Scan
from delta_core.schema.json import schema_to_json
from delta_core.snapshot.snapshot import Snapshot
from delta_core.storage.local import LocalLogStore
from tests.support.feature_sets import FeatureSet
from tests.support.feature_tables import FeatureTable, SparkErrors, condition_of
from tests.support.feature_values import predicate
from tests.support.rows import canonical_rows

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_CHANGE_DATA = "delta.enableChangeDataFeed"
_COMMIT_TIMES = "delta.enableInCommitTimestamps"


def check_table(
    spark: SparkSession, rng: random.Random, features: FeatureSet, path: Path, *, operations: int
) -> dict[str, Any]:
    """Have delta-spark make a table, then read it twice.

    Returns:
        Counts of what was made and compared, and in `refused` what delta-spark would not do.

    Raises:
        AssertionError: the two disagree.
    """
    made = FeatureTable(spark, rng, features, path)
    began = time.monotonic()
    made.build(operations)
    made_seconds = time.monotonic() - began
    comparison = _Comparison(spark, rng, path)
    newest = comparison.newest
    rows = sum(comparison.check_version(version) for version in range(newest + 1))
    predicates = max(2, operations // 3)
    for _ in range(predicates):
        comparison.check_predicate(rng.choice([newest, rng.randint(0, newest)]))
    ranges = Counter(comparison.check_changes() for _ in range(max(2, operations // 4)))
    protocol = comparison.snapshots[newest].protocol
    return {
        "features": sorted(features),
        "operations": made.done,
        "refused": dict(made.refused),
        "versions": newest + 1,
        "rows": rows,
        "predicates": predicates,
        "change_data_ranges": ranges["equal"],
        "change_data_refused_by_both": ranges["refused"],
        "making_seconds": round(made_seconds, 1),
        "checkpoints": len(list((path / "_delta_log").glob("*.checkpoint*"))),
        "protocol": sorted(
            (protocol.reader_features or frozenset()) | (protocol.writer_features or frozenset())
        ),
    }


class _Comparison:
    def __init__(self, spark: SparkSession, rng: random.Random, path: Path) -> None:
        self._spark = spark
        self._rng = rng
        self._path = path
        self._store = LocalLogStore(path)
        self.newest = Snapshot.load(self._store).version
        self.snapshots = [Snapshot.load(self._store, version=v) for v in range(self.newest + 1)]

    def _theirs(self, **options: int | str) -> DataFrame:
        return self._spark.read.format("delta").options(**options).load(str(self._path))

    def check_version(self, version: int) -> int:
        """Compare all rows; returns how many there are."""
        frame, ours = self._theirs(versionAsOf=version), Scan(self.snapshots[version])
        schema = StructType.fromJson(json.loads(schema_to_json(self.snapshots[version].schema)))
        assert schema.simpleString() == frame.schema.simpleString(), f"the schema at version {version}"
        table = ours.to_table()
        assert_same_rows(table, collected(frame), f"version {version}")
        return table.num_rows

    def check_predicate(self, version: int) -> None:
        """Compare the rows for which a random predicate is true."""
        frame = self._theirs(versionAsOf=version)
        text = predicate(self._rng, frame.schema.fields)
        ours = Scan(self.snapshots[version], predicate=text).to_table()
        assert_same_rows(ours, collected(frame.where(text)), f"version {version} where {text}")

    def check_changes(self) -> str:
        """Compare the changes of a random range of versions in which they were recorded."""
        on = self._enabled(_CHANGE_DATA)
        if not any(on):
            return "off"
        start = end = self._rng.choice([version for version, enabled in enumerate(on) if enabled])
        while end < self.newest and on[end + 1] and self._rng.random() < 0.85:
            end += 1
        what = f"changes of versions {start} to {end}"
        try:
            frame = self._theirs(readChangeFeed="true", startingVersion=start, endingVersion=end)
            theirs = collected(frame)
        except SparkErrors as error:
            refusal = condition_of(error)
            try:
                ChangeDataScan(self.snapshots[end], starting_version=start).to_table()
            except DeltaError:
                return "refused"
            return f"refused by delta-spark alone: {refusal}"
        ours = ChangeDataScan(self.snapshots[end], starting_version=start).to_table()
        if not all(self._enabled(_COMMIT_TIMES)[start : end + 1]):
            ours, theirs = ours.drop_columns([COMMIT_TIMESTAMP]), theirs.drop_columns([COMMIT_TIMESTAMP])
        # Without column mapping delta-spark gives the newest schema, whatever the range.
        if self.snapshots[end].column_mapping.mode == "none":
            now = {field.name: field.data_type for field in self.snapshots[-1].schema}
            if any(now.get(field.name) != field.data_type for field in self.snapshots[end].schema):
                return "other schema"
            added = [name for name in theirs.column_names if name not in ours.column_names]
            assert all(theirs.column(name).null_count == theirs.num_rows for name in added), what
            theirs = theirs.select(ours.column_names)
        assert_same_rows(ours, theirs, what)
        return "equal"

    def _enabled(self, key: str) -> list[bool]:
        settings: list[Mapping[str, str]] = [one.metadata.configuration for one in self.snapshots]
        return [one.get(key, "false").lower() == "true" for one in settings]


def collected(frame: DataFrame) -> pa.Table:
    """The rows as Spark sends them.

    `toArrow` casts them once more, which Arrow refuses where a struct with a variant is null.
    """
    return pa.Table.from_batches(frame._collect_as_arrow(empty_list_if_zero_records=False))


def assert_same_rows(ours: pa.Table, theirs: pa.Table, what: str) -> None:
    """The same columns in the same order, the same rows in any order."""
    assert ours.column_names == theirs.column_names, what
    mine, others = Counter(canonical_rows(ours)), Counter(canonical_rows(theirs))
    lacking, surplus = list((others - mine).elements()), list((mine - others).elements())
    assert mine == others, (
        f"{what}: {len(lacking)} rows are only delta-spark's, {len(surplus)} only ours; "
        f"such as {lacking[:1]} and {surplus[:1]}"
    )
