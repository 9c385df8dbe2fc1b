"""The values of a MERGE's rows that no clause assigns: defaults, identity values, generated columns.

`delta_core` decides them (`RowPlan`). A generated column that a clause assigns is checked; in an updated or
inserted row without an assignment it is computed again; a copied row keeps its value.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from delta_core.data.row_plan import ComputedColumn, RowPlan, computed_columns
from delta_core.data.steps.identity import IdentityStep
from delta_core.data.write_plan import WritePlan
from delta_core.jobs.params.merge_clauses import MergeAction
from delta_core.table_features.row_tracking import RowTracking
from spark_jobs.dml.clauses import MergeClauses
from spark_jobs.dml.matching import Matches, unmatched_source
from spark_jobs.dml.source import MergeSource, Names
from spark_jobs.dml.values import Assignments
from spark_jobs.expressions.checks import Broken, BrokenWhere, Check
from spark_jobs.expressions.columns import quoted
from spark_jobs.expressions.new_rows import as_read, place_of, values_from, with_counts
from spark_jobs.expressions.predicates import to_column
from spark_jobs.schema import to_spark_type

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

KEPT: Final = 0
COMPUTED: Final = 1
GIVEN: Final = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class RowValues:
    """The values that the rows of one merge get besides the assignments of the clauses.

    Attributes:
        plan: the write plan of the table after the merge.
        names: the internal columns of the merge.
        generated: the generated columns of the table.
        constants: the defaults of columns that an insert clause does not assign.
        identity: generates the identity values of inserted rows.
        numbered: the identity columns that an insert clause does not assign.
        records_changes: whether rows have their kind of change, and updated rows their old values.
    """

    plan: WritePlan
    names: Names
    generated: tuple[ComputedColumn, ...] = ()
    constants: Mapping[str, Column] = field(default_factory=dict, hash=False)
    identity: IdentityStep
    numbered: tuple[str, ...] = ()
    records_changes: bool = False

    @classmethod
    def of(
        cls,
        plan: WritePlan,
        values: Assignments,
        names: Names,
        *,
        records_changes: bool,
        now_us: int,
    ) -> RowValues:
        """The values for the clauses of a merge.

        Raises:
            ExpressionError: a needed default or a generation expression cannot be evaluated.
        """
        inserted = [frozenset(found) for found in values.not_matched]
        rows = RowPlan(plan=plan)
        if inserted:
            given = frozenset.intersection(*inserted)
            rows = RowPlan.of(plan, given=given, now_us=now_us)
        return cls(
            plan=plan,
            names=names,
            generated=tuple(computed_columns(plan)),
            constants={name: to_column(literal, plan.schema) for name, literal in rows.constants},
            identity=IdentityStep(plan),
            numbered=rows.numbered,
            records_changes=records_changes,
        )

    @property
    def tracking(self) -> RowTracking | None:
        """The hidden columns that copied and updated rows keep; None without row tracking."""
        return self.plan.row_tracking

    def absent(self, source: MergeSource, matches: Matches, clauses: MergeClauses) -> Mapping[str, Column]:
        """The values of columns that an insert clause does not assign. May run a job to reserve numbers.

        The columns refer to the rows of `unmatched_source`.
        """
        from pyspark.sql import functions as fn

        if not self.numbered:
            return self.constants
        place = place_of(with_counts(source.frame, self.names.row), self.names.row)
        rows = unmatched_source(source, matches, clauses, self.names)
        (last,) = rows.agg(fn.max(place).alias("last")).toArrow().to_pylist()
        count = 0 if last["last"] is None else last["last"] + 1
        numbers = {name: values_from(self.identity, name, count, place) for name in self.numbered}
        return {**self.constants, **numbers}

    def states(
        self, action: Column, clauses: Sequence[tuple[MergeAction, Mapping[str, object]]]
    ) -> list[Column]:
        """For each generated column, what happens to it in the row of the clause with this index."""
        from pyspark.sql import functions as fn

        columns = []
        for index, item in enumerate(self.generated):
            state = fn.lit(KEPT)
            for number, (kind, values) in enumerate(clauses):
                if kind is MergeAction.DELETE:
                    continue
                found = GIVEN if item.name in values else COMPUTED
                state = fn.when(action == fn.lit(number), fn.lit(found)).otherwise(state)
            columns.append(state.alias(self._state(index)))
        return columns

    def completed(self, frame: DataFrame) -> DataFrame:
        """The rows with computed columns, from rows with the columns of `states`."""
        from pyspark.sql import functions as fn

        schema = self.plan.schema
        columns = {
            field.name: as_read(fn.col(quoted(field.name)), field, self.plan).alias(field.name)
            for field in schema
        }
        others = [fn.col(quoted(name)) for name in frame.columns if schema.find(name) is None]
        frame = frame.select(*columns.values(), *others)
        for index, item in enumerate(self.generated):
            found = schema.find(item.name)
            assert found is not None
            computed = to_column(item.expression, schema).cast(to_spark_type(found.data_type))
            value = fn.when(fn.col(self._state(index)) == fn.lit(COMPUTED), computed)
            value = as_read(value.otherwise(fn.col(quoted(item.name))), found, self.plan)
            frame = frame.withColumn(item.name, value)
        return frame

    def checks(self) -> list[Check]:
        """The checks of generated columns that clauses assign."""
        return [
            Check(
                name=f"generated column {item.name}",
                text=f"{item.name} <=> {item.text}",
                broken_if=BrokenWhere(
                    column=self._state(index),
                    value=GIVEN,
                    broken=Broken(predicate=item.is_as_given, schema=self.plan.schema, null_passes=False),
                ),
            )
            for index, item in enumerate(self.generated)
        ]

    def _state(self, index: int) -> str:
        return f"{self.names.given}_{index}"
