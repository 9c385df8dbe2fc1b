"""What the data files of a table look like in memory and on disk."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from delta_core.data.stats_columns import StatsLeaf, stats_leaves
from delta_core.execution.executor import JsonObject
from delta_core.maintenance.rewriting.reading import readable
from delta_core.schema.arrow import to_arrow
from delta_core.schema.json import schema_from_json
from delta_core.schema.partition_values import hive_directory
from delta_core.schema.types import VOID, StructType
from delta_core.storage.data_access import TABLE_ONLY
from delta_core.storage.lent import task_store
from delta_core.storage.log_store import LogStore
from delta_core.table_features.table_properties import TableProperties

_LOW_CARDINALITY_BYTES_PER_VALUE = 2.5
_DICTIONARY_BYTES_PER_VALUE = 8.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Encoding:
    """What one file shows about the columns.

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


@dataclass(frozen=True, slots=True, kw_only=True)
class FileLayout:
    """Everything about a table that reading and writing its files needs, on any worker.

    Attributes:
        store: the table's store.
        schema: the table's schema, partition columns included.
        properties: say which columns get statistics.
        compression: the Parquet codec of new files.
    """

    store: LogStore
    schema: StructType
    partition_columns: tuple[str, ...]
    properties: TableProperties
    compression: str

    @classmethod
    def from_task(cls, task: JsonObject) -> FileLayout:
        """The layout that `layout_fields` put into a task."""
        return cls(
            store=task_store(task["table_uri"]),
            schema=schema_from_json(task["schema"]),
            partition_columns=tuple(task["partition_columns"]),
            properties=TableProperties.of(task["configuration"]),
            compression=task["compression"],
        )

    def directory(self, partition_values: Mapping[str, str | None]) -> str:
        """The directory of a partition's files, relative to the table root."""
        return "/".join(hive_directory(name, partition_values[name]) for name in self.partition_columns)

    def data_fields(self) -> StructType:
        """The fields that data files hold."""
        partitions = {name.casefold() for name in self.partition_columns}
        return StructType(
            tuple(f for f in self.schema if f.name.casefold() not in partitions and f.data_type != VOID)
        )

    def leaves(self) -> list[StatsLeaf]:
        """The columns that get statistics."""
        return stats_leaves(self.schema, self.properties, partition_columns=self.partition_columns)

    def file_schema(self, encoding: Encoding) -> pa.Schema:
        """What a new file's columns are in memory; nullable, since older files may lack a column."""
        fields = []
        for item in to_arrow(self.data_fields()):
            if item.name in encoding.low_cardinality:
                item = item.with_type(pa.dictionary(pa.int32(), pa.string()))
            fields.append(item.with_nullable(True))
        return pa.schema(fields)

    def encoding_of(self, path: str) -> Encoding:
        """What a file's footer shows about the columns; `path` is a store path."""
        strings = {item.name for item in to_arrow(self.data_fields()) if pa.types.is_string(item.type)}
        low, dictionary = [], []
        with readable(path), TABLE_ONLY.open(self.store, path) as source:
            footer = pq.read_metadata(source)
            for position in range(footer.num_columns if footer.num_row_groups else 0):
                chunk = footer.row_group(0).column(position)
                per_value = chunk.total_uncompressed_size / max(1, chunk.num_values)
                if not chunk.has_dictionary_page or per_value >= _DICTIONARY_BYTES_PER_VALUE:
                    continue
                dictionary.append(chunk.path_in_schema)
                if chunk.path_in_schema in strings and per_value < _LOW_CARDINALITY_BYTES_PER_VALUE:
                    low.append(chunk.path_in_schema)
        return Encoding(low_cardinality=tuple(low), dictionary=tuple(dictionary))


def layout_fields(
    *,
    table_uri: str,
    schema_string: str,
    partition_columns: Sequence[str],
    configuration: Mapping[str, str],
    compression: str,
) -> dict[str, Any]:
    """The fields of a task from which `FileLayout.from_task` makes the layout again."""
    return {
        "table_uri": table_uri,
        "schema": schema_string,
        "partition_columns": list(partition_columns),
        "configuration": dict(configuration),
        "compression": compression,
    }
