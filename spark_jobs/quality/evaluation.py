"""Evaluation of a suite on staged files: the engine of each expectation, and the outcomes.

The engine depends on the number of rows. The result does not depend on the engine.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from spark_jobs.quality.engine import Engine, EngineResults
from spark_jobs.quality.outcome import ExpectationOutcome, outcome_of_rows, outcome_of_statistic
from spark_jobs.quality.pandas_engine import evaluate_with_library
from spark_jobs.quality.rules import (
    ConstantRule,
    CountingRule,
    EngineRule,
    InapplicableRule,
    LibraryRule,
    RowRule,
    Statistic,
    StatisticRule,
    UniqueRule,
)
from spark_jobs.quality.suite import PlannedExpectation
from spark_jobs.quality.tallies import Tally
from spark_jobs.quality.value_counts import CountedValues, TooManyValuesError, observe
from spark_jobs.quality.verdict import MAX_COLLECTED_ROWS
from spark_jobs.writer.staged_files import Positions, StagedFiles


def evaluate(
    engine: Engine, staged: StagedFiles, planned: Sequence[PlannedExpectation], *, samples: int
) -> list[ExpectationOutcome]:
    """Evaluate a suite on the staged files; returns the outcomes in the order of the suite.

    Args:
        engine: evaluates rules on the rows of the staged files.
        staged: the files.
        planned: the suite.
        samples: the number of unexpected values to show per expectation.

    Raises:
        DeltaError: a staged file cannot be read, or Spark failed.
    """
    outcomes: dict[int, ExpectationOutcome] = {}
    selection: dict[int, EngineRule] = {}
    for index, item in enumerate(planned):
        rule = item.rule
        if isinstance(rule, ConstantRule):
            outcomes[index] = ExpectationOutcome(planned=item, success=rule.success, observed=rule.observed)
        elif isinstance(rule, InapplicableRule):
            outcomes[index] = ExpectationOutcome(planned=item, success=False, error=rule.reason)
        elif _counts_rows(rule):
            outcomes[index] = outcome_of_statistic(item, Tally(rows=staged.rows))
        elif not isinstance(rule, LibraryRule):
            selection[index] = rule
    library = {i: item for i, item in enumerate(planned) if isinstance(item.rule, LibraryRule)}
    outcomes |= evaluate_with_library(staged, library, samples=samples)
    if selection:
        outcomes |= _evaluate_rules(engine, staged, planned, selection, samples=samples)
    return [outcomes[index] for index in range(len(planned))]


def _counts_rows(rule: object) -> bool:
    """Whether the rule needs only the number of all rows, which the files' metadata contains."""
    return (
        isinstance(rule, StatisticRule) and rule.statistic is Statistic.ROWS and rule.selection.where is None
    )


def _evaluate_rules(
    engine: Engine,
    staged: StagedFiles,
    planned: Sequence[PlannedExpectation],
    rules: Mapping[int, EngineRule],
    *,
    samples: int,
) -> dict[int, ExpectationOutcome]:
    found = engine.evaluate(rules)
    outcomes = {index: _outcome(planned[index], found, index) for index in rules}
    for index, positions in engine.locate(_failed_to_locate(outcomes)).items():
        outcomes[index] = replace(outcomes[index], rows=positions)
    if not samples:
        return outcomes
    sample_positions = {index: found.tallies[index].first[:samples] for index in outcomes}
    shown = _samples(staged, planned, sample_positions)
    return {
        index: replace(outcome, samples=shown.get(index, outcome.samples))
        for index, outcome in outcomes.items()
    }


def _outcome(item: PlannedExpectation, found: EngineResults, index: int) -> ExpectationOutcome:
    tally, rule = found.tallies[index], item.rule
    if isinstance(rule, (RowRule, UniqueRule)):
        return outcome_of_rows(item, tally)
    if isinstance(rule, StatisticRule):
        return outcome_of_statistic(item, tally)
    assert isinstance(rule, CountingRule)
    if tally.error is not None:
        return ExpectationOutcome(planned=item, success=False, error=tally.error)
    return _counted(item, rule, found.counted[index])


def _counted(item: PlannedExpectation, rule: CountingRule, counted: CountedValues) -> ExpectationOutcome:
    try:
        success, observed = observe(rule, counted)
    except TooManyValuesError as error:
        return ExpectationOutcome(planned=item, success=False, error=str(error))
    return ExpectationOutcome(planned=item, success=success, observed=observed)


def _failed_to_locate(outcomes: Mapping[int, ExpectationOutcome]) -> list[int]:
    """The failed row-level expectations, if the driver's memory can hold their rows' positions."""
    failed = [
        index
        for index, outcome in outcomes.items()
        if outcome.blocks and outcome.planned.row_level and outcome.error is None
    ]
    total = sum(outcomes[index].unexpected_count or 0 for index in failed)
    return failed if total <= MAX_COLLECTED_ROWS else []


def _samples(
    staged: StagedFiles, planned: Sequence[PlannedExpectation], sample_positions: Mapping[int, Sequence[int]]
) -> dict[int, tuple[Any, ...]]:
    """The sample values of each expectation: the values of its columns at its `sample_positions`."""
    positions: Positions = np.unique(
        np.asarray([one for chosen in sample_positions.values() for one in chosen], np.int64)
    )
    if not len(positions):
        return {}
    needed = {
        name for index, chosen in sample_positions.items() if chosen for name in planned[index].spec.columns
    }
    rows = staged.take(positions, columns=needed)
    shown = {}
    for index, chosen in sample_positions.items():
        columns = [name for name in planned[index].spec.columns if name in rows.column_names]
        indexes = np.searchsorted(positions, np.asarray(chosen, np.int64)).tolist()
        values = [tuple(rows.column(name)[place].as_py() for name in columns) for place in indexes]
        shown[index] = tuple(row[0] if len(row) == 1 else row for row in values)
    return shown
