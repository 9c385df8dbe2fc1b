"""A table of many features, drops of each of them, and what others do to it meanwhile.

File A holds the ids 0 to 9 and file B 10 to 19 in partition a, file C 20 to 29 in partition b; row 15 went by
a vector. The column `n` was narrower in A, and its checkpoint is a V2 one.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from delta_core import DeltaTable, write_deltalake
from delta_core.checkpoint.write import write_checkpoint
from delta_core.errors import FeatureRemovalError
from delta_core.execution.inline_executor import InlineExecutor
from delta_core.maintenance.feature_drop import drop_feature
from delta_core.run import Run
from delta_core.schema.types import LONG, STRING, StructField
from delta_core.snapshot.snapshot import Snapshot
from delta_core.storage.local import LocalLogStore
from delta_core.table_features.upgrade import supported_features
from delta_core.transaction.observer import NULL_OBSERVER, TransactionObserver
from tests.support.feature_traces import drop_faults, raw_versions, unlisted

DELETION_VECTORS = {"delta.enableDeletionVectors": "true"}
TRACKING = {"delta.enableRowTracking": "true"}
MAPPING = {"delta.columnMapping.mode": "name"}
WIDENING = {"delta.enableTypeWidening": "true"}
V2 = {"delta.checkpointPolicy": "v2"}
FEED = {"delta.enableChangeDataFeed": "true"}
TIMES = {"delta.enableInCommitTimestamps": "true"}
EVERYTHING = {**DELETION_VECTORS, **TRACKING, **MAPPING, **WIDENING, **V2, **FEED, **TIMES}

WIDENED, DELETED = 2, 5
"""The versions in which the type was changed, and the row deleted."""

_ALONE = InlineExecutor(1)
_DAY_SECONDS = 86_400


def rows(ids: Iterable[int], *, partition: str, number: pa.DataType) -> pa.Table:
    """Rows of the table."""
    numbers = list(ids)
    return pa.table(
        {
            "id": pa.array(numbers, pa.int64()),
            "p": pa.array([partition] * len(numbers), pa.string()),
            "v": pa.array([f"v{n}" for n in numbers], pa.string()),
            "n": pa.array([n % 7 for n in numbers], number),
            "m": pa.array([n % 5 for n in numbers], pa.int32()),
        }
    )


def make(root: Path) -> None:
    """The table."""
    narrow = rows(range(10), partition="a", number=pa.int32())
    table = DeltaTable.create(root, narrow.schema, partition_by=["p"], configuration=EVERYTHING)
    write_deltalake(table, narrow, mode="append")
    table.alter.change_type("n", LONG)
    write_deltalake(table, rows(range(10, 20), partition="a", number=pa.int64()), mode="append")
    write_deltalake(table, rows(range(20, 30), partition="b", number=pa.int64()), mode="append")
    table.delete("id = 15")
    assert table.version() == DELETED
    write_checkpoint(table.snapshot)


def make_protected(root: Path) -> None:
    """The same once vectors have been dropped; a day and an hour ago."""
    make(root)
    DeltaTable(root).alter.drop_feature("deletionVectors", executor=_ALONE)
    age(root)


def make_due(root: Path) -> None:
    """The same where a run has taken the vectors away, and was told when to come back, which is now."""
    make(root)
    try:
        DeltaTable(root).alter.drop_feature("deletionVectors", truncate_history=True, executor=_ALONE)
    except FeatureRemovalError:
        age(root)
        return
    raise AssertionError("the history is not old enough")


def make_for_iceberg(root: Path) -> None:
    """A table that can be converted to Iceberg's format, with one file for each ten rows."""
    configuration = {"delta.enableIcebergCompatV2": "true"}
    table = DeltaTable.create(
        root,
        rows([], partition="a", number=pa.int64()).schema,
        partition_by=["p"],
        configuration=configuration,
    )
    for first, partition in ((0, "a"), (10, "a"), (20, "b")):
        data = rows(range(first, first + 10), partition=partition, number=pa.int64())
        write_deltalake(table, data, mode="append")


def age(root: Path) -> None:
    """Make every file of the log look as if it had been written a day and an hour earlier.

    Commits that carry their time are not changed by that, so theirs is taken back as well.
    """
    seconds = _DAY_SECONDS + 3_600
    for path in (root / "_delta_log").rglob("*"):
        if path.suffix == ".json":
            lines = [json.loads(line) for line in path.read_text().splitlines()]
            for line in lines:
                if "inCommitTimestamp" in line.get("commitInfo", {}):
                    line["commitInfo"]["inCommitTimestamp"] -= seconds * 1000
            path.write_text("".join(json.dumps(line) + "\n" for line in lines))
        if path.is_file():
            moment = path.stat().st_mtime - seconds
            os.utime(path, (moment, moment))


@dataclass(frozen=True, slots=True, kw_only=True)
class Drop:
    """A drop of a feature as a value.

    Attributes:
        make: the table that it starts from.
        truncates: whether it deletes the history that uses the feature.
    """

    name: str
    feature: str
    make: Callable[[Path], None] = make
    truncates: bool = False

    def run(self, root: Path, observer: TransactionObserver = NULL_OBSERVER, **options: Any) -> object:
        """Do it."""
        return drop_feature(
            Snapshot.load(LocalLogStore(root)),
            self.feature,
            truncate_history=self.truncates,
            run=Run(executor=_ALONE, observer=observer),
            **options,
        )


DROPS: dict[str, Drop] = {
    drop.name: drop
    for drop in (
        *(
            Drop(name=f"drop {feature}", feature=feature)
            for feature in (
                "deletionVectors",
                "rowTracking",
                "columnMapping",
                "typeWidening",
                "v2Checkpoint",
                "changeDataFeed",
                "inCommitTimestamp",
            )
        ),
        Drop(name="truncate", feature="deletionVectors", make=make_due, truncates=True),
        Drop(name="drop the protection", feature="checkpointProtection", make=make_protected, truncates=True),
        Drop(name="drop icebergCompatV2", feature="icebergCompatV2", make=make_for_iceberg),
    )
}

Change = Callable[[Path], object]


def _set(properties: Mapping[str, str]) -> Change:
    return lambda root: DeltaTable(root).alter.set_properties(properties)


def _write(partition: str, *ids: int, **options: Any) -> Change:
    data = rows(ids, partition=partition, number=pa.int64())
    return lambda root: write_deltalake(root, data, **options)


CHANGES: dict[str, Change] = {
    "append": _write("b", 100, 101, mode="append"),
    "delete": lambda root: DeltaTable(root).delete("id IN (3, 14)"),
    "delete of a file": lambda root: DeltaTable(root).delete("id < 10"),
    "update": lambda root: DeltaTable(root).update({"v": "concat(v, '!')"}, "id IN (4, 25)"),
    "replace a partition": _write("b", 50, mode="overwrite", partition_overwrite_mode="dynamic"),
    "overwrite": _write("a", 60, 61, mode="overwrite"),
    "compaction": lambda root: DeltaTable(root).optimize.compact(executor=_ALONE),
    "purge": lambda root: DeltaTable(root).optimize.purge(executor=_ALONE),
    "restore": lambda root: DeltaTable(root).restore(3),
    "restore the widened": lambda root: DeltaTable(root).restore(WIDENED),
    "add a column": lambda root: DeltaTable(root).alter.add_columns(
        StructField(name="more", data_type=STRING)
    ),
    "rename a column": lambda root: DeltaTable(root).alter.rename_column("v", "w"),
    "widen a column": lambda root: DeltaTable(root).alter.change_type("m", LONG),
    "describe": lambda root: DeltaTable(root).alter.set_description("what is in it"),
    "vectors on": _set(DELETION_VECTORS),
    "tracking on": _set(TRACKING),
    "mapping on": _set(MAPPING),
    "widening on": _set(WIDENING),
    "v2 on": _set(V2),
    "feed on": _set(FEED),
    "times on": _set(TIMES),
    "checkpoint": lambda root: write_checkpoint(DeltaTable(root).snapshot),
    "vacuum": lambda root: DeltaTable(root).vacuum(
        retention_hours=0, enforce_retention=False, force=True, dry_run=False, executor=_ALONE
    ),
    "set a domain": lambda root: DeltaTable(root).alter.set_domain_metadata("team", "{}"),
}
"""What others do, each from the newest version, in commits of its own."""


_ITS_OWN = ("aterialized", "Protection", "Enablement", "maxColumnId")


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """What a table is to its users; of its properties those that no drop keeps to itself."""

    rows: tuple[str, ...]
    columns: tuple[str, ...]
    properties: tuple[tuple[str, str], ...]
    features: frozenset[str]

    @classmethod
    def of(cls, root: Path) -> State:
        """A table's newest version."""
        table = DeltaTable(root)
        found = (json.dumps(row, sort_keys=True) for row in table.to_pyarrow_table().to_pylist())
        return cls(
            rows=tuple(sorted(found)),
            columns=tuple(f"{field.name} {field.data_type}" for field in table.snapshot.schema),
            properties=tuple(
                sorted(
                    (key, value)
                    for key, value in table.metadata().configuration.items()
                    if not any(
                        part in key for part in ("aterialized", "Protection", "Enablement", "maxColumnId")
                    )
                )
            ),
            features=supported_features(table.protocol()),
        )


def history_faults(root: Path) -> list[str]:
    """What is wrong with the drops in a log that is all there, and with what its versions say of features."""
    log = root / "_delta_log"
    commits = {int(path.stem): path for path in log.glob("*.json") if path.stem.isdecimal()}
    if 0 not in commits:
        return []
    actions = [
        [json.loads(line) for line in commits[version].read_text().splitlines()]
        for version in sorted(commits)
    ]
    versions = raw_versions(actions)
    found = [fault for version in versions for fault in unlisted(version)]
    checkpoints = {int(path.name[:20]): _is_v2(path) for path in log.glob("*.checkpoint*")}
    for version in versions:
        if version.dropped is not None:
            found += drop_faults(versions, version.version, oldest=0, checkpoints=checkpoints)
    return found


def _is_v2(path: Path) -> bool:
    return path.suffix == ".json" or "checkpointMetadata" in pq.read_schema(path).names
