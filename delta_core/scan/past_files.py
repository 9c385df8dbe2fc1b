"""Readers of the files of past versions, each partitioned as it was when it was written."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable

from delta_core.scan.record_batches import FileReader
from delta_core.schema.column_mapping import ColumnMapping
from delta_core.schema.types import StructType


class PastFileReaders:
    """One reader for each set of partition columns.

    A table's partition columns may change, and what a file lacks depends on those that it was written
    with: they are the ones for which its action has values (PROTOCOL.md, "Add File and Remove File").

    Args:
        schema: that of the rows.
        mapping: what partition values call the columns.
        make: a reader of files that are partitioned by some columns of the schema.
    """

    def __init__(
        self, *, schema: StructType, mapping: ColumnMapping, make: Callable[[Collection[str]], FileReader]
    ) -> None:
        self._names = {mapping.physical_name(field).casefold(): field.name for field in schema}
        self._make = make
        self._made: dict[frozenset[str], FileReader] = {}

    def of(self, partition_columns: Iterable[str]) -> FileReader:
        """The reader of files with values for some columns, by physical name; others are not looked at."""
        found = (self._names.get(name.casefold()) for name in partition_columns)
        columns = frozenset(name for name in found if name is not None)
        if columns not in self._made:
            self._made[columns] = self._make(columns)
        return self._made[columns]
