"""The metadata domain that says by which columns a table is clustered (PROTOCOL.md, "Clustered Table").

Its configuration is JSON with `clusteringColumns`. The protocol's example writes each column as one name;
engines that cluster by nested columns write each as the list of names on the way to it, and read no other
form. Both are read here, and the second is written: it alone tells a nested column from one with a dot in its
name. Names are physical where columns are mapped.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from delta_core.actions import DomainMetadata
from delta_core.errors import ConfigurationError, InvalidTableError, SchemaError
from delta_core.schema.column_names import STATS_COLUMNS_KEY
from delta_core.schema.column_paths import shown
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
"""Other engines refuse a table that is clustered by more: nearness in many columns is nearness in none."""
_COLUMNS_KEY = "clusteringColumns"
_NAME_KEY = "domainName"
_PHYSICAL_KEY = "delta.columnMapping.physicalName"
_WITHOUT_BOUNDS = (BINARY, BOOLEAN, VARIANT, VOID)

Path = tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusteringColumns:
    """By which columns a table is clustered.

    Attributes:
        columns: paths of physical names, in their order; none where the table is clustered by nothing.
        other: what else the domain holds, which is kept when it is written again.
    """

    columns: tuple[Path, ...]
    other: Mapping[str, Any] = field(default_factory=dict, hash=False)

    @classmethod
    def parse(cls, configuration: str) -> ClusteringColumns:
        """The columns in a domain's configuration.

        Raises:
            InvalidTableError: it is not JSON, or holds no list of columns.
        """
        try:
            document = json.loads(configuration)
        except (ValueError, RecursionError) as error:
            raise _invalid(configuration, f"it is not JSON: {error}") from error
        if not isinstance(document, dict) or not isinstance(document.get(_COLUMNS_KEY), list):
            raise _invalid(configuration, f"it has no list {_COLUMNS_KEY}")
        paths: list[Path] = []
        for entry in document[_COLUMNS_KEY]:
            path = [entry] if isinstance(entry, str) else entry
            if not isinstance(path, list) or not path or not all(isinstance(n, str) and n for n in path):
                raise _invalid(configuration, f"{entry!r} is no column")
            paths.append(tuple(path))
        if len(set(paths)) != len(paths):
            raise _invalid(configuration, "a column is named twice")
        other = {key: value for key, value in document.items() if key not in (_COLUMNS_KEY, _NAME_KEY)}
        return cls(columns=tuple(paths), other=other)

    @classmethod
    def of_domains(cls, domains: Mapping[str, DomainMetadata]) -> ClusteringColumns | None:
        """The columns of a table; None where it has no such domain. Raises as `parse`."""
        found = domains.get(DOMAIN)
        return None if found is None or found.removed else cls.parse(found.configuration)

    @classmethod
    def choose(
        cls,
        schema: StructType,
        columns: Sequence[str | Sequence[str]],
        *,
        partition_columns: Iterable[str] = (),
    ) -> ClusteringColumns:
        """The columns that a user names, once they are known to be fit.

        Args:
            schema: the table's schema, with column mapping's names where columns are mapped.
            columns: each one a name, or the path to a nested one; logical names, in any case.
            partition_columns: of the table, which then must have none.

        Raises:
            SchemaError: no such column, one named twice, one without bounds in its statistics, more than
                MAX_COLUMNS, or a table that is partitioned.
            ConfigurationError: the columns are no list.
        """
        if not isinstance(columns, Sequence):
            raise ConfigurationError(
                f"{columns!r} are no clustering columns.",
                cause="Columns go by their names or paths.",
                fix="Pass a list of them.",
            )
        if len(columns) > MAX_COLUMNS:
            raise SchemaError(
                f"A table is not clustered by {len(columns)} columns.",
                cause=f"There can be {MAX_COLUMNS}.",
                fix="Choose those that most queries filter by.",
            )
        partitioned = tuple(partition_columns)
        if partitioned:
            raise SchemaError(
                "A partitioned table is not clustered.",
                cause=f"It is partitioned by {', '.join(partitioned)}.",
                fix="Choose one of the two for a new table.",
            )
        chosen: list[Path] = []
        for column in columns:
            fields = _resolve(schema, _named(column))
            path = tuple(str(item.metadata.get(_PHYSICAL_KEY, item.name)) for item in fields)
            if path in chosen:
                raise SchemaError(
                    f"The column {shown([item.name for item in fields])} is named twice.", fix="Name it once."
                )
            chosen.append(path)
        return cls(columns=tuple(chosen))

    def render(self) -> str:
        """The domain's configuration; unknown entries follow as they were."""
        return json.dumps(
            {_COLUMNS_KEY: [list(path) for path in self.columns], _NAME_KEY: DOMAIN, **self.other},
            separators=(",", ":"),
            ensure_ascii=False,
        )

    def action(self) -> DomainMetadata:
        """The action that sets the domain."""
        return DomainMetadata(domain=DOMAIN, configuration=self.render())

    def logical(self, schema: StructType) -> tuple[Path, ...]:
        """The columns by the schema's own names.

        Raises:
            InvalidTableError: the schema has no such column.
        """
        return tuple(self._logical(schema, path) for path in self.columns)

    def names(self, schema: StructType) -> list[str]:
        """The columns for messages: as `logical` has them, or by their physical names where it fails."""
        try:
            return [shown(path) for path in self.logical(schema)]
        except InvalidTableError:
            return [shown(path) for path in self.columns]

    def uses(self, physical_path: Sequence[str]) -> bool:
        """Whether the table is clustered by the column or by one within it, so that it cannot be dropped."""
        prefix = tuple(physical_path)
        return any(path[: len(prefix)] == prefix for path in self.columns)

    def _logical(self, schema: StructType, path: Path) -> Path:
        names: list[str] = []
        struct: object = schema
        for physical in path:
            found = None
            if isinstance(struct, StructType):
                found = next((item for item in struct if _physical(item) == physical), None)
            if found is None:
                raise InvalidTableError(
                    f"The table is clustered by {shown(path)}, which its schema does not have.",
                    cause=f"The metadata domain {DOMAIN} names it.",
                    fix="Set the clustering columns anew with DeltaTable.alter.cluster_by.",
                )
            names.append(found.name)
            struct = found.data_type
        return tuple(names)


def require_statistics(
    clustering: ClusteringColumns, schema: StructType, configuration: Mapping[str, str]
) -> None:
    """Refuse a table whose own list of columns with statistics leaves a clustering column out.

    The number of columns does not matter: clustering columns get statistics besides.

    Raises:
        ConfigurationError: `delta.dataSkippingStatsColumns` leaves one out.
    """
    named = configuration.get(STATS_COLUMNS_KEY)
    if named is None:
        return
    listed = parse_column_list(named)
    for path in clustering.logical(schema):
        folded = tuple(name.casefold() for name in path)
        if not any(folded[: len(known)] == known for known in listed):
            raise ConfigurationError(
                f"The table cannot be clustered by {shown(path)}: it would have no statistics.",
                cause=f"{STATS_COLUMNS_KEY} is {named!r}, which leaves it out.",
                fix="Name the column there, too.",
            )


def _named(column: object) -> tuple[str, ...]:
    path = (column,) if isinstance(column, str) else column
    if isinstance(path, Sequence) and all(isinstance(name, str) for name in path):
        return tuple(path)
    raise SchemaError(
        f"{column!r} names no column to cluster by.",
        cause=f"It is of type {type(column).__name__}.",
        fix="Name a column, or the path to a nested one as a list of names.",
    )


def _physical(item: StructField) -> str:
    return str(item.metadata.get(_PHYSICAL_KEY, item.name))


def _resolve(schema: StructType, path: Sequence[str]) -> list[StructField]:
    """The fields on the way to a column that can be clustered by."""
    fields: list[StructField] = []
    struct: object = schema
    for name in path:
        found = struct.find(name) if isinstance(struct, StructType) else None
        if found is None:
            raise SchemaError(
                f"There is no column {shown(path)} to cluster by.",
                fix="Name a column of the table, a nested one by its path.",
            )
        fields.append(found)
        struct = found.data_type
    if not fields:
        raise SchemaError("A clustering column has a name.", fix="Name a column of the table.")
    kind = fields[-1].data_type
    if isinstance(kind, StructType | ArrayType | MapType) or kind in _WITHOUT_BOUNDS:
        raise SchemaError(
            f"The table cannot be clustered by {shown(path)}.",
            cause=f"Its type is {kind}, and files have no least and greatest value of such a column.",
            fix="Choose a column of numbers, text, dates or times.",
        )
    return fields


def _invalid(configuration: str, cause: str) -> InvalidTableError:
    return InvalidTableError(
        f"The metadata domain {DOMAIN} cannot be read.",
        cause=f"{cause}: {configuration[:200]}",
        fix="Set the clustering columns anew with DeltaTable.alter.cluster_by.",
    )
