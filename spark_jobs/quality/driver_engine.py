"""The driver engine: evaluates a suite's rules on staged files in batches, with several files in parallel."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from delta_core.execution.limits import available_cpus
from delta_core.jobs.params.quality import MAX_SAMPLES
from delta_core.schema.arrow import to_arrow
from spark_jobs.quality.engine import EngineResults, EngineRules
from spark_jobs.quality.rules import CountingRule, Rows, UniqueRule, needed_columns
from spark_jobs.quality.tallies import Tally, tally_of
from spark_jobs.quality.value_counts import ArrowCounts, key_name, keys_of, repeated
from spark_jobs.quality.verdict import MAX_COLLECTED_ROWS
from spark_jobs.writer.staged_files import Positions, StagedFiles


@dataclass(slots=True)
class _FileResult:
    """The results of one file, by the index of the rule's expectation in the suite."""

    tallies: dict[int, Tally] = field(default_factory=dict)
    unexpected: dict[int, list[Positions]] = field(default_factory=dict)
    keys: dict[int, list[pa.RecordBatch]] = field(default_factory=dict)


class DriverEngine:
    """Evaluates rules in this process. It holds one row group per thread, and the values to count."""

    def __init__(self, staged: StagedFiles) -> None:
        self._staged = staged
        self._bad: dict[int, list[Positions]] = {}

    def evaluate(self, rules: EngineRules) -> EngineResults:
        """Evaluate the rules on every row, in one pass over the files."""
        found = EngineResults(tallies={index: Tally() for index in rules})
        keys: dict[int, list[pa.RecordBatch]] = {index: [] for index in rules}
        self._bad = {index: [] for index in rules}
        with ThreadPoolExecutor(available_cpus(), thread_name_prefix="deltaward") as pool:
            for result in pool.map(
                lambda file: self._evaluate_file(file, rules), range(len(self._staged.adds))
            ):
                self._merge_results(result, found, keys)
        for index, rule in rules.items():
            if not isinstance(rule, (UniqueRule, CountingRule)) or found.tallies[index].error is not None:
                continue
            table = pa.Table.from_batches(keys.pop(index) or [self._empty_keys(rule)])
            if isinstance(rule, CountingRule):
                found.counted[index] = ArrowCounts(table.column(key_name(0)))
            else:
                unexpected = repeated(table)
                self._bad[index] = [unexpected]
                found.tallies[index].add(
                    Tally(unexpected=len(unexpected), first=unexpected[:MAX_SAMPLES].tolist())
                )
        return found

    def locate(self, selected: Sequence[int]) -> dict[int, Positions]:
        return {index: np.concatenate([_NO_POSITIONS, *self._bad[index]]) for index in selected}

    def _merge_results(
        self, result: _FileResult, found: EngineResults, keys: dict[int, list[pa.RecordBatch]]
    ) -> None:
        for index, tally in result.tallies.items():
            found.tallies[index].add(tally)
            # Bound the memory: positions above the limit are not used.
            if found.tallies[index].unexpected <= MAX_COLLECTED_ROWS:
                self._bad[index] += result.unexpected.get(index, [])
            else:
                self._bad[index] = []
        for index, batches in result.keys.items():
            keys[index] += batches

    def _evaluate_file(self, file: int, rules: EngineRules) -> _FileResult:
        result = _FileResult()
        first = self._staged.first_positions()[file]
        for batch in self._staged.batches(file, columns=needed_columns(list(rules.values()))):
            rows = Rows(batch)
            positions = np.arange(first, first + batch.num_rows, dtype=np.int64)
            first += batch.num_rows
            for index, rule in rules.items():
                tally, unexpected = tally_of(rule, rows, positions)
                result.tallies.setdefault(index, Tally()).add(tally)
                if isinstance(rule, (UniqueRule, CountingRule)) and tally.error is None:
                    result.keys.setdefault(index, []).append(keys_of(rule, rows, positions))
                result.unexpected.setdefault(index, []).append(unexpected)
        return result

    def _empty_keys(self, rule: UniqueRule | CountingRule) -> pa.RecordBatch:
        empty = pa.RecordBatch.from_pylist([], schema=to_arrow(self._staged.schema))
        return keys_of(rule, Rows(empty), _NO_POSITIONS)


_NO_POSITIONS: Positions = np.empty(0, dtype=np.int64)
