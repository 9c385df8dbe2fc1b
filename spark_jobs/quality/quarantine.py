"""The quarantine table: rows that were not published, with the reason.

**Exactly once in one of two tables.** Two tables cannot commit together, so the order is: first the
quarantine's commit, then the publishing one, which carries the load's idempotency key. Until the second
lands, the load counts as not done, and whoever retries it starts by *replacing* what the quarantine holds
of this batch with what it finds itself. So whenever a driver dies:

- before the quarantine's commit: nothing is visible anywhere; the staged files are vacuum's.
- between the two: the bad rows are in quarantine and no row is published. The retry finds the batch there,
  replaces its rows by the same ones (or by others, when the source or the suite has changed since; or by
  none) and publishes the rest.
- after the publishing commit: the retry finds the key in the table and does nothing at all.

A publishing commit that certainly failed takes the batch's rows out of the quarantine again. A driver
that was only thought dead wakes up beside its retry: it looks the key up in the table before the
quarantine's commit, and the commits of two attempts on one batch exclude each other by a `txn` action
whose version counts the attempts.
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
from delta_core.storage.open import open_store
from delta_core.table_features.writer_kind import WriterKind
from delta_core.transaction.commit_properties import CommitProperties

REASON: Final = "_quarantine_reason"
EXPECTATIONS: Final = "_quarantine_expectations"
SOURCE: Final = "_quarantine_source"
BATCH: Final = "_quarantine_batch"
TIME: Final = "_quarantined_at"
RAW: Final = "_quarantine_raw"

_OWN_FIELDS: Final = (
    StructField(name=REASON, data_type=STRING),
    StructField(name=EXPECTATIONS, data_type=ArrayType(element_type=STRING)),
    StructField(name=SOURCE, data_type=STRING),
    StructField(name=BATCH, data_type=STRING),
    StructField(name=TIME, data_type=TIMESTAMP),
    StructField(name=RAW, data_type=STRING),
)
_CONFIGURATION: Final = {
    # A wide table's own columns would take all the room there is for statistics, and a batch is found by
    # those of its name.
    "delta.dataSkippingStatsColumns": f"{BATCH},{SOURCE},{TIME}",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class BadRows:
    """Rows for the quarantine.

    Attributes:
        rows: with columns of the loaded table; those that are missing are null.
        reasons: per row, why it is not published.
        expectations: per row, the names of what it does not meet.
        raw: per row, its text in the source, when it could not be read as a row of the table.
    """

    rows: pa.Table
    reasons: Sequence[str]
    expectations: Sequence[Sequence[str]]
    raw: Sequence[str | None] | None = None


class Quarantine:
    """The quarantine table of one load and one batch in it.

    Args:
        uri: of the table; it is made when missing.
        batch: names the batch, the same for every try of the load.
        schema: of the loaded table.
        source: where the rows came from, for people.
        storage_options: for the store.
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
        self._loaded = schema
        self._source = source
        self._clock = clock

    @property
    def uri(self) -> str:
        """The table's URI."""
        return self._store.uri

    def check(self) -> None:
        """Check that the table, if there is one, can take such rows.

        Raises:
            QualitySuiteError: it has a column of another type, or the loaded table has one of its names.
            InvalidTableError, ProtocolError: it cannot be read, or not written.
        """
        schema = quarantine_schema(self._loaded)
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
                f"The quarantine table {self.uri} cannot take rows of the loaded table.",
                cause=str(error),
                fix="Name another table in quality.quarantine_uri, or change the column's type there",
            ) from error

    def tries(self) -> int:
        """How many tries of this batch have committed here; the next commit is one more."""
        snapshot = self._snapshot()
        found = None if snapshot is None else snapshot.transactions.get(self._app_id)
        return 0 if found is None else found.version + 1

    def replace_batch(self, bad: Sequence[BadRows], *, after: int, user_metadata: str | None) -> int | None:
        """Make the table hold exactly these rows of the batch, in one commit.

        Args:
            bad: the rows; none takes out what an earlier try has put there.
            after: what `tries` said before the caller looked whether the load is still to be done.
            user_metadata: for the commit.

        Returns:
            The version that holds them; None when there is nothing to do.

        Raises:
            ConcurrentTransactionError: another try of this batch has committed since.
        """
        count = sum(part.rows.num_rows for part in bad)
        if count == 0 and after == 0:
            return None
        key = SetTransaction(app_id=self._app_id, version=after, last_updated_ms=self._clock.now_ms())
        exists = self._snapshot() is not None
        committed = write_deltalake(
            self.uri,
            self._table(bad),
            # Rows of an earlier try may have another reason by now, so they are not just kept.
            mode="overwrite" if after else "append",
            predicate=_equals(BATCH, self._batch) if after else None,
            schema_mode="merge" if exists else None,
            configuration=None if exists else _CONFIGURATION,
            commit_properties=CommitProperties(user_metadata=user_metadata, txn=key),
            storage_options=self._storage_options,
            clock=self._clock,
        )
        assert committed is not None  # only mode 'ignore' gives None
        if committed.already_applied:
            raise ConcurrentTransactionError(
                f"Another try of this load has written its rows to the quarantine table {self.uri}.",
                cause=f"It runs at the same time, for the batch {self._batch!r}",
                fix="Run the job again; it then finds what the other try has done",
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

    def _table(self, bad: Sequence[BadRows]) -> pa.Table:
        if not any(part.rows.num_rows for part in bad):
            return to_arrow(StructType(_OWN_FIELDS)).empty_table()
        schema = to_arrow(quarantine_schema(self._loaded))
        return pa.concat_tables([self._part(part, schema) for part in bad])

    def _part(self, bad: BadRows, schema: pa.Schema) -> pa.Table:
        count = bad.rows.num_rows
        own: dict[str, Any] = {
            REASON: list(bad.reasons),
            EXPECTATIONS: [list(names) for names in bad.expectations],
            SOURCE: [self._source] * count,
            BATCH: [self._batch] * count,
            TIME: [self._clock.now_ms() * 1000] * count,
            RAW: [None] * count if bad.raw is None else list(bad.raw),
        }
        columns = []
        for field in schema:
            if field.name in own:
                columns.append(pa.array(own[field.name], field.type))
            elif field.name in bad.rows.column_names:
                columns.append(bad.rows.column(field.name).cast(field.type))
            else:
                columns.append(pa.nulls(count, field.type))
        return pa.Table.from_arrays(columns, schema=schema)


def quarantine_schema(schema: StructType) -> StructType:
    """A table's columns, none of them required, and the quarantine's own.

    Raises:
        QualitySuiteError: the table has a column of such a name.
    """
    taken = [field.name for field in _OWN_FIELDS if schema.find(field.name) is not None]
    if taken:
        raise QualitySuiteError(
            f"The table has a column {taken[0]!r}, which the quarantine table needs for itself.",
            fix="Rename the column, or use on_failure 'fail' or 'warn'",
        )
    fields = (StructField(name=field.name, data_type=_nullable(field.data_type)) for field in schema)
    return StructType((*fields, *_OWN_FIELDS))


def names_by_row(
    rows: np.ndarray[Any, Any], found: Iterable[tuple[str, np.ndarray[Any, Any]]]
) -> list[list[str]]:
    """For each of the ascending positions `rows`, the names whose own positions hold it."""
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
