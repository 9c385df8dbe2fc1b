"""The quarantine table: rows that were not published, with the reason.

**Each row is in exactly one of two tables.** Two tables cannot commit together. So the quarantine's commit
comes first, and then the publishing commit, which records the load's idempotency key. Until the publishing
commit lands, the load counts as not done, and a retry *replaces* the batch's rows in the quarantine with the
bad rows of the retry. When a driver dies:

- before the quarantine's commit: nothing is visible; a vacuum deletes the staged files.
- between the two commits: the bad rows are in the quarantine and no row is published. The retry replaces the
  batch's rows in the quarantine with the same rows, or with other rows or none when the source or the suite
  has changed, and publishes the rest.
- after the publishing commit: the retry finds the key in the table and does nothing.

When the publishing commit certainly failed, the batch's rows are deleted from the quarantine. A driver that
was only presumed dead may resume while its retry runs. Therefore it looks up the key in the table before the
quarantine's commit. The commits of two tries of one batch conflict, because each has a `txn` action whose
version counts the tries.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa

from delta_core.actions import SetTransaction
from delta_core.clock import SYSTEM_CLOCK, Clock
from delta_core.dml.metadata_update import TableDefinition, plan_metadata_update
from delta_core.dml.write import write_deltalake
from delta_core.errors import ConcurrentTransactionError, QualitySuiteError, SchemaError, TableNotFoundError
from delta_core.expressions.ast import Column, Comparison, ComparisonOperator, Literal
from delta_core.expressions.render import to_spark_sql
from delta_core.schema.arrow import to_arrow
from delta_core.schema.conversion import convert_chunked
from delta_core.schema.types import (
    STRING,
    TIMESTAMP,
    ArrayType,
    DataType,
    MapType,
    StructField,
    StructType,
)
from delta_core.snapshot.snapshot import Snapshot
from delta_core.storage import open_store
from delta_core.table_features.feature import WriterKind
from delta_core.transaction import CommitProperties

REASON: Final = "_quarantine_reason"
EXPECTATIONS: Final = "_quarantine_expectations"
SOURCE: Final = "_quarantine_source"
BATCH: Final = "_quarantine_batch"
TIME: Final = "_quarantined_at"
RAW: Final = "_quarantine_raw"

_QUARANTINE_FIELDS: Final = (
    StructField(name=REASON, data_type=STRING),
    StructField(name=EXPECTATIONS, data_type=ArrayType(element_type=STRING)),
    StructField(name=SOURCE, data_type=STRING),
    StructField(name=BATCH, data_type=STRING),
    StructField(name=TIME, data_type=TIMESTAMP),
    StructField(name=RAW, data_type=STRING),
)
_CONFIGURATION: Final = {
    # Statistics cover only the first columns by default, which are the loaded table's. A batch is found by
    # the statistics of its name.
    "delta.dataSkippingStatsColumns": f"{BATCH},{SOURCE},{TIME}",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class BadRows:
    """Rows for the quarantine.

    Attributes:
        rows: the rows with columns of the loaded table; missing columns are null.
        reasons: per row, the reason why it is not published.
        expectations: per row, the names of the expectations that it does not meet.
        raw: per row, its JSON text from the source, when the source row could not be cast to the table's
            types.
    """

    rows: pa.Table
    reasons: Sequence[str]
    expectations: Sequence[Sequence[str]]
    raw: Sequence[str | None] | None = None


class Quarantine:
    """The quarantine table of one load and one batch in it.

    Args:
        uri: the table's URI. The table is created when it is missing.
        batch: the batch's name, which is the same for every try of the load.
        schema: the schema of the loaded table.
        source: the origin of the rows, for display.
        storage_options: options for the store.
    """

    def __init__(
        self,
        uri: str,
        *,
        batch: str,
        schema: StructType,
        source: str = "",
        storage_options: Mapping[str, str] | None = None,
        clock: Clock = SYSTEM_CLOCK,
    ) -> None:
        self._store = open_store(uri, storage_options=storage_options, clock=clock)
        self._storage_options = storage_options
        self._batch = batch
        self._table_schema = schema
        self._source = source
        self._clock = clock

    @property
    def uri(self) -> str:
        """The quarantine table's URI."""
        return self._store.uri

    def check(self) -> None:
        """Check that the quarantine table, if it exists, can store rows of the loaded table.

        Raises:
            QualitySuiteError: the table has a column of an incompatible type, or the loaded table has a
                column with a reserved name.
            InvalidTableError, ProtocolError: the table cannot be read or written.
        """
        schema = quarantine_schema(self._table_schema)
        snapshot = self._snapshot()
        if snapshot is None:
            return
        snapshot.require_writable(writer_kind=WriterKind.SPARK_ROWS)
        try:
            plan_metadata_update(
                snapshot,
                data_schema=schema,
                definition=TableDefinition(merge_schema=True),
                now_ms=self._clock.now_ms(),
            )
        except SchemaError as error:
            raise QualitySuiteError(
                f"The quarantine table {self.uri} cannot store rows of the loaded table.",
                cause=str(error),
                fix="Set quality.quarantine_uri to a new table, or change the column's type in the "
                "quarantine table.",
            ) from error

    def tries(self) -> int:
        """The number of tries of this batch that have committed to the quarantine."""
        snapshot = self._snapshot()
        found = None if snapshot is None else snapshot.transactions.get(self._app_id)
        return 0 if found is None else found.version + 1

    def replace_batch(self, bad: Sequence[BadRows], *, after: int, user_metadata: str | None) -> int | None:
        """Replace the batch's rows in the quarantine table with the rows `bad`, in one commit.

        Args:
            bad: the rows; empty to delete the rows of an earlier try.
            after: the result of `tries` from before the caller checked that the load is not yet applied.
            user_metadata: the commit's `userMetadata`.

        Returns:
            The version of the commit; None when there is nothing to do.

        Raises:
            ConcurrentTransactionError: another try of this batch has committed since that call of `tries`.
        """
        count = sum(part.rows.num_rows for part in bad)
        if count == 0 and after == 0:
            return None
        key = SetTransaction(app_id=self._app_id, version=after, last_updated_ms=self._clock.now_ms())
        exists = self._snapshot() is not None
        committed = write_deltalake(
            self.uri,
            self._to_table(bad),
            # Rows of an earlier try may have a different reason now, so they are replaced.
            mode="overwrite" if after else "append",
            predicate=_equals(BATCH, self._batch) if after else None,
            schema_mode="merge" if exists else None,
            configuration=None if exists else _CONFIGURATION,
            commit_properties=CommitProperties(user_metadata=user_metadata, txn=key),
            storage_options=self._storage_options,
            clock=self._clock,
        )
        assert committed is not None  # only mode 'ignore' returns None
        if committed.already_applied:
            raise ConcurrentTransactionError(
                f"Another try of this load has written its rows to the quarantine table {self.uri}.",
                cause=f"The other try runs at the same time, for the batch {self._batch!r}.",
                fix="Run the job again. It then finds the rows of the other try.",
            )
        return committed.version

    @property
    def _app_id(self) -> str:
        return f"quarantine:{self._batch}"

    def _snapshot(self) -> Snapshot | None:
        try:
            return Snapshot.load(self._store, clock=self._clock)
        except TableNotFoundError:
            return None

    def _to_table(self, bad: Sequence[BadRows]) -> pa.Table:
        if not any(part.rows.num_rows for part in bad):
            return to_arrow(StructType(_QUARANTINE_FIELDS)).empty_table()
        schema = to_arrow(quarantine_schema(self._table_schema))
        return pa.concat_tables([self._to_arrow(part, schema) for part in bad])

    def _to_arrow(self, bad: BadRows, schema: pa.Schema) -> pa.Table:
        count = bad.rows.num_rows
        values: dict[str, Any] = {
            REASON: list(bad.reasons),
            EXPECTATIONS: [list(names) for names in bad.expectations],
            SOURCE: [self._source] * count,
            BATCH: [self._batch] * count,
            TIME: [self._clock.now_ms() * 1000] * count,
            RAW: [None] * count if bad.raw is None else list(bad.raw),
        }
        columns = []
        for field in schema:
            if field.name in values:
                columns.append(pa.array(values[field.name], field.type))
            elif field.name in bad.rows.column_names:
                columns.append(convert_chunked(bad.rows.column(field.name), field.type))
            else:
                columns.append(pa.nulls(count, field.type))
        return pa.Table.from_arrays(columns, schema=schema)


def quarantine_schema(schema: StructType) -> StructType:
    """The quarantine table's columns: those of the loaded table, all nullable, and those of the quarantine.

    Raises:
        QualitySuiteError: the loaded table has a column with a reserved name.
    """
    reserved = [field.name for field in _QUARANTINE_FIELDS if schema.find(field.name) is not None]
    if reserved:
        raise QualitySuiteError(
            f"The loaded table has a column {reserved[0]!r}, a reserved name in the quarantine table.",
            fix="Rename the column, or set on_failure to 'fail' or 'warn'.",
        )
    fields = (StructField(name=field.name, data_type=_nullable(field.data_type)) for field in schema)
    return StructType((*fields, *_QUARANTINE_FIELDS))


def names_by_row(
    rows: np.ndarray[Any, Any], found: Iterable[tuple[str, np.ndarray[Any, Any]]]
) -> list[list[str]]:
    """For each of the ascending positions `rows`, the names in `found` whose positions contain it."""
    names: list[list[str]] = [[] for _ in range(len(rows))]
    for name, positions in found:
        for index in np.searchsorted(rows, positions).tolist():
            names[index].append(name)
    return names


def _nullable(data_type: DataType) -> DataType:
    if isinstance(data_type, StructType):
        return StructType(
            tuple(StructField(name=f.name, data_type=_nullable(f.data_type)) for f in data_type)
        )
    if isinstance(data_type, ArrayType):
        return ArrayType(element_type=_nullable(data_type.element_type))
    if isinstance(data_type, MapType):
        return MapType(key_type=_nullable(data_type.key_type), value_type=_nullable(data_type.value_type))
    return data_type


def _equals(column: str, value: str) -> str:
    return to_spark_sql(Comparison(ComparisonOperator.EQ, Column((column,)), Literal(value, STRING)))
