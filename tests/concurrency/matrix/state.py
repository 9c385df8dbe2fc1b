"""What a table is to its users, as a value: the model that serial orders are computed in."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from delta_core.actions import AddFile
from delta_core.scan.record_batches import read_file
from delta_core.snapshot.snapshot import Snapshot
from delta_core.storage.uri import resolve_data_path
from delta_core.transaction.file_actions import add_actions

Row = tuple[int, str, str]
"""id, p, v"""

OWNER = "owner"
CHECK = "positive"

_rows_of_files: dict[str, tuple[Row, ...]] = {}


def file_rows(snapshot: Snapshot, add: AddFile) -> tuple[Row, ...]:
    """A file's rows. Each file is read once: its name is its own, and no cell changes what is in it."""
    if add.path not in _rows_of_files:
        batches = read_file(
            snapshot.store,
            resolve_data_path(add.path, root_uri=snapshot.store.uri),
            schema=snapshot.schema,
            columns=["id", "p", "v"],
            partition_values=add.partition_values,
            partition_columns=snapshot.partition_columns,
        )
        _rows_of_files[add.path] = tuple(
            (row["id"], row["p"], row["v"]) for batch in batches for row in batch.to_pylist()
        )
    return _rows_of_files[add.path]


@dataclass(frozen=True, slots=True, kw_only=True)
class TableState:
    """Rows as a sorted multiset, and the definition.

    Attributes:
        not_null: the columns that hold no nulls.
        properties: sorted; of a constraint only the name counts, since its text is rendered anew.
        keys: the newest version of each application id.
    """

    rows: tuple[Row, ...]
    columns: tuple[str, ...]
    not_null: frozenset[str]
    properties: tuple[tuple[str, str], ...]
    description: str | None
    keys: tuple[tuple[str, int], ...]

    @classmethod
    def of(cls, snapshot: Snapshot) -> TableState:
        """A snapshot's state; reads every row."""
        live = add_actions(snapshot.files.to_table(), data_change=True)
        return cls(
            rows=tuple(sorted(row for add in live for row in file_rows(snapshot, add))),
            columns=tuple(snapshot.schema.names),
            not_null=frozenset(field.name for field in snapshot.schema if not field.nullable),
            properties=_sorted(
                {
                    key: "" if key.startswith("delta.constraints.") else value
                    for key, value in snapshot.metadata.configuration.items()
                }
            ),
            description=snapshot.metadata.description,
            keys=tuple(sorted((app, txn.version) for app, txn in snapshot.transactions.items())),
        )

    def mapped(self, change: Callable[[Row], Row | None], *new: Row) -> TableState:
        """Each row changed, or dropped where the answer is None; then new rows."""
        kept = [row for row in map(change, self.rows) if row is not None]
        return replace(self, rows=tuple(sorted([*kept, *new])))

    def plus(self, *new: Row) -> TableState:
        """With more rows."""
        return self.mapped(lambda row: row, *new)

    def without(self, drop: Callable[[Row], bool], *new: Row) -> TableState:
        """Without the rows that meet a condition; with new rows."""
        return self.mapped(lambda row: None if drop(row) else row, *new)

    def with_column(self, name: str) -> TableState:
        """With a column more, unless it is there."""
        return self if name in self.columns else replace(self, columns=(*self.columns, name))

    def with_properties(self, properties: Mapping[str, str | None]) -> TableState:
        """With properties set, or unset where the value is None."""
        merged = {**dict(self.properties), **properties}
        return replace(self, properties=_sorted({k: v for k, v in merged.items() if v is not None}))

    def has_key(self, app_id: str, version: int) -> bool:
        """Whether the application's version was applied."""
        return dict(self.keys).get(app_id, -1) >= version

    def with_key(self, app_id: str, version: int) -> TableState:
        """With the application at a version."""
        return replace(self, keys=tuple(sorted({**dict(self.keys), app_id: version}.items())))


def _sorted(properties: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    return tuple(sorted(properties.items()))
