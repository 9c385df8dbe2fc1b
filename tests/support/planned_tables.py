"""Tables whose log is written by hand and whose data files by the chain of steps, read back by scans."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from delta_core.actions import AddFile, Metadata, Protocol
from delta_core.data.row_batch import RowBatch
from delta_core.data.row_files import FileOptions, write_rows_to_files
from delta_core.data.row_pipeline import WrittenRows, write_rows
from delta_core.data.write_plan import WritePlan
from delta_core.scan.scan import Scan
from delta_core.snapshot.snapshot import Snapshot
from tests.support.log_builder import LogBuilder

_READER_FEATURES = frozenset({"columnMapping", "deletionVectors", "typeWidening", "variantType"})


def column(name: str, kind: Any, *, nullable: bool = True, **metadata: Any) -> dict[str, Any]:
    """A field of a schema as JSON; of its metadata, `_` in names stands for a dot."""
    return {
        "name": name,
        "type": kind,
        "nullable": nullable,
        "metadata": {
            key.replace("_", ".") if key != "CURRENT_DEFAULT" else key: v for key, v in metadata.items()
        },
    }


def mapped(name: str, kind: Any, number: int, physical: str, *, nullable: bool = True) -> dict[str, Any]:
    """A field with a physical name and an id."""
    ids = {"delta.columnMapping.id": number, "delta.columnMapping.physicalName": physical}
    return {"name": name, "type": kind, "nullable": nullable, "metadata": ids}


def struct(*fields: dict[str, Any]) -> dict[str, Any]:
    """A struct as JSON."""
    return {"type": "struct", "fields": list(fields)}


class PlannedTable:
    """One table; every write is one commit."""

    def __init__(
        self,
        root: Path,
        *fields: dict[str, Any],
        features: Sequence[str] = (),
        partition_columns: Sequence[str] = (),
        configuration: Mapping[str, str] | None = None,
    ) -> None:
        listed = frozenset(features)
        self.log = LogBuilder(root)
        self.protocol = Protocol(
            min_reader_version=3,
            min_writer_version=7,
            reader_features=listed & _READER_FEATURES,
            writer_features=listed,
        )
        self.metadata = Metadata(
            id="t",
            schema_string=json.dumps(struct(*fields)),
            partition_columns=tuple(partition_columns),
            configuration=dict(configuration or {}),
        )
        self.log.commit(self.protocol, self.metadata)

    @property
    def plan(self) -> WritePlan:
        """What the table asks of rows, through JSON and back, as a task gets it."""
        plan = WritePlan.of(self.protocol, self.metadata)
        again = WritePlan.from_json(json.loads(json.dumps(plan.to_json())))
        assert again == plan
        return again

    def write(self, rows: pa.Table | pa.RecordBatchReader, **options: Any) -> WrittenRows:
        """Append rows as a caller would."""
        predicate = options.pop("predicate", None)
        written = write_rows(
            self.log.store,
            self.plan,
            rows,
            predicate=predicate,
            options=FileOptions(**options),
            clock=self.log.clock,
        )
        self.log.commit(*written.adds)
        return written

    def copy(self, *batches: RowBatch, keep_row_ids: bool = True) -> list[AddFile]:
        """Append rows as they are."""
        adds = write_rows_to_files(
            self.log.store, batches, plan=self.plan, keep_row_ids=keep_row_ids, clock=self.log.clock
        )
        self.log.commit(*adds)
        return adds

    def rows(self, **options: Any) -> list[dict[str, Any]]:
        """All rows, by a scan."""
        scan = Scan(Snapshot.load(self.log.store), **options)
        return pa.Table.from_batches(list(scan.to_batches()), schema=scan.schema).to_pylist()

    def files(self) -> list[Path]:
        """The data files in the store."""
        return sorted(self.log.root.rglob("*.parquet"))
