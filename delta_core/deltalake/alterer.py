"""`DeltaTable.alter` with the calls of the `deltalake` package."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from delta_core import table as core
from delta_core.deltalake import _changes
from delta_core.deltalake._util import with_positional
from delta_core.deltalake.exceptions import ArgumentTypeError, compatible_class
from delta_core.deltalake.features import TableFeatures
from delta_core.deltalake.predicates import spark_sql
from delta_core.deltalake.protocols import with_legacy_versions
from delta_core.deltalake.schema import core_field
from delta_core.deltalake.transaction import CommitArgument, HookArgument, core_properties

_COMMIT = ("commit_properties", "post_commithook_properties")
_HOOK_FIRST = ("post_commithook_properties", "commit_properties")


@compatible_class
class TableAlterer:
    """Changes of a table's definition. Each is one commit, and the handle then shows the new version."""

    def __init__(self, table: core.DeltaTable) -> None:
        """Create the namespace of an open table of `delta_core`. Makes no request."""
        self.table = table

    @with_positional(*_COMMIT)
    def add_feature(
        self,
        feature: TableFeatures | Sequence[TableFeatures],
        allow_protocol_versions_increase: bool = False,
        *,
        commit_properties: CommitArgument = None,
        post_commithook_properties: HookArgument = None,
    ) -> None:
        """Add table features to the protocol, without enabling anything, in one commit.

        Args:
            feature: the feature or features.
            allow_protocol_versions_increase: allow that the protocol's versions increase.
            commit_properties: provenance and limits of the commit.
            post_commithook_properties: what follows the commit.

        Raises:
            ProtocolError: the versions would increase, and that is not allowed.
        """
        features = [feature] if isinstance(feature, TableFeatures) else list(feature)
        if not all(isinstance(one, TableFeatures) for one in features):
            raise ArgumentTypeError(
                f"{feature!r} is not a table feature.",
                fix="Pass TableFeatures.AppendOnly, or a list of such.",
            )
        _changes.add_features(
            self.table,
            [one.protocol_name for one in features],
            may_raise=allow_protocol_versions_increase,
            commit=core_properties(commit_properties, post_commithook_properties),
        )

    @with_positional(*_COMMIT)
    def add_columns(
        self,
        fields: Any,
        *,
        commit_properties: CommitArgument = None,
        post_commithook_properties: HookArgument = None,
    ) -> None:
        """Add columns: a `Field` or a list of them. A struct that exists gets the fields that it lacks."""
        listed = fields if isinstance(fields, list | tuple) else [fields]
        _changes.add_columns(
            self.table,
            [core_field(field) for field in listed],
            core_properties(commit_properties, post_commithook_properties),
        )

    @with_positional(*_HOOK_FIRST)
    def add_constraint(
        self,
        constraints: Mapping[str, str],
        *,
        commit_properties: CommitArgument = None,
        post_commithook_properties: HookArgument = None,
    ) -> None:
        """Add CHECK constraints, one commit each. The existing rows are checked first.

        The table stores the conditions as given, with names in backticks.
        """
        properties = core_properties(commit_properties, post_commithook_properties)
        items = constraints.items() if isinstance(constraints, Mapping) else []
        if not items:
            self.table.alter.add_constraint(constraints, commit_properties=properties)
        for name, condition in items:
            _changes.add_constraint(self.table, name, spark_sql(condition) or "", properties)

    @with_positional(*_HOOK_FIRST)
    def drop_constraint(
        self,
        name: str,
        raise_if_not_exists: bool = True,
        *,
        commit_properties: CommitArgument = None,
        post_commithook_properties: HookArgument = None,
    ) -> None:
        """Drop a CHECK constraint. `raise_if_not_exists=False` ignores a name that does not exist."""
        self.table.adopt_newest()
        key = f"delta.constraints.{name}".lower()
        exists = any(key == one.lower() for one in self.table.metadata().configuration)
        if exists or raise_if_not_exists:
            properties = core_properties(commit_properties, post_commithook_properties)
            self.table.alter.drop_constraint(name, commit_properties=properties)

    def drop_column_not_null(
        self,
        column_name: str,
        commit_properties: CommitArgument = None,
        post_commithook_properties: HookArgument = None,
    ) -> None:
        """Allow nulls in a column.

        Raises:
            ConfigurationError: the column allows nulls already.
        """
        properties = core_properties(commit_properties, post_commithook_properties)
        _changes.require_not_null(self.table, column_name)
        self.table.alter.drop_not_null(column_name, commit_properties=properties)

    @with_positional(*_COMMIT)
    def set_table_properties(
        self,
        properties: Mapping[str, str],
        raise_if_not_exists: bool = True,
        *,
        commit_properties: CommitArgument = None,
        post_commithook_properties: HookArgument = None,
    ) -> None:
        """Set table properties.

        `raise_if_not_exists` has no effect: an unknown property in `delta.` is always refused.
        """
        self.table.update_incremental()
        self.table.alter.set_properties(
            with_legacy_versions(properties, self.table.snapshot.schema, self.table.protocol()),
            commit_properties=core_properties(commit_properties, post_commithook_properties),
        )

    @with_positional(*_COMMIT)
    def set_table_name(
        self,
        name: str,
        *,
        commit_properties: CommitArgument = None,
        post_commithook_properties: HookArgument = None,
    ) -> None:
        """Set the name of the table, of at most 255 characters."""
        _changes.require_length("name", name, 255)
        _changes.set_description(
            self.table, core_properties(commit_properties, post_commithook_properties), name=name
        )

    @with_positional(*_COMMIT)
    def set_table_description(
        self,
        description: str,
        *,
        commit_properties: CommitArgument = None,
        post_commithook_properties: HookArgument = None,
    ) -> None:
        """Set the description of the table, of at most 4000 characters."""
        _changes.require_length("description", description, 4000)
        _changes.set_description(
            self.table,
            core_properties(commit_properties, post_commithook_properties),
            description=description,
        )

    @with_positional(*_COMMIT)
    def set_column_metadata(
        self,
        column: str,
        metadata: Mapping[str, str],
        *,
        commit_properties: CommitArgument = None,
        post_commithook_properties: HookArgument = None,
    ) -> None:
        """Set entries in the metadata of a column, such as `comment`. Other entries stay.

        Raises:
            ConfigurationError: an entry in `delta.`; those follow the operations that define them.
        """
        _changes.set_column_metadata(
            self.table, column, metadata, core_properties(commit_properties, post_commithook_properties)
        )
