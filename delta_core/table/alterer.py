"""`DeltaTable.alter`: changes of a table's definition."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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
        return self._follow(
            of_columns.add_columns(
                self._newest(),
                coerce_fields(columns),
                parent=column_path(parent),
                position=None if position is None else require_position(position),
                run=self._run(commit_properties),
            )
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
        return self._follow(
            of_columns.rename_column(self._newest(), path, name, run=self._run(commit_properties))
        )

    def drop_columns(
        self,
        columns: Sequence[str | Sequence[str]] | str,
        *,
        commit_properties: CommitProperties = DEFAULT_COMMIT_PROPERTIES,
    ) -> Committed:
        """Drop columns, each given by a name or path. The table needs column mapping."""
        paths = column_paths(columns)
        return self._follow(of_columns.drop_columns(self._newest(), paths, run=self._run(commit_properties)))

    def move_column(
        self,
        column: str | Sequence[str],
        position: Position,
        *,
        commit_properties: CommitProperties = DEFAULT_COMMIT_PROPERTIES,
    ) -> Committed:
        """Move a column within its struct: `First()`, or `After(column)`."""
        path, position = column_path(column), require_position(position)
        return self._follow(
            of_columns.move_column(self._newest(), path, position, run=self._run(commit_properties))
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
        return self._follow(
            of_columns.set_comment(self._newest(), path, comment, run=self._run(commit_properties))
        )

    def drop_not_null(
        self, column: str | Sequence[str], *, commit_properties: CommitProperties = DEFAULT_COMMIT_PROPERTIES
    ) -> Committed:
        """Allow nulls in a column. A nested column is given by its path."""
        return self._follow(
            of_columns.drop_not_null(self._newest(), column_path(column), run=self._run(commit_properties))
        )

    def set_not_null(
        self, column: str | Sequence[str], *, commit_properties: CommitProperties = DEFAULT_COMMIT_PROPERTIES
    ) -> Committed:
        """Make a column NOT NULL. The existing rows are checked first."""
        return self._follow(
            of_columns.set_not_null(self._newest(), column_path(column), run=self._run(commit_properties))
        )

    def change_type(
        self,
        column: str | Sequence[str],
        data_type: TypeLike,
        *,
        commit_properties: CommitProperties = DEFAULT_COMMIT_PROPERTIES,
    ) -> Committed:
        """Widen a column's type. The table property `delta.enableTypeWidening` must be true."""
        return self._follow(
            of_columns.change_type(
                self._newest(),
                column_path(column),
                coerce_type(data_type),
                run=self._run(commit_properties),
            )
        )

    def set_default(
        self,
        column: str | Sequence[str],
        default: str,
        *,
        commit_properties: CommitProperties = DEFAULT_COMMIT_PROPERTIES,
    ) -> Committed:
        """Set the default of a column, as SQL text, for later rows that lack the column."""
        path, text = column_path(column), require_string(default, what="default")
        return self._follow(
            of_columns.set_default(self._newest(), path, text, run=self._run(commit_properties))
        )

    def drop_default(
        self, column: str | Sequence[str], *, commit_properties: CommitProperties = DEFAULT_COMMIT_PROPERTIES
    ) -> Committed:
        """Remove the default of a column."""
        return self._follow(
            of_columns.drop_default(self._newest(), column_path(column), run=self._run(commit_properties))
        )

    def sync_identity(
        self, column: str, *, commit_properties: CommitProperties = DEFAULT_COMMIT_PROPERTIES
    ) -> Committed:
        """Raise an identity column's high-water mark past explicitly inserted values. Reads the column."""
        name = require_string(column, what="identity column")
        return self._follow(of_identity.sync_identity(self._newest(), name, run=self._run(commit_properties)))

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
        snapshot = self._newest()
        run = self._run(commit_properties)
        enables_row_tracking = of_properties.turns_row_tracking_on(snapshot, properties)
        if enables_row_tracking and run.already_applied(snapshot) is None:
            assign_row_ids(snapshot, run=run)
            snapshot = self._newest()
        return self._follow(of_properties.set_properties(snapshot, properties, run=run))

    def unset_properties(
        self, keys: Sequence[str], *, commit_properties: CommitProperties = DEFAULT_COMMIT_PROPERTIES
    ) -> Committed:
        """Reset table properties to their defaults. A single string is one key."""
        names = strings(keys, what="key of a property")
        return self._follow(
            of_properties.unset_properties(self._newest(), names, run=self._run(commit_properties))
        )

    def set_name(
        self, name: str, *, commit_properties: CommitProperties = DEFAULT_COMMIT_PROPERTIES
    ) -> Committed:
        """Set the name of the table."""
        name = require_string(name, what="name of a table")
        return self._follow(
            of_properties.set_description(self._newest(), name=name, run=self._run(commit_properties))
        )

    def set_description(
        self, description: str, *, commit_properties: CommitProperties = DEFAULT_COMMIT_PROPERTIES
    ) -> Committed:
        """Set the description of the table."""
        description = require_string(description, what="description of a table")
        return self._follow(
            of_properties.set_description(
                self._newest(), description=description, run=self._run(commit_properties)
            )
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
        return self._follow(
            of_constraints.add_constraint(self._newest(), name, expression, run=self._run(commit_properties))
        )

    def drop_constraint(
        self, name: str, *, commit_properties: CommitProperties = DEFAULT_COMMIT_PROPERTIES
    ) -> Committed:
        """Drop a CHECK constraint."""
        name = require_string(name, what="name of a constraint")
        return self._follow(
            of_constraints.drop_constraint(self._newest(), name, run=self._run(commit_properties))
        )

    def add_feature(
        self, name: str, *, commit_properties: CommitProperties = DEFAULT_COMMIT_PROPERTIES
    ) -> Committed:
        """Add a feature such as `vacuumProtocolCheck` to the protocol, without enabling anything."""
        name = require_string(name, what="name of a feature")
        return self._follow(of_features.add_feature(self._newest(), name, run=self._run(commit_properties)))

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
        return self._follow(
            drop_feature(
                self._newest(),
                name,
                truncate_history=truncate_history,
                run=self._run(commit_properties, executor),
            )
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
        return self._follow(of_clustering.cluster_by(self._newest(), paths, run=self._run(commit_properties)))

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
        return self._follow(
            of_domains.set_domain_metadata(
                self._newest(), domain, configuration, run=self._run(commit_properties)
            )
        )

    def remove_domain_metadata(
        self, domain: str, *, commit_properties: CommitProperties = DEFAULT_COMMIT_PROPERTIES
    ) -> Committed:
        """Remove a user-defined metadata domain."""
        domain = require_string(domain, what="metadata domain")
        return self._follow(
            of_domains.remove_domain_metadata(self._newest(), domain, run=self._run(commit_properties))
        )

    def _newest(self) -> Snapshot:
        self._table.update_incremental()
        return self._table.snapshot

    def _run(self, properties: CommitProperties, executor: Executor | None = None) -> Run:
        return self._table.new_run(properties, executor)

    def _follow(self, committed: Committed) -> Committed:
        self._table.follow(committed)
        return committed
