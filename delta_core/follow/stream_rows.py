"""Reading the rows of a stream's files with the columns that the table had when the stream started."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

import pyarrow as pa

from delta_core import expressions
from delta_core.deletion_vectors.row_choice import RowChoice
from delta_core.expressions.ast import TRUE, Expression
from delta_core.expressions.typing import resolve_predicate
from delta_core.scan.commit_changes import CHANGE_COLUMNS, require_no_change_columns
from delta_core.scan.file_readers import PastFileReaders
from delta_core.scan.record_batches import FileReader
from delta_core.schema.column_mapping import ColumnMapping
from delta_core.schema.types import StructType
from delta_core.snapshot.snapshot import Snapshot
from delta_core.storage.data_access import DataAccess
from delta_core.storage.log_store import LogStore


def stream_schema(snapshot: Snapshot, *, change_feed: bool) -> tuple[StructType, ColumnMapping]:
    """The columns of a stream's rows, and their names in files.

    Raises:
        SchemaError: a column of the table has the name of a column of the change feed.
    """
    if not change_feed:
        return snapshot.schema, snapshot.column_mapping
    require_no_change_columns(snapshot)
    added = frozenset(field.name for field in CHANGE_COLUMNS)
    mapping = ColumnMapping(snapshot.column_mapping.mode, snapshot.column_mapping.unmapped | added)
    return StructType((*snapshot.schema.fields, *CHANGE_COLUMNS)), mapping


class StreamRows:
    """Reads the rows of a stream's files, which may be older or newer than the version with the columns."""

    def __init__(
        self,
        store: LogStore,
        schema: StructType,
        mapping: ColumnMapping,
        *,
        access: DataAccess,
        columns: Sequence[str] | None = None,
        predicate: Expression | None = None,
    ) -> None:
        """Prepare the readers.

        Args:
            store: the table's store.
            schema, mapping: the columns and their names in files; see `stream_schema`.
            access: the locations where files are allowed.
            columns: names in the order of the result; None is all.
            predicate: resolved against `schema`; only rows for which it is true are read.

        Raises:
            SchemaError: a column does not exist.
        """
        self._store = store

        def reader(constant: Collection[str]) -> FileReader:
            return FileReader(
                schema=schema,
                columns=columns,
                predicate=predicate,
                partition_columns=tuple(constant),
                mapping=mapping,
                access=access,
            )

        self._readers = PastFileReaders(schema=schema, mapping=mapping, make=reader)
        self.schema: pa.Schema = self._readers.of(()).arrow_schema
        """The schema of the rows."""

    @classmethod
    def of(
        cls,
        snapshot: Snapshot,
        *,
        change_feed: bool = False,
        columns: Sequence[str] | None = None,
        predicate: Expression | str | None = None,
        allowed_roots: Sequence[LogStore] = (),
    ) -> StreamRows:
        """The readers for the columns of a snapshot.

        Args:
            snapshot: has the columns.
            change_feed: add the columns of a change feed.
            columns: names in the order of the result; None is all.
            predicate: Spark SQL or an expression; only rows for which it is true are read.
            allowed_roots: stores below whose roots absolute paths in the log are allowed.

        Raises:
            SchemaError: a column does not exist, or has a name of the change feed.
            ExpressionError: the predicate is invalid or does not fit the schema.
            UnsupportedTableFeatureError: the table cannot be read.
        """
        snapshot.require_readable(operation="stream the table", through_scan=True)
        schema, mapping = stream_schema(snapshot, change_feed=change_feed)
        if isinstance(predicate, str):
            predicate = expressions.parse_predicate(predicate, schema)
        resolved = TRUE if predicate is None else resolve_predicate(predicate, schema)
        return cls(
            snapshot.store,
            schema,
            mapping,
            access=DataAccess(allowed_roots=tuple(allowed_roots), clock=snapshot.clock),
            columns=columns,
            predicate=None if resolved == TRUE else resolved,
        )

    def read(self, path: str, values: Mapping[str, str | None], rows: RowChoice) -> Iterator[pa.RecordBatch]:
        """Some rows of a file; see `FileReader.read_chosen`."""
        return self._readers.of(values).read_chosen(self._store, path, values, rows)
