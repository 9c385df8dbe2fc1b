"""The layout of a table's data files, in memory and on disk."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, cast

import pyarrow as pa
import pyarrow.parquet as pq

from delta_core.actions import Metadata
from delta_core.data.file_writer import Compression, choose_compression
from delta_core.data.steps.physical import PhysicalStep
from delta_core.data.write_plan import WritePlan, write_plan_of
from delta_core.execution.executor import JsonObject
from delta_core.maintenance.rewriting.reading import readable
from delta_core.schema.column_mapping import ColumnMappingMode
from delta_core.schema.partition_values import hive_directory
from delta_core.schema.types import StructField
from delta_core.snapshot.snapshot import Snapshot
from delta_core.storage.data_access import TABLE_ONLY, DataAccess
from delta_core.storage.log_store import LogStore
from delta_core.storage.task_stores import task_store
from delta_core.table_features.parquet_format import ParquetOptions
from delta_core.table_features.stats_leaves import StatsLeaf

_LOW_CARDINALITY_BYTES_PER_VALUE = 2.5
_DICTIONARY_BYTES_PER_VALUE = 8.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Encoding:
    """Encodings of columns, derived from the footer of one file. Columns have the names of new files.

    Attributes:
        low_cardinality: string columns that are read and written as dictionaries, so that no string is
            copied.
        dictionary: columns for which the writer tries a dictionary. An attempt costs time.
    """

    low_cardinality: tuple[str, ...]
    dictionary: tuple[str, ...]

    def to_json(self) -> dict[str, list[str]]:
        """The encoding as a JSON object."""
        return {"low_cardinality": list(self.low_cardinality), "dictionary": list(self.dictionary)}

    @classmethod
    def from_json(cls, document: JsonObject) -> Encoding:
        """The encoding that `to_json` wrote."""
        return cls(
            low_cardinality=tuple(document["low_cardinality"]), dictionary=tuple(document["dictionary"])
        )


@dataclass(frozen=True, kw_only=True)
class FileLayout:
    """The properties of a table that are needed to read and write its files, on any worker.

    The physical step of the write plan defines the columns of files. Rewritten rows go directly to this step:
    they are not checked again, and defaults are not filled in again. All names are physical names.

    Attributes:
        store: the table's store.
        plan: the write plan for new files.
        source: the write plan that the old files follow. Differs from `plan` only when the rewriting changes
            the layout of files.
        compression: the Parquet codec of new files.
        access: the roots outside the table that old files and their deletion vectors may be in.
        parquet: the encoding that the caller chooses for new files.
    """

    store: LogStore
    plan: WritePlan
    source: WritePlan
    compression: Compression
    access: DataAccess = TABLE_ONLY
    parquet: ParquetOptions | None = None

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
            parquet=ParquetOptions.from_json(task["parquet"]) if "parquet" in task else None,
        )

    @cached_property
    def physical(self) -> PhysicalStep:
        """The physical step of the write plan, which defines the columns of files."""
        return PhysicalStep(self.plan, keep_row_ids=True)

    @cached_property
    def partition_columns(self) -> tuple[str, ...]:
        """The physical names of the partition columns, as in the log."""
        return tuple(self.physical.partition_name(name) for name in self.plan.partition_columns)

    def directory(self, partition_values: Mapping[str, str | None]) -> str:
        """The directory of a partition's files, relative to the table root."""
        return "/".join(hive_directory(name, partition_values[name]) for name in self.partition_columns)

    def fields(self) -> dict[str, StructField]:
        """The table's fields that files contain, by physical name; without hidden columns."""
        needed = self.physical.columns_needed
        mapping = self.plan.mapping
        return {mapping.physical_name(field): field for field in self.plan.schema if field.name in needed}

    def source_fields(self) -> dict[str, StructField]:
        """The same fields as in the old files, by their physical names in new files."""
        if self.source is self.plan:
            return self.fields()
        source_by_name = {field.name: field for field in self.source.schema}
        return {name: source_by_name[field.name] for name, field in self.fields().items()}

    def leaves(self) -> list[StatsLeaf]:
        """The columns with statistics; always includes the clustering columns."""
        return self.physical.leaves(self.plan.properties)

    def file_schema(self, encoding: Encoding) -> pa.Schema:
        """The in-memory schema of a new file; all columns are nullable, since old files may lack some."""
        fields = []
        for item in self.physical.file_schema:
            if item.name in encoding.low_cardinality and pa.types.is_string(item.type):
                item = item.with_type(pa.dictionary(pa.int32(), pa.string()))
            fields.append(item.with_nullable(True))
        return pa.schema(fields)

    def encoding_of(self, path: str) -> Encoding:
        """The encoding of a file, from its footer; `path` is as in the log.

        Empty when the rewriting changes the layout, since columns may then have other names in new files.
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
                # With column mapping by id, another column may have this name in some other file.
                if by_name and name in strings and per_value < _LOW_CARDINALITY_BYTES_PER_VALUE:
                    low.append(name)
        if self.physical.keeps_row_ids and self.plan.row_tracking is not None:
            # Rows that are rewritten together mostly have the same few row commit versions.
            dictionary.append(self.plan.row_tracking.row_commit_version_column)
        return Encoding(low_cardinality=tuple(low), dictionary=tuple(dict.fromkeys(dictionary)))

    def _names_by_column(self, footer: pq.FileMetaData) -> dict[str, str]:
        """The columns' names in new files by their names in one file; empty when the names cannot differ."""
        mapping = self.plan.mapping
        if mapping.mode is not ColumnMappingMode.ID:
            return {}
        in_file = mapping.in_file(footer.schema.to_arrow_schema())
        columns = {name: in_file.column(field) for name, field in self.fields().items()}
        return {column.name: name for name, column in columns.items() if column is not None}


def layout_fields(
    snapshot: Snapshot,
    *,
    access: DataAccess = TABLE_ONLY,
    compression: Compression | None = None,
    definition: Metadata | None = None,
    parquet: ParquetOptions | None = None,
) -> dict[str, Any]:
    """The fields of a task from which `FileLayout.from_task` creates the layout.

    Tasks contain the URIs of stores and never credentials: see `delta_core/storage/task_stores.py`.

    Args:
        snapshot: a version of the table.
        access: the roots outside the table that its files may be in.
        compression: the codec of new files; the table's codec when None.
        definition: the table's new metadata, if the commit of the new files changes it.
        parquet: the encoding that the caller chooses for new files. Its codec precedes `compression`.

    Raises:
        InvalidTableError: the table's metadata about its rows is contradictory.
        ConfigurationError, InvalidTablePropertyError: the codec is unknown.
    """
    source = write_plan_of(snapshot)
    plan = source
    if definition is not None:
        plan = WritePlan.of(snapshot.protocol, definition, clustered_by=source.clustered_by)
    if parquet is not None and parquet.codec is not None:
        compression = cast("Compression", parquet.codec)
    fields = {
        "table_uri": snapshot.store.uri,
        "allowed_root_uris": [root.uri for root in access.allowed_roots],
        "plan": plan.to_json(),
        "compression": choose_compression(compression, plan.properties),
        **({} if parquet is None else {"parquet": parquet.to_json()}),
    }
    return fields if definition is None else {**fields, "source_plan": source.to_json()}
