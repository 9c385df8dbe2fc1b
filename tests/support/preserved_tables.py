"""Tables with features, some of whose rows are deleted, and a fingerprint of what must not change."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from delta_core import DeltaTable
from delta_core.actions import Action, DomainMetadata, Metadata, Protocol
from delta_core.data.row_pipeline import write_rows
from delta_core.data.write_plan import WritePlan
from delta_core.deletion_vectors.file_update import update_deletion_vector
from delta_core.deletion_vectors.writer import write_deletion_vectors
from delta_core.execution.inline_executor import InlineExecutor
from delta_core.snapshot.snapshot import Snapshot
from delta_core.storage.local import LocalLogStore
from delta_core.table_features.feature import WriterKind
from delta_core.transaction.commit_result import raise_for_result
from delta_core.transaction.file_actions import add_actions
from delta_core.transaction.transaction import Transaction
from tests.support.log_builder import LogBuilder
from tests.support.planned_tables import column, mapped, struct

TRACKED = {
    "delta.enableRowTracking": "true",
    "delta.rowTracking.materializedRowIdColumnName": "_row-id-col",
    "delta.rowTracking.materializedRowCommitVersionColumnName": "_row-version-col",
}
FEED = {"delta.enableChangeDataFeed": "true"}
DELETION_VECTORS = {"delta.enableDeletionVectors": "true"}
READER = frozenset({"columnMapping", "deletionVectors", "typeWidening"})
COUNT = 60


@dataclass(frozen=True, kw_only=True)
class Case:
    """A table's definition, and the column to order by."""

    fields: tuple[dict[str, Any], ...]
    features: frozenset[str]
    configuration: dict[str, str]
    partition_columns: tuple[str, ...] = ()
    order_by: str = "id"
    domains: tuple[DomainMetadata, ...] = field(default=())

    @property
    def protocol(self) -> Protocol:
        """Its protocol."""
        return Protocol(
            min_reader_version=3,
            min_writer_version=7,
            reader_features=self.features & READER,
            writer_features=self.features,
        )

    @property
    def metadata(self) -> Metadata:
        """Its metadata."""
        return Metadata(
            id="t",
            schema_string=json.dumps(struct(*self.fields)),
            partition_columns=self.partition_columns,
            configuration=self.configuration,
        )


def mapped_fields() -> tuple[dict[str, Any], ...]:
    """Renamed columns, one of them with fields inside."""
    inside = struct(mapped("up", "long", 5, "col-up"), mapped("down", "string", 6, "col-down"))
    return (
        mapped("id", "long", 1, "col-id"),
        mapped("the name", "string", 2, "col-name"),
        mapped("part", "string", 3, "col-part"),
        mapped("nested", inside, 4, "col-nested"),
    )


TABLES = {
    "tracked": Case(
        fields=(column("id", "long"), column("the name", "string"), column("part", "string")),
        features=frozenset({"rowTracking", "domainMetadata", "deletionVectors", "changeDataFeed"}),
        configuration={**TRACKED, **FEED, **DELETION_VECTORS},
    ),
    "numbered, not tracked": Case(
        fields=(column("id", "long"), column("part", "string")),
        features=frozenset({"rowTracking", "domainMetadata"}),
        configuration={},
    ),
    "mapped by name": Case(
        fields=mapped_fields(),
        features=frozenset(
            {"columnMapping", "rowTracking", "domainMetadata", "deletionVectors", "changeDataFeed"}
        ),
        configuration={
            "delta.columnMapping.mode": "name",
            "delta.columnMapping.maxColumnId": "6",
            **TRACKED,
            **FEED,
            **DELETION_VECTORS,
        },
        partition_columns=("part",),
    ),
    "mapped by id": Case(
        fields=mapped_fields(),
        features=frozenset({"columnMapping", "deletionVectors"}),
        configuration={
            "delta.columnMapping.mode": "id",
            "delta.columnMapping.maxColumnId": "6",
            **DELETION_VECTORS,
        },
        partition_columns=("part",),
        order_by="the name",
    ),
    "for Iceberg": Case(
        fields=mapped_fields(),
        features=frozenset({"columnMapping", "icebergCompatV2", "rowTracking", "domainMetadata"}),
        configuration={
            "delta.columnMapping.mode": "name",
            "delta.columnMapping.maxColumnId": "6",
            "delta.enableIcebergCompatV2": "true",
            **TRACKED,
        },
        partition_columns=("part",),
    ),
    "materialised": Case(
        fields=(column("part", "string"), column("id", "long")),
        features=frozenset({"materializePartitionColumns"}),
        configuration={},
        partition_columns=("part",),
    ),
    "filled": Case(
        fields=(
            column("id", "long", delta_identity_start=0, delta_identity_step=1),
            column("twice", "long", delta_generationExpression="id * 2"),
            column("part", "string", CURRENT_DEFAULT="'x'"),
        ),
        features=frozenset({"identityColumns", "generatedColumns", "allowColumnDefaults"}),
        configuration={},
        order_by="twice",
    ),
}


def physical(case: Case, name: str) -> str:
    """A column's name in files."""
    (found,) = [item for item in case.fields if item["name"] == name]
    return str(found["metadata"].get("delta.columnMapping.physicalName", name))


def create(root: Path, case: Case) -> None:
    """By hand: not every surface writes such tables."""
    LogBuilder(root).commit(case.protocol, case.metadata, *case.domains)


def commit(root: Path, *actions: Action, data_change: bool = True) -> None:
    """Commit what the test has written itself."""
    store = LocalLogStore(root)
    transaction = Transaction.begin(
        Snapshot.load(store), operation="WRITE", writer_kind=WriterKind.REWRITE
    ).preserve_rows(not data_change)
    raise_for_result(transaction.add(*actions).commit())


def rows_of(case: Case, first: int, count: int = COUNT) -> pa.Table:
    """New rows; an identity column is not among them."""
    ids = list(range(first, first + count))
    columns: dict[str, Any] = {
        "id": pa.array(ids, pa.int64()),
        "the name": pa.array([None if i % 7 == 0 else f"n{i % 11}" for i in ids]),
        "part": pa.array(["a" if i % 3 else None for i in ids], pa.string()),
        "nested": pa.array(
            [None if i % 5 == 0 else {"up": i, "down": f"d{i}"} for i in ids],
            pa.struct([("up", pa.int64()), ("down", pa.string())]),
        ),
    }
    names = {item["name"] for item in case.fields} - ({"id"} if "identityColumns" in case.features else set())
    return pa.table({name: values for name, values in columns.items() if name in names})


def build(root: Path, case: Case, *, appends: int = 4) -> None:
    """Several appends; then rows of some files are deleted where the table can do so."""
    store = LocalLogStore(root)
    create(root, case)
    plan = WritePlan.of(case.protocol, case.metadata)
    for number in range(appends):
        given = replace(
            plan,
            identity=tuple(
                replace(item, high_water_mark=number * COUNT - 1 if number else None)
                for item in plan.identity
            ),
        )
        written = write_rows(store, given, rows_of(case, number * COUNT))
        commit(root, *[replace(add, tags={"loaded": "by hand", "file": str(number)}) for add in written.adds])
    if "deletionVectors" in case.features:
        delete(root, [1, 5, 6])
        delete(root, [2], files=1)


def delete(root: Path, positions: Sequence[int], *, files: int = 2) -> None:
    """Delete rows at some positions of the first files, by name."""
    snapshot = Snapshot.load(LocalLogStore(root))
    live = sorted(add_actions(snapshot.files.to_table(), data_change=True), key=lambda add: add.path)
    actions: list[Action] = []
    for file in [add for add in live if add.deletion_vector is None][:files]:
        written = write_deletion_vectors(
            snapshot.store, [np.array(positions, np.int64)], inline_max_bytes=-1 if files > 1 else 1000
        )
        update = update_deletion_vector(file, written.descriptors[0], deletion_timestamp_ms=1)
        actions += [action for action in (update.remove, update.add) if action is not None]
    commit(root, *actions)


@dataclass(frozen=True, kw_only=True)
class Fingerprint:
    """What must be the same before and after."""

    rows: list[str]
    feed: list[str]
    metadata: Metadata
    protocol: Protocol


def fingerprint(root: Path, *, up_to: int) -> Fingerprint:
    """Read it; no change may be newer than the version."""
    table = DeltaTable(root)
    properties = table.snapshot.metadata.configuration
    tracked = properties.get("delta.enableRowTracking") == "true"
    feed = properties.get("delta.enableChangeDataFeed") == "true"
    changes = [] if not feed else table.load_cdf(starting_version=1).read_all().to_pylist()
    assert all(change["_commit_version"] <= up_to for change in changes), "a rewriting changes nothing"
    return Fingerprint(
        rows=sorted(str(row) for row in table.to_pyarrow_table(row_ids=tracked).to_pylist()),
        feed=sorted(map(str, changes)),
        metadata=table.snapshot.metadata,
        protocol=table.snapshot.protocol,
    )


class AcrossProcesses(InlineExecutor):
    """Tasks and results go through JSON, as they do to Spark's workers."""

    def map(self, function: Any, tasks: Sequence[Any]) -> Iterator[tuple[int, Any]]:
        """See the executor."""
        for index, result in super().map(function, json.loads(json.dumps(tasks))):
            yield index, json.loads(json.dumps(result))
