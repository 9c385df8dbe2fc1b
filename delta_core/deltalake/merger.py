"""`DeltaTable.merge` with the calls of the `deltalake` package."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from delta_core import table as core
from delta_core.arguments import name_list
from delta_core.deltalake._changes import refuse_generated_columns
from delta_core.deltalake.exceptions import ArgumentTypeError, compatible_class
from delta_core.deltalake.predicates import spark_sql
from delta_core.deltalake.schema import from_arrow_fields
from delta_core.errors import ConfigurationError, MergeDuplicateMatchError
from delta_core.merge.builder import TableMerger as CoreMerger
from delta_core.merge.clauses import quoted
from delta_core.merge.result import MergeResult
from delta_core.merge.source import columns_of
from delta_core.merge.statement import MergeRequest, merge_rows
from delta_core.run import Run


@dataclass(frozen=True, slots=True, kw_only=True)
class MergeArguments:
    """The arguments of `DeltaTable.merge`, apart from those of the commit."""

    source: Any
    predicate: str
    source_alias: str | None
    target_alias: str | None
    merge_schema: bool
    refuses_misfits: bool


@compatible_class
class TableMerger:
    """A merge that is not executed yet.

    `update_all` and `insert_all` assign the columns that the source has: other columns keep their values, or
    get their defaults. A clause after one without a condition never applies.
    """

    def __init__(self, table: core.DeltaTable, arguments: MergeArguments, run: Run) -> None:
        """Collect the clauses of a merge. Reads nothing yet.

        Raises:
            ArgumentTypeError: the predicate is not a string.
            ConfigurationError: the source has no Arrow interface.
        """
        if not isinstance(arguments.predicate, str):
            raise ArgumentTypeError(
                f"A {type(arguments.predicate).__name__} is not a predicate.", fix="Pass SQL as a string."
            )
        if isinstance(arguments.source, Mapping | str):
            raise ArgumentTypeError(
                f"A {type(arguments.source).__name__} cannot be a source.",
                fix="Pass an object with the Arrow C stream interface.",
            )
        rows, schema = columns_of(arguments.source)
        known = table.snapshot.schema
        if arguments.merge_schema:
            refuse_generated_columns(known, from_arrow_fields(rows.schema))
        # Without `merge_schema`, columns that the table does not have are left out.
        self._columns = [
            name for name in schema.names if arguments.merge_schema or known.find(name) is not None
        ]
        self._source_alias = "source" if arguments.source_alias is None else arguments.source_alias

        def execute(request: MergeRequest) -> MergeResult:
            table.adopt_newest()
            result = merge_rows(table.snapshot, rows, request, run=run)
            table.advance_to(result.committed)
            return result

        self._merger = CoreMerger(
            on=_sql(arguments.predicate),
            source_alias=arguments.source_alias,
            target_alias=arguments.target_alias,
            merge_schema=arguments.merge_schema,
            refuses_misfits=arguments.refuses_misfits,
            ignores_idle_matches=True,
            execute=execute,
        )
        self._closed: set[str] = set()

    def when_matched_update(self, updates: Mapping[str, str], predicate: str | None = None) -> TableMerger:
        """Assign values to columns of matched rows."""
        if self._is_open("matched", predicate):
            self._merger.when_matched_update(_values(updates), spark_sql(predicate))
        return self

    def when_matched_update_all(
        self, predicate: str | None = None, except_cols: Sequence[str] | None = None
    ) -> TableMerger:
        """Assign the columns of the source, apart from some, to matched rows."""
        return self.when_matched_update(self._all(except_cols), predicate)

    def when_matched_delete(self, predicate: str | None = None) -> TableMerger:
        """Delete matched rows."""
        if self._is_open("matched", predicate):
            self._merger.when_matched_delete(spark_sql(predicate))
        return self

    def when_not_matched_insert(
        self, updates: Mapping[str, str], predicate: str | None = None
    ) -> TableMerger:
        """Insert a row for source rows without a match."""
        if self._is_open("not_matched", predicate):
            self._merger.when_not_matched_insert(_values(updates), spark_sql(predicate))
        return self

    def when_not_matched_insert_all(
        self, predicate: str | None = None, except_cols: Sequence[str] | None = None
    ) -> TableMerger:
        """Insert source rows without a match, with the columns of the source apart from some."""
        return self.when_not_matched_insert(self._all(except_cols), predicate)

    def when_not_matched_by_source_update(
        self, updates: Mapping[str, str], predicate: str | None = None
    ) -> TableMerger:
        """Assign values to columns of rows without a match in the source."""
        if self._is_open("by_source", predicate):
            self._merger.when_not_matched_by_source_update(_values(updates), spark_sql(predicate))
        return self

    def when_not_matched_by_source_delete(self, predicate: str | None = None) -> TableMerger:
        """Delete rows without a match in the source."""
        if self._is_open("by_source", predicate):
            self._merger.when_not_matched_by_source_delete(spark_sql(predicate))
        return self

    def execute(self) -> dict[str, Any]:
        """Merge, in one commit. Returns the metrics.

        Raises:
            MergeDuplicateMatchError: several source rows match one row.
        """
        try:
            return dict(self._merger.execute().metrics)
        except MergeDuplicateMatchError as error:
            raise MergeDuplicateMatchError(
                error.problem,
                cause=f"There are duplicate relevant WHEN MATCHED rows. {error.cause}",
                fix=error.fix,
            ) from error

    def _is_open(self, clauses: str, predicate: str | None) -> bool:
        is_open = clauses not in self._closed
        if predicate is None:
            self._closed.add(clauses)
        return is_open

    def _all(self, except_cols: Sequence[str] | None) -> dict[str, str]:
        excepted = set(name_list(except_cols, what="except_cols") or ())
        alias = quoted(self._source_alias)
        taken = [name for name in self._columns if name not in excepted]
        if not taken:
            raise ConfigurationError("The clause uses no column.", fix="Leave a column out of except_cols.")
        return {quoted(name): f"{alias}.{quoted(name)}" for name in taken}


def _values(updates: Mapping[str, str]) -> dict[str, str]:
    if not isinstance(updates, Mapping) or not all(
        isinstance(part, str) for pair in updates.items() for part in pair
    ):
        raise ArgumentTypeError(
            "The updates of a clause must map names to SQL strings.",
            cause=f"They are {updates!r}.",
            fix="Pass strings, such as {'x': 'source.x'}.",
        )
    return {_sql(name): _sql(text) for name, text in updates.items()}


def _sql(text: str) -> str:
    return spark_sql(text) or ""
