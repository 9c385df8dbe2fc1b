"""The builder of a MERGE: `table.merge(...)`, one call for each clause, then `execute()`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Self, TypeAlias

from delta_core.arguments import name_list
from delta_core.boundary import public_class
from delta_core.errors import ConfigurationError
from delta_core.expressions.ast import Expression
from delta_core.merge.clauses import MergeAction, MergeClause, MergeClauses
from delta_core.merge.result import MergeResult
from delta_core.merge.statement import MergeRequest

Condition: TypeAlias = "str | Expression | None"
"""A condition as Spark SQL text or as an expression tree; None is true for every row."""

Values: TypeAlias = "Mapping[str, str | Expression]"
"""Values as Spark SQL text or as expression trees, by column of the table; `DEFAULT` is its default."""


@public_class
class TableMerger:
    """A merge that is not executed yet. In each list of clauses the first whose condition is true applies.

    Expressions are Spark SQL over both sides, by their aliases: `source.price * 1.1`. A name without an alias
    is allowed where only one side has the column.
    """

    def __init__(
        self,
        *,
        on: str | Expression,
        source_alias: str | None,
        target_alias: str | None,
        merge_schema: bool,
        refuses_misfits: bool,
        ignores_idle_matches: bool = False,
        execute: Callable[[MergeRequest], MergeResult],
    ) -> None:
        """Collect the clauses of a merge. `DeltaTable.merge` creates the builder.

        Args:
            on: the condition.
            source_alias: the name of the source; `source` when None.
            target_alias: the name of the table; `target` when None.
            merge_schema: whether the source may add columns.
            refuses_misfits, ignores_idle_matches: see `MergeRequest`.
            execute: executes a request.
        """
        self._on = on
        self._source_alias = "source" if source_alias is None else source_alias
        self._target_alias = "target" if target_alias is None else target_alias
        self._merge_schema, self._refuses_misfits = merge_schema, refuses_misfits
        self._ignores_idle_matches, self._execute = ignores_idle_matches, execute
        self._matched: tuple[MergeClause, ...] = ()
        self._not_matched: tuple[MergeClause, ...] = ()
        self._by_source: tuple[MergeClause, ...] = ()

    def when_matched_update(self, updates: Values, predicate: Condition = None) -> Self:
        """Assign values to columns of matched rows for which the predicate is true.

        Raises:
            ConfigurationError: nothing is assigned.
        """
        clause = self._clause(MergeAction.UPDATE, predicate, updates)
        self._matched += (clause,)
        return self

    def when_matched_update_all(
        self, predicate: Condition = None, except_cols: Sequence[str] | None = None
    ) -> Self:
        """Assign all columns of the source, apart from some, to matched rows."""
        self._matched += (self._clause(MergeAction.UPDATE_ALL, predicate, except_columns=except_cols),)
        return self

    def when_matched_delete(self, predicate: Condition = None) -> Self:
        """Delete matched rows for which the predicate is true."""
        self._matched += (self._clause(MergeAction.DELETE, predicate),)
        return self

    def when_not_matched_insert(self, updates: Values, predicate: Condition = None) -> Self:
        """Insert a row for source rows without a match. Columns without a value get their default.

        Raises:
            ConfigurationError: nothing is assigned.
        """
        self._not_matched += (self._clause(MergeAction.INSERT, predicate, updates),)
        return self

    def when_not_matched_insert_all(
        self, predicate: Condition = None, except_cols: Sequence[str] | None = None
    ) -> Self:
        """Insert source rows without a match, with all columns of the source apart from some."""
        self._not_matched += (self._clause(MergeAction.INSERT_ALL, predicate, except_columns=except_cols),)
        return self

    def when_not_matched_by_source_update(self, updates: Values, predicate: Condition = None) -> Self:
        """Assign values to columns of rows without a match in the source.

        Raises:
            ConfigurationError: nothing is assigned.
        """
        self._by_source += (self._clause(MergeAction.UPDATE, predicate, updates),)
        return self

    def when_not_matched_by_source_delete(self, predicate: Condition = None) -> Self:
        """Delete rows without a match in the source for which the predicate is true."""
        self._by_source += (self._clause(MergeAction.DELETE, predicate),)
        return self

    def execute(self) -> MergeResult:
        """Merge, in one commit. Nothing is committed when no row changes and there is no idempotency key.

        Raises:
            ConfigurationError: there is no clause, or a clause follows one without a condition.
            DeltaError: the errors of `delta_core.merge.statement.merge_rows`.
        """
        clauses = MergeClauses(
            matched=self._matched,
            not_matched=self._not_matched,
            not_matched_by_source=self._by_source,
        )
        return self._execute(
            MergeRequest(
                on=self._on,
                clauses=clauses,
                target_alias=self._target_alias,
                source_alias=self._source_alias,
                merge_schema=self._merge_schema,
                refuses_misfits=self._refuses_misfits,
                ignores_idle_matches=self._ignores_idle_matches,
            )
        )

    def _clause(
        self,
        action: MergeAction,
        condition: Condition,
        values: Values | None = None,
        except_columns: Sequence[str] | None = None,
    ) -> MergeClause:
        if action.takes_values and not isinstance(values, Mapping):
            raise ConfigurationError(
                f"The values of a clause cannot be a {type(values).__name__}.",
                fix="Pass a mapping from columns to Spark SQL.",
            )
        return MergeClause(
            action=action,
            condition=condition,
            values=None if values is None else {self._column(name): value for name, value in values.items()},
            except_columns=tuple(name_list(except_columns, what="except_cols") or ()),
        )

    def _column(self, name: Any) -> str:
        """The name of a column of the table, without the table's alias."""
        if not isinstance(name, str) or not name:
            raise ConfigurationError(f"{name!r} does not name a column.", fix="Pass a string.")
        for alias in (self._target_alias, f"`{self._target_alias}`"):
            if name.casefold().startswith(f"{alias.casefold()}."):
                name = name[len(alias) + 1 :]
                break
        is_quoted = len(name) > 2 and name.startswith("`") and name.endswith("`")
        return str(name[1:-1].replace("``", "`") if is_quoted else name)
