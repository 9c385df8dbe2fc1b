"""Change data files: the rows that one commit changed, and how (PROTOCOL.md, "Change Data Files").

A commit needs them only where its `add` and `remove` actions would describe other changes: where it copies
the unchanged rows of a file, or where it updates rows. For a commit with change data files, readers ignore
its `add` and `remove` actions ("Reader Requirements for AddCDCFile"). So the files must contain every changed
row.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from enum import StrEnum
from types import TracebackType
from typing import Self

import pyarrow as pa

from delta_core.actions import AddCdcFile, AddFile, Metadata, Protocol
from delta_core.actions.add_cdc_file import CHANGE_DATA_DIRECTORY
from delta_core.clock import SYSTEM_CLOCK, Clock
from delta_core.data.row_batch import Columns, RowBatch
from delta_core.data.row_files import FileOptions, RowFileWriter
from delta_core.data.write_plan import WritePlan
from delta_core.scan.commit_changes import CHANGE_COLUMNS, CHANGE_TYPE
from delta_core.scan.record_batches import FileReader
from delta_core.schema.types import StructType
from delta_core.storage.data_access import TABLE_ONLY
from delta_core.storage.log_store import LogStore
from delta_core.table_features.feature import writer_features
from delta_core.table_features.table_properties import parse_bool

_FEATURE = "changeDataFeed"
_PROPERTY = "delta.enableChangeDataFeed"
_NO_STATISTICS = {"delta.dataSkippingNumIndexedCols": "0", "delta.dataSkippingStatsColumns": None}


class Change(StrEnum):
    """The kind of change of a row; the values are those of `_change_type`."""

    INSERT = "insert"
    DELETE = "delete"
    BEFORE_UPDATE = "update_preimage"
    AFTER_UPDATE = "update_postimage"


def records_changes(protocol: Protocol, metadata: Metadata) -> bool:
    """Whether writers must record changes of the table's rows ("Writer Requirements for AddCDCFile")."""
    if _FEATURE not in writer_features(protocol):
        return False
    try:
        return parse_bool(metadata.configuration.get(_PROPERTY, "false"))
    except ValueError:
        return False


class ChangeFileWriter:
    """Writes changed rows with their kind of change. A context manager that deletes its files on error.

    The files are in `_change_data`. They have the layout of the table's data files and one more column. They
    have neither statistics nor row ids ("Reader Requirements for Row Tracking").
    """

    def __init__(
        self,
        store: LogStore,
        plan: WritePlan,
        *,
        directory: str = CHANGE_DATA_DIRECTORY,
        clock: Clock = SYSTEM_CLOCK,
    ) -> None:
        """Prepare for a table. Nothing is written before the first row.

        Args:
            store: the table's store.
            plan: the write plan of the table.
            directory: CHANGE_DATA_DIRECTORY or a directory in it.
            clock: source of the modification time.
        """
        plan = _with_change_type(plan)
        self._writer = RowFileWriter(
            store,
            plan=plan,
            options=FileOptions(directory=directory, name_prefix="cdc", data_change=False),
            properties=plan.properties,
            clock=clock,
        )

    def __enter__(self) -> Self:
        """The writer itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Delete the written files after an error."""
        self._writer.__exit__(kind, error, trace)

    def write(self, rows: Columns, change: Change) -> None:
        """Write rows with this change. They have all columns, in the types of the schema."""
        if not rows.num_rows:
            return
        kinds = pa.repeat(pa.scalar(str(change), pa.string()), rows.num_rows)
        self._writer.write(RowBatch(columns=rows.append_column(CHANGE_TYPE, kinds)))

    def finish(self) -> tuple[AddCdcFile, ...]:
        """Close all files and return one action for each."""
        return tuple(
            AddCdcFile(path=file.path, partition_values=file.partition_values, size_bytes=file.size_bytes)
            for file in self._writer.finish()
        )


def write_inserts(
    store: LogStore, plan: WritePlan, adds: Iterable[AddFile], *, clock: Clock = SYSTEM_CLOCK
) -> tuple[AddCdcFile, ...]:
    """Write the rows of files that the commit adds as change data. After a failure, no written file remains.

    A commit that also changes other rows needs this, because readers ignore its added files. The rows came
    from a stream, so each file is read once. Raises the errors of `Scan.to_batches`.
    """
    reader = FileReader(schema=plan.schema, partition_columns=plan.partition_columns, mapping=plan.mapping)
    with ChangeFileWriter(store, plan, clock=clock) as writer:
        for add in adds:
            location = TABLE_ONLY.locate(add.path, store=store)
            for batch in reader.read(location.store, location.path, add.partition_values):
                writer.write(batch, Change.INSERT)
        return writer.finish()


def _with_change_type(plan: WritePlan) -> WritePlan:
    """The plan for files with one more column, whose name in the files does not depend on the mapping."""
    field = next(field for field in CHANGE_COLUMNS if field.name == CHANGE_TYPE)
    configuration = {key: value for key, value in plan.configuration.items() if key not in _NO_STATISTICS}
    configuration |= {key: value for key, value in _NO_STATISTICS.items() if value is not None}
    return replace(
        plan,
        schema=StructType((*plan.schema.fields, field)),
        configuration=configuration,
        mapping=replace(plan.mapping, unmapped=plan.mapping.unmapped | {CHANGE_TYPE}),
        row_tracking=None,
    )
