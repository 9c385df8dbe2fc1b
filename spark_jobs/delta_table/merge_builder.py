"""`DeltaMergeBuilder`: the clauses of a merge."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from delta_core.actions import SetTransaction
from delta_core.boundary import public_class
from delta_core.errors import ConfigurationError
from delta_core.jobs.params.merge_clauses import MergeAction
from delta_core.run import Run
from delta_core.transaction import DEFAULT_COMMIT_PROPERTIES, CommitProperties
from spark_jobs.delta_table.arguments import condition_of, values_of
from spark_jobs.delta_table.frames import merge_frame
from spark_jobs.dml.clauses import MergeClause, MergeClauses
from spark_jobs.dml.merge import MergeRequest, merge_into
from spark_jobs.names.identifiers import TableName, parse_name, quoted
from spark_jobs.writer.commits import record_result

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from spark_jobs.delta_table.handle import Handle
    from spark_jobs.dml.clauses import Sql

_EVOLVES = "spark.databricks.delta.schema.autoMerge.enabled"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Draft:
    matched: tuple[MergeClause, ...] = ()
    not_matched: tuple[MergeClause, ...] = ()
    not_matched_by_source: tuple[MergeClause, ...] = ()
    merge_schema: bool = False
    properties: CommitProperties = field(default=DEFAULT_COMMIT_PROPERTIES)


@public_class
class DeltaMergeBuilder:
    """A builder for a merge. Each method returns a builder with one more clause; `execute` runs the merge.

    There are three lists of clauses: for matched rows, for source rows without a match, and for target rows
    without a match. In each list, the first clause whose condition is true applies to a row.

    A condition is Spark SQL, or a Column that refers to columns by name (`col("s.id")`, not `frame["id"]`).
    A condition of another type raises ArgumentTypeError, which is a TypeError. Missing values (`set`,
    `values`) raise ArgumentValueError, which is a ValueError.
    """

    def __init__(
        self, handle: Handle, source: DataFrame, condition: Sql, draft: _Draft | None = None
    ) -> None:
        self._handle = handle
        self._source = source
        self._condition = condition
        self._draft = draft or _Draft()

    def whenMatchedUpdate(  # noqa: N802 - the name of delta-spark, as of the other methods
        self, condition: Sql | None = None, set: Mapping[str, Sql] | None = None
    ) -> DeltaMergeBuilder:
        """Set columns of matched rows. Other columns are unchanged."""
        values = self._values(set, "'set' in whenMatchedUpdate")
        return self._matched(MergeAction.UPDATE, condition, values)

    def whenMatchedUpdateAll(self, condition: Sql | None = None) -> DeltaMergeBuilder:  # noqa: N802
        """Set every column of matched rows to the source's column of the same name."""
        return self._matched(MergeAction.UPDATE_ALL, condition)

    def whenMatchedDelete(self, condition: Sql | None = None) -> DeltaMergeBuilder:  # noqa: N802
        """Delete matched rows."""
        return self._matched(MergeAction.DELETE, condition)

    def whenNotMatchedInsert(  # noqa: N802
        self, condition: Sql | None = None, values: Mapping[str, Sql] | None = None
    ) -> DeltaMergeBuilder:
        """Insert source rows without a match. Columns without a value are null."""
        named = self._values(values, "'values' in whenNotMatchedInsert")
        return self._not_matched(MergeAction.INSERT, condition, named)

    def whenNotMatchedInsertAll(self, condition: Sql | None = None) -> DeltaMergeBuilder:  # noqa: N802
        """Insert source rows without a match. Each column gets the source's column of the same name."""
        return self._not_matched(MergeAction.INSERT_ALL, condition)

    def whenNotMatchedBySourceUpdate(  # noqa: N802
        self, condition: Sql | None = None, set: Mapping[str, Sql] | None = None
    ) -> DeltaMergeBuilder:
        """Set columns of target rows that no source row matches."""
        values = self._values(set, "'set' in whenNotMatchedBySourceUpdate")
        return self._by_source(MergeAction.UPDATE, condition, values)

    def whenNotMatchedBySourceDelete(self, condition: Sql | None = None) -> DeltaMergeBuilder:  # noqa: N802
        """Delete target rows that no source row matches."""
        return self._by_source(MergeAction.DELETE, condition)

    def withSchemaEvolution(self) -> DeltaMergeBuilder:  # noqa: N802
        """Allow the source to add columns to the table.

        The session's setting `spark.databricks.delta.schema.autoMerge.enabled` does the same.
        """
        return self._with(merge_schema=True)

    def withCommitProperties(  # noqa: N802
        self, *, txn: tuple[str, int] | None = None, user_metadata: str | None = None
    ) -> DeltaMergeBuilder:
        """Set properties of the commit.

        Args:
            txn: (application id, version). When the table already has this `txn`, the merge does nothing.
            user_metadata: the commit's `userMetadata`.
        """
        key = None if txn is None else SetTransaction(app_id=txn[0], version=txn[1])
        return self._with(properties=CommitProperties(user_metadata=user_metadata, txn=key))

    def execute(self) -> DataFrame:
        """Run the merge as one commit.

        Returns:
            One row: `num_affected_rows`, `num_updated_rows`, `num_deleted_rows`, `num_inserted_rows`. All
            metrics of the merge are in `spark_jobs.last_result`.

        Raises:
            DeltaError: see `spark_jobs.dml.merge.merge_into`. Nothing was committed, except that the commit
                may exist after a CommitStateUnknownError.
        """
        draft, handle = self._draft, self._handle
        clauses = MergeClauses(
            matched=draft.matched,
            not_matched=draft.not_matched,
            not_matched_by_source=draft.not_matched_by_source,
        )
        request = MergeRequest(
            on=self._condition,
            clauses=clauses,
            target_alias=handle.alias or "target",
            merge_schema=draft.merge_schema or handle.has_setting(_EVOLVES),
            engine_io=handle.engine_io,
            storage_options=handle.storage_options,
            allowed_roots=handle.allowed_roots,
        )
        run = Run(clock=handle.clock, commit=draft.properties)
        result = merge_into(self._source, handle.snapshot(), request, run=run)
        record_result(handle.uri, result)
        return merge_frame(handle.spark, result.output.get("metrics") or {})

    def _values(self, values: Mapping[str, Sql] | None, what: str) -> dict[str, Sql]:
        return own_columns(values_of(values, what=what), self._handle.alias)

    def _matched(
        self, action: MergeAction, condition: Sql | None, values: Mapping[str, Sql] | None = None
    ) -> DeltaMergeBuilder:
        return self._with(matched=(*self._draft.matched, _clause(action, condition, values)))

    def _not_matched(
        self, action: MergeAction, condition: Sql | None, values: Mapping[str, Sql] | None = None
    ) -> DeltaMergeBuilder:
        return self._with(not_matched=(*self._draft.not_matched, _clause(action, condition, values)))

    def _by_source(
        self, action: MergeAction, condition: Sql | None, values: Mapping[str, Sql] | None = None
    ) -> DeltaMergeBuilder:
        clauses = (*self._draft.not_matched_by_source, _clause(action, condition, values))
        return self._with(not_matched_by_source=clauses)

    def _with(self, **changes: Any) -> DeltaMergeBuilder:
        return DeltaMergeBuilder(self._handle, self._source, self._condition, replace(self._draft, **changes))


def own_columns(values: Mapping[str, Sql], alias: str | None) -> dict[str, Sql]:
    """The values, with the columns named without the table's alias."""
    return {_own_column(name, alias): value for name, value in values.items()}


def _own_column(name: str, alias: str | None) -> str:
    try:
        parts = parse_name(name).parts
    except ConfigurationError:
        return name  # a column may have any name
    if alias is None or len(parts) == 1 or parts[0].lower() != alias.lower():
        return name
    rest = TableName(parts=parts[1:])
    return quoted(rest.table) if len(rest.parts) == 1 else rest.sql()


def _clause(action: MergeAction, condition: Sql | None, values: Mapping[str, Sql] | None) -> MergeClause:
    return MergeClause(action=action, condition=condition_of(condition), values=values)
