"""What the data files of a table look like in memory and on disk."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from delta_core.actions import Metadata
from delta_core.data.compression import Compression, choose_compression
from delta_core.data.stats_columns import StatsLeaf
from delta_core.data.steps.physical import PhysicalStep
from delta_core.data.write_plan import WritePlan
from delta_core.dml.clustered_table import plan_of
from delta_core.execution.executor import JsonObject
from delta_core.maintenance.rewriting.reading import readable
from delta_core.schema.column_mapping import ColumnMappingMode
from delta_core.schema.partition_values import hive_directory
from delta_core.schema.types import StructField
from delta_core.snapshot.snapshot import Snapshot
from delta_core.storage.data_access import TABLE_ONLY, DataAccess
from delta_core.storage.log_store import LogStore
from delta_core.storage.task_stores import task_store

_LOW_CARDINALITY_BYTES_PER_VALUE = 2.5
_DICTIONARY_BYTES_PER_VALUE = 8.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Encoding:
    """What one file shows about the columns, by the names that new files have for them.

    Attributes:
        low_cardinality: string columns read and written as dictionaries, so that no text is copied.
        dictionary: columns for which the writer should try a dictionary; trying costs time.
    """

    low_cardinality: tuple[str, ...]
    dictionary: tuple[str, ...]

    def to_json(self) -> dict[str, list[str]]:
        """The encoding as a JSON object."""
        return {"low_cardinality": list(self.low_cardinality), "dictionary": list(self.dictionary)}

    @classmethod
    def from_json(cls, document: JsonObject) -> Encoding:
        """What `to_json` wrote."""
        return cls(
            low_cardinality=tuple(document["low_cardinality"]), dictionary=tuple(document["dictionary"])
        )


@dataclass(frozen=True, kw_only=True)
class FileLayout:
    """Everything about a table that reading and writing its files needs, on any worker.

    Files are what the physical step of the write plan says: rows that are only moved enter there, and are
    neither checked nor filled again. All names here are those of files.

    Attributes:
        store: the table's store.
        plan: the table's, as new files are laid out.
        source: as the old files are; another one only where the rewriting changes how files are laid out.
        compression: the Parquet codec of new files.
        access: where besides the table the old files, and their vectors, may be.
    """

    store: LogStore
    plan: WritePlan
    source: WritePlan
    compression: Compression
    access: DataAccess = TABLE_ONLY

    @classmethod
    def from_task(cls, task: JsonObject) -> FileLayout:
        """The layout that `layout_fields` put into a task."""
        plan = WritePlan.from_json(task["plan"])
        source = task.get("source_plan")
        return cls(
            store=task_store(task["table_uri"]),
            plan=plan,
            source=plan if source is None else WritePlan.from_json(source),
            compression=task["compression"],
            access=DataAccess(allowed_roots=tuple(task_store(uri) for uri in task["allowed_root_uris"])),
        )

    @cached_property
    def physical(self) -> PhysicalStep:
        """What files of the table hold."""
        return PhysicalStep(self.plan, keep_row_ids=True)

    @cached_property
    def partition_columns(self) -> tuple[str, ...]:
        """What the partition columns are called in the log."""
        return tuple(self.physical.partition_name(name) for name in self.plan.partition_columns)

    def directory(self, partition_values: Mapping[str, str | None]) -> str:
        """The directory of a partition's files, relative to the table root."""
        return "/".join(hive_directory(name, partition_values[name]) for name in self.partition_columns)

    def fields(self) -> dict[str, StructField]:
        """The table's fields that files hold, by their names there; without the hidden ones."""
        needed = self.physical.columns_needed
        mapping = self.plan.mapping
        return {mapping.physical_name(field): field for field in self.plan.schema if field.name in needed}

    def source_fields(self) -> dict[str, StructField]:
        """The same fields as old files hold them, by their names in new ones."""
        if self.source is self.plan:
            return self.fields()
        found = {field.name: field for field in self.source.schema}
        return {name: found[field.name] for name, field in self.fields().items()}

    def leaves(self) -> list[StatsLeaf]:
        """The columns that get statistics, those by which the table is clustered in any case."""
        return self.physical.leaves(self.plan.properties)

    def file_schema(self, encoding: Encoding) -> pa.Schema:
        """What a new file's columns are in memory; nullable, since older files may lack a column."""
        fields = []
        for item in self.physical.file_schema:
            if item.name in encoding.low_cardinality and pa.types.is_string(item.type):
                item = item.with_type(pa.dictionary(pa.int32(), pa.string()))
            fields.append(item.with_nullable(True))
        return pa.schema(fields)

    def encoding_of(self, path: str) -> Encoding:
        """What a file's footer shows about the columns; `path` is as in the log.

        Nothing, where new files have other names for them.
        """
        if self.source is not self.plan:
            return Encoding(low_cardinality=(), dictionary=())
        strings = {item.name for item in self.physical.file_schema if pa.types.is_string(item.type)}
        low, dictionary = [], []
        with readable(path), self.access.open_logged(path, store=self.store) as source:
            footer = pq.read_metadata(source)
            names = self._names_by_column(footer)
            by_name = self.plan.mapping.mode is not ColumnMappingMode.ID
            for position in range(footer.num_columns if footer.num_row_groups else 0):
                chunk = footer.row_group(0).column(position)
                per_value = chunk.total_uncompressed_size / max(1, chunk.num_values)
                if not chunk.has_dictionary_page or per_value >= _DICTIONARY_BYTES_PER_VALUE:
                    continue
                name = names.get(chunk.path_in_schema, chunk.path_in_schema)
                dictionary.append(name)
                # A column may have another's name in some file, where columns go by id.
                if by_name and name in strings and per_value < _LOW_CARDINALITY_BYTES_PER_VALUE:
                    low.append(name)
        if self.physical.keeps_row_ids and self.plan.row_tracking is not None:
            # Rows that are moved together came together, mostly.
            dictionary.append(self.plan.row_tracking.row_commit_version_column)
        return Encoding(low_cardinality=tuple(low), dictionary=tuple(dict.fromkeys(dictionary)))

    def _names_by_column(self, footer: pq.FileMetaData) -> dict[str, str]:
        """What columns are called in new files, by their name in a file, where that can differ."""
        mapping = self.plan.mapping
        if mapping.mode is not ColumnMappingMode.ID:
            return {}
        in_file = mapping.in_file(footer.schema.to_arrow_schema())
        found = {name: in_file.column(field) for name, field in self.fields().items()}
        return {column.name: name for name, column in found.items() if column is not None}


def layout_fields(
    snapshot: Snapshot,
    *,
    access: DataAccess = TABLE_ONLY,
    compression: Compression | None = None,
    definition: Metadata | None = None,
) -> dict[str, Any]:
    """The fields of a task from which `FileLayout.from_task` makes the layout again.

    Stores go by their URIs, and never with what opens them: see `delta_core/storage/task_stores.py`.

    Args:
        snapshot: of the table.
        access: where besides the table its files may be.
        compression: the codec of new files; that of the table when None.
        definition: what the table's metadata becomes in the commit of the new files; None leaves it.

    Raises:
        InvalidTableError: what the table says of its rows contradicts itself.
        ConfigurationError, InvalidTablePropertyError: no such codec.
    """
    source = plan_of(snapshot)
    plan = source
    if definition is not None:
        plan = WritePlan.of(snapshot.protocol, definition, clustered_by=source.clustered_by)
    fields = {
        "table_uri": snapshot.store.uri,
        "allowed_root_uris": [root.uri for root in access.allowed_roots],
        "plan": plan.to_json(),
        "compression": choose_compression(compression, plan.properties),
    }
    return fields if definition is None else {**fields, "source_plan": source.to_json()}
