"""`DeltaTable.alter`: changes of a table's definition."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, NoReturn

from delta_core.arguments import (
    column_path,
    column_paths,
    require_string,
    strings,
)
from delta_core.boundary import public_class, refuse_pickle
from delta_core.dml.definition import clustering as of_clustering
from delta_core.dml.definition import columns as of_columns
from delta_core.dml.definition import constraints as of_constraints
from delta_core.dml.definition import domains as of_domains
from delta_core.dml.definition import features as of_features
from delta_core.dml.definition import identity as of_identity
from delta_core.dml.definition import properties as of_properties
from delta_core.errors import ConfigurationError
from delta_core.execution.executor import Executor
from delta_core.maintenance.backfill.apply import assign_row_ids
from delta_core.maintenance.feature_drop.apply import drop_feature
from delta_core.run import Run
from delta_core.schema.column_changes import Position, require_position
from delta_core.schema.schema_arguments import FieldLike, TypeLike, coerce_fields, coerce_type
from delta_core.snapshot.snapshot import Snapshot
from delta_core.table_features.enablement import property_strings
from delta_core.transaction.commit_properties import DEFAULT_COMMIT_PROPERTIES, CommitProperties
from delta_core.transaction.commit_result import Committed

if TYPE_CHECKING:
    from delta_core.table.delta_table import DeltaTable


@public_class
class TableAlterer:
    """Changes of a table's definition. Each change is one commit, and the handle then shows the new version.

    A repeated call with the idempotency key of its `commit_properties` changes nothing.
    """

    def __init__(self, table: DeltaTable) -> None:
        """Create the namespace of a handle. Makes no request."""
        self._table = table

    def __reduce__(self) -> NoReturn:
        """Raises ConfigurationError: the object cannot be pickled."""
        raise refuse_pickle(
            "The object `DeltaTable.alter`",
            "Pass the DeltaTable itself.",
        )

    def add_columns(
        self,
        columns: Sequence[FieldLike] | FieldLike,
        *,
        parent: str | Sequence[str] = (),
        position: Position | None = None,
        commit_properties: CommitProperties = DEFAULT_COMMIT_PROPERTIES,
    ) -> Committed:
        """Add nullable columns to the table or to a struct.

        Args:
            columns: fields of Arrow such as `pa.field("city", pa.string())`, or of `define_column`.
            parent: the struct's name or path; the table itself when omitted.
            position: `delta_core.First()` or `delta_core.After("id")`; None is the end.
            commit_properties: provenance, idempotency key and limits of the commit.

        Raises:
            SchemaEvolutionError: the column already exists, is NOT NULL or has a default, or the parent or
                the column of `After` does not exist.
            SchemaError: a name is not valid, or Delta does not support the type.
        """
        fields, path = coerce_fields(columns), column_path(parent)
        position = None if position is None else require_position(position)
        return self._apply(
            commit_properties,
            lambda snapshot, run: of_columns.add_columns(
                snapshot, fields, parent=path, position=position, run=run
            ),
        )

    def rename_column(
        self,
        column: str | Sequence[str],
        name: str,
        *,
        commit_properties: CommitProperties = DEFAULT_COMMIT_PROPERTIES,
    ) -> Committed:
        """Rename a column. The table needs column mapping. A nested column is given by its path."""
        path, name = column_path(column), require_string(name, what="name of a column")
        return self._apply(
            commit_properties, lambda snapshot, run: of_columns.rename_column(snapshot, path, name, run=run)
        )

    def drop_columns(
        self,
        columns: Sequence[str | Sequence[str]] | str,
        *,
        commit_properties: CommitProperties = DEFAULT_COMMIT_PROPERTIES,
    ) -> Committed:
        """Drop columns, each given by a name or path. The table needs column mapping."""
        paths = column_paths(columns)
        return self._apply(
            commit_properties, lambda snapshot, run: of_columns.drop_columns(snapshot, paths, run=run)
        )

    def move_column(
        self,
        column: str | Sequence[str],
        position: Position,
        *,
        commit_properties: CommitProperties = DEFAULT_COMMIT_PROPERTIES,
    ) -> Committed:
        """Move a column within its struct: `First()`, or `After(column)`."""
        path, position = column_path(column), require_position(position)
        return self._apply(
            commit_properties, lambda snapshot, run: of_columns.move_column(snapshot, path, position, run=run)
        )

    def set_comment(
        self,
        column: str | Sequence[str],
        comment: str | None,
        *,
        commit_properties: CommitProperties = DEFAULT_COMMIT_PROPERTIES,
    ) -> Committed:
        """Set the comment of a column; None removes it."""
        path = column_path(column)
        comment = None if comment is None else require_string(comment, what="comment")
        return self._apply(
            commit_properties, lambda snapshot, run: of_columns.set_comment(snapshot, path, comment, run=run)
        )

    def drop_not_null(
        self, column: str | Sequence[str], *, commit_properties: CommitProperties = DEFAULT_COMMIT_PROPERTIES
    ) -> Committed:
        """Allow nulls in a column. A nested column is given by its path."""
        path = column_path(column)
        return self._apply(
            commit_properties, lambda snapshot, run: of_columns.drop_not_null(snapshot, path, run=run)
        )

    def set_not_null(
        self, column: str | Sequence[str], *, commit_properties: CommitProperties = DEFAULT_COMMIT_PROPERTIES
    ) -> Committed:
        """Make a column NOT NULL. The existing rows are checked first."""
        path = column_path(column)
        return self._apply(
            commit_properties, lambda snapshot, run: of_columns.set_not_null(snapshot, path, run=run)
        )

    def change_type(
        self,
        column: str | Sequence[str],
        data_type: TypeLike,
        *,
        commit_properties: CommitProperties = DEFAULT_COMMIT_PROPERTIES,
    ) -> Committed:
        """Widen a column's type. The table property `delta.enableTypeWidening` must be true."""
        path, new_type = column_path(column), coerce_type(data_type)
        return self._apply(
            commit_properties, lambda snapshot, run: of_columns.change_type(snapshot, path, new_type, run=run)
        )

    def set_default(
        self,
        column: str | Sequence[str],
        default: str,
        *,
        commit_properties: CommitProperties = DEFAULT_COMMIT_PROPERTIES,
    ) -> Committed:
        """Set the default of a column, as SQL text, for later rows that lack the column."""
        path, default = column_path(column), require_string(default, what="default")
        return self._apply(
            commit_properties, lambda snapshot, run: of_columns.set_default(snapshot, path, default, run=run)
        )

    def drop_default(
        self, column: str | Sequence[str], *, commit_properties: CommitProperties = DEFAULT_COMMIT_PROPERTIES
    ) -> Committed:
        """Remove the default of a column."""
        path = column_path(column)
        return self._apply(
            commit_properties, lambda snapshot, run: of_columns.drop_default(snapshot, path, run=run)
        )

    def sync_identity(
        self, column: str, *, commit_properties: CommitProperties = DEFAULT_COMMIT_PROPERTIES
    ) -> Committed:
        """Raise an identity column's high-water mark past explicitly inserted values. Reads the column."""
        name = require_string(column, what="identity column")
        return self._apply(
            commit_properties, lambda snapshot, run: of_identity.sync_identity(snapshot, name, run=run)
        )

    def set_properties(
        self,
        properties: Mapping[str, str],
        *,
        commit_properties: CommitProperties = DEFAULT_COMMIT_PROPERTIES,
    ) -> Committed:
        """Set table properties. `delta.feature.*` and the two `delta.min*Version` raise the protocol.

        `delta.enableRowTracking = true` first makes commits that assign row ids to rows without ids.
        """
        properties = property_strings(properties)

        def change(snapshot: Snapshot, run: Run) -> Committed:
            enables_row_tracking = of_properties.turns_row_tracking_on(snapshot, properties)
            if enables_row_tracking and run.already_applied(snapshot) is None:
                assign_row_ids(snapshot, run=run)
                snapshot = snapshot.refresh()
            return of_properties.set_properties(snapshot, properties, run=run)

        return self._apply(commit_properties, change)

    def unset_properties(
        self, keys: Sequence[str], *, commit_properties: CommitProperties = DEFAULT_COMMIT_PROPERTIES
    ) -> Committed:
        """Reset table properties to their defaults. A single string is one key."""
        names = strings(keys, what="key of a property")
        return self._apply(
            commit_properties, lambda snapshot, run: of_properties.unset_properties(snapshot, names, run=run)
        )

    def set_name(
        self, name: str, *, commit_properties: CommitProperties = DEFAULT_COMMIT_PROPERTIES
    ) -> Committed:
        """Set the name of the table."""
        name = require_string(name, what="name of a table")
        return self._apply(
            commit_properties,
            lambda snapshot, run: of_properties.set_description(snapshot, name=name, run=run),
        )

    def set_description(
        self, description: str, *, commit_properties: CommitProperties = DEFAULT_COMMIT_PROPERTIES
    ) -> Committed:
        """Set the description of the table."""
        description = require_string(description, what="description of a table")
        return self._apply(
            commit_properties,
            lambda snapshot, run: of_properties.set_description(snapshot, description=description, run=run),
        )

    def add_constraint(
        self,
        constraints: Mapping[str, str],
        *,
        commit_properties: CommitProperties = DEFAULT_COMMIT_PROPERTIES,
    ) -> Committed:
        """Add one CHECK constraint, `{name: expression}`. The existing rows are checked first."""
        if not isinstance(constraints, Mapping) or len(constraints) != 1:
            raise ConfigurationError(
                "The argument `constraints` is not a mapping with one constraint.",
                cause=f"The argument is {constraints!r}.",
                fix="Pass a single entry, such as {'positive': 'amount > 0'}.",
            )
        ((key, value),) = constraints.items()
        name = require_string(key, what="name of a constraint")
        expression = require_string(value, what="condition of a constraint")
        return self._apply(
            commit_properties,
            lambda snapshot, run: of_constraints.add_constraint(snapshot, name, expression, run=run),
        )

    def drop_constraint(
        self, name: str, *, commit_properties: CommitProperties = DEFAULT_COMMIT_PROPERTIES
    ) -> Committed:
        """Drop a CHECK constraint."""
        name = require_string(name, what="name of a constraint")
        return self._apply(
            commit_properties, lambda snapshot, run: of_constraints.drop_constraint(snapshot, name, run=run)
        )

    def add_feature(
        self, name: str, *, commit_properties: CommitProperties = DEFAULT_COMMIT_PROPERTIES
    ) -> Committed:
        """Add a feature such as `vacuumProtocolCheck` to the protocol, without enabling anything."""
        name = require_string(name, what="name of a feature")
        return self._apply(
            commit_properties, lambda snapshot, run: of_features.add_feature(snapshot, name, run=run)
        )

    def drop_feature(
        self,
        name: str,
        *,
        truncate_history: bool = False,
        executor: Executor | None = None,
        commit_properties: CommitProperties = DEFAULT_COMMIT_PROPERTIES,
    ) -> Committed:
        """Drop a table feature, so that clients that do not support the feature can use the table.

        Makes several commits, none of which changes a row. After an interruption, a second call continues.
        When older versions use a reader feature, those versions stay and the table gets the feature
        `checkpointProtection`. With `truncate_history`, those versions are deleted instead, once
        `delta.dropFeatureTruncateHistory.retentionDuration` has passed. A call before that time removes the
        uses of the feature from the newest version, and raises.

        Args:
            name: the feature's name, in any case.
            truncate_history: delete older versions that use the feature.
            executor: runs the tasks that rewrite files; threads of this process when None.
            commit_properties: provenance, idempotency key and limits of the commits.

        Raises:
            FeatureRemovalError: the feature cannot be dropped, or not yet; the error has the cause and a fix.
            ConfigurationError: the feature leaves no history to truncate.
            UnsupportedTableFeatureError: the table requires a feature that this writer does not support.
            ConcurrentModificationError, MaxCommitAttemptsError: other writers won too often.
            PathEscapeError: a file that must be opened, such as one that a shallow clone shares with its
                source, is outside the table and the roots that the handle allows; nothing was committed.
        """
        name = require_string(name, what="name of a feature")
        return self._apply(
            commit_properties,
            lambda snapshot, run: drop_feature(
                snapshot, name, truncate_history=truncate_history, run=replace(run, executor=executor)
            ),
        )

    def cluster_by(
        self,
        columns: Sequence[str | Sequence[str]] | str | None,
        *,
        commit_properties: CommitProperties = DEFAULT_COMMIT_PROPERTIES,
    ) -> Committed:
        """Cluster the table by up to four columns, each given by a name or path. None ends the clustering.

        No file is rewritten. Concurrent writers get a conflict, because they collected statistics for the
        former columns.
        """
        paths = None if columns is None else column_paths(columns)
        return self._apply(
            commit_properties, lambda snapshot, run: of_clustering.cluster_by(snapshot, paths, run=run)
        )

    def set_domain_metadata(
        self,
        domain: str,
        configuration: str,
        *,
        commit_properties: CommitProperties = DEFAULT_COMMIT_PROPERTIES,
    ) -> Committed:
        """Set a user-defined metadata domain. Names that begin with `delta.` belong to the protocol."""
        domain = require_string(domain, what="metadata domain")
        configuration = require_string(configuration, what="configuration of a domain")
        return self._apply(
            commit_properties,
            lambda snapshot, run: of_domains.set_domain_metadata(snapshot, domain, configuration, run=run),
        )

    def remove_domain_metadata(
        self, domain: str, *, commit_properties: CommitProperties = DEFAULT_COMMIT_PROPERTIES
    ) -> Committed:
        """Remove a user-defined metadata domain."""
        domain = require_string(domain, what="metadata domain")
        return self._apply(
            commit_properties,
            lambda snapshot, run: of_domains.remove_domain_metadata(snapshot, domain, run=run),
        )

    def _apply(
        self, commit_properties: CommitProperties, change: Callable[[Snapshot, Run], Committed]
    ) -> Committed:
        run = self._table.new_run(commit_properties)
        self._table.adopt_newest()
        committed = change(self._table.snapshot, run)
        self._table.advance_to(committed)
        return committed
