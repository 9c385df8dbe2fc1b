"""The metadata domain with the clustering columns of a table (PROTOCOL.md, "Clustered Table").

Its configuration is JSON with `clusteringColumns`. The protocol's example has each column as one name.
Engines that support nested clustering columns write each column as a list of names from the top level, and
read no other form. This module reads both forms and writes the list, because only the list distinguishes a
nested column from a column with a dot in its name. Names are physical where columns are mapped.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from delta_core.actions import DomainMetadata
from delta_core.errors import ConfigurationError, InvalidTableError, SchemaError
from delta_core.schema.column_names import STATS_COLUMNS_KEY
from delta_core.schema.column_paths import display_path
from delta_core.schema.types import (
    BINARY,
    BOOLEAN,
    VARIANT,
    VOID,
    ArrayType,
    MapType,
    StructField,
    StructType,
)
from delta_core.table_features.stats_leaves import parse_column_list

DOMAIN = "delta.clustering"
MAX_COLUMNS = 4
"""Other engines refuse a table with more clustering columns; more columns make the clustering useless."""
_COLUMNS_KEY = "clusteringColumns"
_NAME_KEY = "domainName"
_PHYSICAL_KEY = "delta.columnMapping.physicalName"
_WITHOUT_BOUNDS = (BINARY, BOOLEAN, VARIANT, VOID)

Path = tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusteringColumns:
    """The clustering columns of a table.

    Attributes:
        columns: paths of physical names, in order; empty where the table is clustered by no columns.
        other: the domain's other entries, which are preserved when it is written.
    """

    columns: tuple[Path, ...]
    other: Mapping[str, Any] = field(default_factory=dict, hash=False)

    @classmethod
    def parse(cls, configuration: str) -> ClusteringColumns:
        """The columns in a domain's configuration.

        Raises:
            InvalidTableError: the configuration is not JSON, or has no list of columns.
        """
        try:
            document = json.loads(configuration)
        except (ValueError, RecursionError) as error:
            raise _invalid(configuration, f"It is not JSON: {error}.") from error
        if not isinstance(document, dict) or not isinstance(document.get(_COLUMNS_KEY), list):
            raise _invalid(configuration, f"It has no list {_COLUMNS_KEY}.")
        paths: list[Path] = []
        for entry in document[_COLUMNS_KEY]:
            path = [entry] if isinstance(entry, str) else entry
            if not isinstance(path, list) or not path or not all(isinstance(n, str) and n for n in path):
                raise _invalid(configuration, f"The entry {entry!r} is not a column.")
            paths.append(tuple(path))
        if len(set(paths)) != len(paths):
            raise _invalid(configuration, "A column is listed twice.")
        other = {key: value for key, value in document.items() if key not in (_COLUMNS_KEY, _NAME_KEY)}
        return cls(columns=tuple(paths), other=other)

    @classmethod
    def of_domains(cls, domains: Mapping[str, DomainMetadata]) -> ClusteringColumns | None:
        """The columns of a table; None where it does not have the domain. Raises as `parse`."""
        domain = domains.get(DOMAIN)
        return None if domain is None or domain.removed else cls.parse(domain.configuration)

    @classmethod
    def choose(
        cls,
        schema: StructType,
        columns: Sequence[str | Sequence[str]],
        *,
        partition_columns: Iterable[str] = (),
    ) -> ClusteringColumns:
        """The clustering columns that a user specifies, after validation.

        Args:
            schema: the table's schema, with physical names where columns are mapped.
            columns: each a name, or the path of a nested column; logical names, in any case.
            partition_columns: the table's partition columns, which must be empty.

        Raises:
            SchemaError: a column does not exist, is listed twice, or has no minimum and maximum in its
                statistics; more than MAX_COLUMNS columns; or the table is partitioned.
            ConfigurationError: the columns are not a list.
        """
        if not isinstance(columns, Sequence):
            raise ConfigurationError(
                f"{columns!r} is not a list of clustering columns.",
                cause="Clustering columns are specified by their names or paths.",
                fix="Pass a list of names or paths.",
            )
        if len(columns) > MAX_COLUMNS:
            raise SchemaError(
                f"A table cannot be clustered by {len(columns)} columns.",
                cause=f"The maximum is {MAX_COLUMNS}.",
                fix="Choose the columns that most queries filter by.",
            )
        partitioned = tuple(partition_columns)
        if partitioned:
            raise SchemaError(
                "A partitioned table cannot be clustered.",
                cause=f"It is partitioned by {', '.join(partitioned)}.",
                fix="Choose either partitioning or clustering for a new table.",
            )
        chosen: list[Path] = []
        for column in columns:
            fields = _resolve(schema, _named(column))
            path = tuple(str(item.metadata.get(_PHYSICAL_KEY, item.name)) for item in fields)
            if path in chosen:
                raise SchemaError(
                    f"The column {display_path([item.name for item in fields])} is listed twice.",
                    fix="List it once.",
                )
            chosen.append(path)
        return cls(columns=tuple(chosen))

    def render(self) -> str:
        """The domain's configuration; unknown entries are preserved."""
        return json.dumps(
            {_COLUMNS_KEY: [list(path) for path in self.columns], _NAME_KEY: DOMAIN, **self.other},
            separators=(",", ":"),
            ensure_ascii=False,
        )

    def action(self) -> DomainMetadata:
        """The action that sets the domain."""
        return DomainMetadata(domain=DOMAIN, configuration=self.render())

    def logical(self, schema: StructType) -> tuple[Path, ...]:
        """The columns by their logical names.

        Raises:
            InvalidTableError: a column is not in the schema.
        """
        return tuple(self._logical(schema, path) for path in self.columns)

    def names(self, schema: StructType) -> list[str]:
        """The columns for messages: by logical names, or by physical names where the schema lacks one."""
        try:
            return [display_path(path) for path in self.logical(schema)]
        except InvalidTableError:
            return [display_path(path) for path in self.columns]

    def uses(self, physical_path: Sequence[str]) -> bool:
        """Whether the column contains or is a clustering column, so that it cannot be dropped."""
        prefix = tuple(physical_path)
        return any(path[: len(prefix)] == prefix for path in self.columns)

    def _logical(self, schema: StructType, path: Path) -> Path:
        names: list[str] = []
        struct: object = schema
        for physical in path:
            same = None
            if isinstance(struct, StructType):
                same = next((item for item in struct if _physical(item) == physical), None)
            if same is None:
                raise InvalidTableError(
                    f"The table is clustered by {display_path(path)}, which is not in its schema.",
                    cause=f"The metadata domain {DOMAIN} refers to it.",
                    fix="Set the clustering columns again with DeltaTable.alter.cluster_by.",
                )
            names.append(same.name)
            struct = same.data_type
        return tuple(names)


def require_statistics(
    clustering: ClusteringColumns, schema: StructType, configuration: Mapping[str, str]
) -> None:
    """Refuse a table whose list of columns with statistics lacks a clustering column.

    The number of indexed columns does not matter: clustering columns always get statistics in addition.

    Raises:
        ConfigurationError: `delta.dataSkippingStatsColumns` lacks a clustering column.
    """
    named = configuration.get(STATS_COLUMNS_KEY)
    if named is None:
        return
    listed = parse_column_list(named)
    for path in clustering.logical(schema):
        folded = tuple(name.casefold() for name in path)
        if not any(folded[: len(known)] == known for known in listed):
            raise ConfigurationError(
                f"The table cannot be clustered by {display_path(path)}: it would have no statistics.",
                cause=f"{STATS_COLUMNS_KEY} is {named!r}, which does not contain the column.",
                fix=f"Add the column to {STATS_COLUMNS_KEY}.",
            )


def _named(column: object) -> tuple[str, ...]:
    path = (column,) if isinstance(column, str) else column
    if isinstance(path, Sequence) and all(isinstance(name, str) for name in path):
        return tuple(path)
    raise SchemaError(
        f"{column!r} is not a clustering column.",
        cause=f"It is of type {type(column).__name__}.",
        fix="Pass the name of a column, or the path of a nested column as a list of names.",
    )


def _physical(item: StructField) -> str:
    return str(item.metadata.get(_PHYSICAL_KEY, item.name))


def _resolve(schema: StructType, path: Sequence[str]) -> list[StructField]:
    """The fields on the path to a column that is allowed as a clustering column."""
    fields: list[StructField] = []
    struct: object = schema
    for name in path:
        item = struct.find(name) if isinstance(struct, StructType) else None
        if item is None:
            raise SchemaError(
                f"The clustering column {display_path(path)} does not exist.",
                fix="Name a column of the table, or a nested column by its path.",
            )
        fields.append(item)
        struct = item.data_type
    if not fields:
        raise SchemaError("The name of a clustering column is empty.", fix="Name a column of the table.")
    kind = fields[-1].data_type
    if isinstance(kind, StructType | ArrayType | MapType) or kind in _WITHOUT_BOUNDS:
        raise SchemaError(
            f"The table cannot be clustered by {display_path(path)}.",
            cause=f"Its type is {kind}, for which file statistics have no minimum and maximum.",
            fix="Choose a column of numbers, strings, dates or timestamps.",
        )
    return fields


def _invalid(configuration: str, cause: str) -> InvalidTableError:
    return InvalidTableError(
        f"The metadata domain {DOMAIN} cannot be read.",
        cause=f"{cause} The configuration is {configuration[:200]}.",
        fix="Set the clustering columns again with DeltaTable.alter.cluster_by.",
    )
