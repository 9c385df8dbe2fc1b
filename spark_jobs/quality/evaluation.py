"""A suite on staged files: who judges each expectation, and what comes out.

Where the rows are judged depends on their number; what is asked of them, and so the verdict, does not.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from spark_jobs.quality.counted import CountedValues, TooManyValuesError, observe
from spark_jobs.quality.engine import Engine, Found
from spark_jobs.quality.outcome import ExpectationOutcome, outcome_of_rows, outcome_of_statistic
from spark_jobs.quality.pandas_engine import evaluate_with_library
from spark_jobs.quality.rules import (
    AskingRule,
    CountingRule,
    LibraryRule,
    MisfitRule,
    RowRule,
    SettledRule,
    Statistic,
    StatisticRule,
    UniqueRule,
)
from spark_jobs.quality.staged import Positions, StagedFiles
from spark_jobs.quality.suite import PlannedExpectation
from spark_jobs.quality.tallies import Tally
from spark_jobs.quality.verdict import MAX_COLLECTED_ROWS


def evaluate(
    engine: Engine, staged: StagedFiles, planned: Sequence[PlannedExpectation], *, samples: int
) -> list[ExpectationOutcome]:
    """The outcomes in the order of the suite.

    Args:
        engine: judges the rows of the staged files.
        staged: the files.
        planned: the suite.
        samples: unexpected values to show of each expectation.

    Raises:
        DeltaError: a staged file cannot be read, or Spark failed.
    """
    outcomes: dict[int, ExpectationOutcome] = {}
    asked: dict[int, AskingRule] = {}
    for index, item in enumerate(planned):
        rule = item.rule
        if isinstance(rule, SettledRule):
            outcomes[index] = ExpectationOutcome(planned=item, success=rule.success, observed=rule.observed)
        elif isinstance(rule, MisfitRule):
            outcomes[index] = ExpectationOutcome(planned=item, success=False, error=rule.reason)
        elif _counts_rows(rule):
            outcomes[index] = outcome_of_statistic(item, Tally(rows=staged.rows))
        elif not isinstance(rule, LibraryRule):
            asked[index] = rule
    library = {i: item for i, item in enumerate(planned) if isinstance(item.rule, LibraryRule)}
    outcomes |= evaluate_with_library(staged, library, samples=samples)
    if asked:
        outcomes |= _judged(engine, staged, planned, asked, samples=samples)
    return [outcomes[index] for index in range(len(planned))]


def _counts_rows(rule: object) -> bool:
    """Whether it asks only how many rows there are, which the files say."""
    return isinstance(rule, StatisticRule) and rule.statistic is Statistic.ROWS and rule.asked.where is None


def _judged(
    engine: Engine,
    staged: StagedFiles,
    planned: Sequence[PlannedExpectation],
    rules: Mapping[int, AskingRule],
    *,
    samples: int,
) -> dict[int, ExpectationOutcome]:
    found = engine.judge(rules)
    outcomes = {index: _outcome(planned[index], found, index) for index in rules}
    for index, positions in engine.locate(_to_locate(outcomes)).items():
        outcomes[index] = replace(outcomes[index], rows=positions)
    if not samples:
        return outcomes
    wanted = {index: found.tallies[index].first[:samples] for index in outcomes}
    shown = _samples(staged, planned, wanted)
    return {
        index: replace(outcome, samples=shown.get(index, outcome.samples))
        for index, outcome in outcomes.items()
    }


def _outcome(item: PlannedExpectation, found: Found, index: int) -> ExpectationOutcome:
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


def _to_locate(outcomes: Mapping[int, ExpectationOutcome]) -> list[int]:
    """The failed row-level expectations, when what they tell of fits into the driver."""
    failed = [
        index
        for index, outcome in outcomes.items()
        if outcome.blocks and outcome.planned.row_level and outcome.error is None
    ]
    total = sum(outcomes[index].unexpected_count or 0 for index in failed)
    return failed if total <= MAX_COLLECTED_ROWS else []


def _samples(
    staged: StagedFiles, planned: Sequence[PlannedExpectation], wanted: Mapping[int, Sequence[int]]
) -> dict[int, tuple[Any, ...]]:
    """The values at positions, of the columns that each expectation is about."""
    positions: Positions = np.unique(np.asarray([one for some in wanted.values() for one in some], np.int64))
    if not len(positions):
        return {}
    needed = {name for index, some in wanted.items() if some for name in planned[index].spec.columns}
    rows = staged.take(positions, columns=needed)
    shown = {}
    for index, some in wanted.items():
        columns = [name for name in planned[index].spec.columns if name in rows.column_names]
        places = np.searchsorted(positions, np.asarray(some, np.int64)).tolist()
        values = [tuple(rows.column(name)[place].as_py() for name in columns) for place in places]
        shown[index] = tuple(row[0] if len(row) == 1 else row for row in values)
    return shown
