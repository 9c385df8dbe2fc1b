"""Readers for the files of past versions, each with the partition columns at the time of writing."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable

from delta_core.scan.record_batches import FileReader
from delta_core.schema.column_mapping import ColumnMapping
from delta_core.schema.types import StructType


class PastFileReaders:
    """One reader for each set of partition columns.

    A table's partition columns may change. A file lacks the columns that it was partitioned by when it was
    written: those for which its action has values (PROTOCOL.md, "Add File and Remove File").

    Args:
        schema: the schema of the rows.
        mapping: the physical names in partition values.
        make: creates a reader of files partitioned by some columns of the schema.
    """

    def __init__(
        self, *, schema: StructType, mapping: ColumnMapping, make: Callable[[Collection[str]], FileReader]
    ) -> None:
        self._names = {mapping.physical_name(field).casefold(): field.name for field in schema}
        self._make = make
        self._made: dict[frozenset[str], FileReader] = {}

    def of(self, partition_columns: Iterable[str]) -> FileReader:
        """The reader of files with values for these columns, by physical name; unknown names are ignored."""
        logical = (self._names.get(name.casefold()) for name in partition_columns)
        columns = frozenset(name for name in logical if name is not None)
        if columns not in self._made:
            self._made[columns] = self._make(columns)
        return self._made[columns]
