"""A suite's rules on staged files, in the driver: a batch at a time, several files side by side."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from delta_core.execution.limits import available_cpus
from delta_core.schema.arrow import to_arrow
from spark_jobs.quality.counted import ArrowCounts, key_name, keys_of, repeated
from spark_jobs.quality.engine import AskingRules, Found
from spark_jobs.quality.params import MAX_SAMPLES
from spark_jobs.quality.rules import CountingRule, Rows, UniqueRule, needed_columns
from spark_jobs.quality.staged import Positions, StagedFiles
from spark_jobs.quality.tallies import Tally, tally_of
from spark_jobs.quality.verdict import MAX_COLLECTED_ROWS


@dataclass(slots=True)
class _Part:
    """What one file has told, by rule."""

    tallies: dict[int, Tally] = field(default_factory=dict)
    bad: dict[int, list[Positions]] = field(default_factory=dict)
    keys: dict[int, list[pa.RecordBatch]] = field(default_factory=dict)


class DriverEngine:
    """Judges in this process. It holds a row group per thread, and the values that are to be counted."""

    def __init__(self, staged: StagedFiles) -> None:
        self._staged = staged
        self._bad: dict[int, list[Positions]] = {}

    def judge(self, rules: AskingRules) -> Found:
        """Ask every row; one pass over the files."""
        found = Found(tallies={index: Tally() for index in rules})
        keys: dict[int, list[pa.RecordBatch]] = {index: [] for index in rules}
        self._bad = {index: [] for index in rules}
        with ThreadPoolExecutor(available_cpus(), thread_name_prefix="deltaward") as pool:
            for part in pool.map(lambda file: self._file(file, rules), range(len(self._staged.adds))):
                self._take_in(part, found, keys)
        for index, rule in rules.items():
            if not isinstance(rule, (UniqueRule, CountingRule)) or found.tallies[index].error is not None:
                continue
            table = pa.Table.from_batches(keys.pop(index) or [self._no_keys(rule)])
            if isinstance(rule, CountingRule):
                found.counted[index] = ArrowCounts(table.column(key_name(0)))
            else:
                bad = repeated(table)
                self._bad[index] = [bad]
                found.tallies[index].add(Tally(unexpected=len(bad), first=bad[:MAX_SAMPLES].tolist()))
        return found

    def locate(self, selected: Sequence[int]) -> dict[int, Positions]:
        return {index: np.concatenate([_NONE, *self._bad[index]]) for index in selected}

    def _take_in(self, part: _Part, found: Found, keys: dict[int, list[pa.RecordBatch]]) -> None:
        for index, tally in part.tallies.items():
            found.tallies[index].add(tally)
            # More than are collected are no use, and nothing else bounds them.
            if found.tallies[index].unexpected <= MAX_COLLECTED_ROWS:
                self._bad[index] += part.bad.get(index, [])
            else:
                self._bad[index] = []
        for index, batches in part.keys.items():
            keys[index] += batches

    def _file(self, file: int, rules: AskingRules) -> _Part:
        part = _Part()
        first = self._staged.first_positions()[file]
        for batch in self._staged.batches(file, columns=needed_columns(list(rules.values()))):
            rows = Rows(batch)
            positions = np.arange(first, first + batch.num_rows, dtype=np.int64)
            first += batch.num_rows
            for index, rule in rules.items():
                tally, bad = tally_of(rule, rows, positions)
                part.tallies.setdefault(index, Tally()).add(tally)
                if isinstance(rule, (UniqueRule, CountingRule)) and tally.error is None:
                    part.keys.setdefault(index, []).append(keys_of(rule, rows, positions))
                part.bad.setdefault(index, []).append(bad)
        return part

    def _no_keys(self, rule: UniqueRule | CountingRule) -> pa.RecordBatch:
        nothing = pa.RecordBatch.from_pylist([], schema=to_arrow(self._staged.schema))
        return keys_of(rule, Rows(nothing), _NONE)


_NONE: Positions = np.empty(0, dtype=np.int64)
