"""The first phase of a MERGE in Arrow: which rows of each file change, by which clause and source row.

Only the columns of the condition and of the clauses' conditions are read, file by file.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from delta_core.actions import AddFile
from delta_core.deletion_vectors.file_update import DeletionVectorUnion, unite
from delta_core.deletion_vectors.reader import read_deletion_vector
from delta_core.deletion_vectors.roaring import Positions
from delta_core.dml.find_rows import PositionColumn
from delta_core.errors import MergeDuplicateMatchError
from delta_core.expressions.ast import TRUE, Expression
from delta_core.expressions.columns import conjunction
from delta_core.expressions.evaluate import evaluate, matches
from delta_core.expressions.typing import resolve_predicate
from delta_core.merge.clauses import MergeClause, MergeClauses
from delta_core.merge.condition import Condition
from delta_core.merge.key_index import BLOCK_PAIRS, KeyIndex
from delta_core.merge.names import MergeNames, Struct, one_array, struct_of
from delta_core.merge.source import MergeSource
from delta_core.merge.source_keys import SourceKeys
from delta_core.scan.record_batches import DEFAULT_BATCH_ROWS, FileReader
from delta_core.schema.arrow import to_arrow
from delta_core.snapshot.snapshot import Snapshot
from delta_core.storage.data_access import DataAccess
from delta_core.storage.uri import canonical_log_path

Numbers = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]

NO_CLAUSE: Final = -1
_MOST_THREADS: Final = 4
_MOST_BATCH_ROWS: Final = 1 << 22
_MOST_HASHED_BATCH_ROWS: Final = 1 << 20
_SHOWN_KEYS: Final = 5
_NOTHING: Final[Positions] = np.empty(0, np.int64)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class FileChanges:
    """The rows of one file that the merge changes.

    Attributes:
        index: the file's row among the candidates.
        file: the live file.
        rows: the changed rows, in addition to those that are deleted already.
        actions: the number of the clause of each changed row: first the `matched` clauses, then those for
            rows without a match in the source.
        sources: the source row of each changed row; -1 for none.
    """

    index: int
    file: AddFile
    rows: DeletionVectorUnion
    actions: npt.NDArray[np.int16]
    sources: Numbers


@dataclass(slots=True, kw_only=True)
class Matches:
    """The result of the first phase.

    Attributes:
        files: the files with changed rows, in the order of the candidates.
        matched: for each source row whether it matches a row; empty when no clause needs it.
        counts: the number of changed rows by clause number.
        observed: for each file that was read, by its canonical path, the matched rows that no clause changes,
            where a clause inserts rows. None when there are no such rows.
    """

    files: tuple[FileChanges, ...] = ()
    matched: Mask = field(default_factory=lambda: np.zeros(0, np.bool_))
    counts: Numbers = field(default_factory=lambda: np.zeros(0, np.int64))
    observed: Mapping[str, Positions] | None = None


class Choice:
    """Chooses for each row the first clause whose condition is true."""

    def __init__(self, clauses: Sequence[MergeClause], names: MergeNames, **sides: bool) -> None:
        """Resolve the conditions. `sides` are the arguments of `MergeNames.parsed`."""
        self.conditions = tuple(
            None
            if clause.condition is None
            else resolve_predicate(names.parsed(clause.condition, **sides), names.schema)
            for clause in clauses
        )

    @property
    def expressions(self) -> list[Expression]:
        """The conditions."""
        return [condition for condition in self.conditions if condition is not None]

    def of(self, data: pa.RecordBatch) -> npt.NDArray[np.int16]:
        """The number of the clause of each row, or NO_CLAUSE. Later conditions see only the rows left."""
        chosen = np.full(data.num_rows, NO_CLAUSE, np.int16)
        left: Numbers | None = None
        for number, condition in enumerate(self.conditions):
            count = data.num_rows if left is None else len(left)
            if not count:
                break
            if condition is None:
                taken = np.ones(count, np.bool_)
            else:
                part = data if left is None else data.take(pa.array(left))
                taken = as_mask(matches(condition, part))
            rows = np.arange(data.num_rows) if left is None else left
            chosen[rows[taken]] = number
            left = rows[~taken]
        return chosen


class Matcher:
    """Finds the changed rows of files. May be used by several threads."""

    def __init__(
        self,
        snapshot: Snapshot,
        source: MergeSource,
        condition: Condition,
        clauses: MergeClauses,
        names: MergeNames,
        *,
        keys: SourceKeys,
        predicate: Expression,
        access: DataAccess,
        threads: int,
        ignores_idle_matches: bool = False,
    ) -> None:
        """Prepare the index of the source.

        Args:
            snapshot: the version of the table.
            source, condition, clauses, names: the merge.
            keys: the source's values of the equalities.
            predicate: is true for every row that may match or change.
            access: the locations where files are allowed.
            threads: the number of threads that call `changes`.
            ignores_idle_matches: see `MergeRequest`.
        """
        self._ignores_idle_matches = ignores_idle_matches
        self._snapshot, self._source, self._names, self._access = snapshot, source, names, access
        self._condition, self._clauses = condition, clauses
        self._matched = Choice(clauses.matched, names)
        self._by_source = Choice(clauses.not_matched_by_source, names, source=False)
        self._residual = None if condition.residual == TRUE else condition.residual
        # Where every read row may match, the predicate has filtered the rows by these terms already.
        terms = condition.target_only if clauses.not_matched_by_source else ()
        self._target_only = conjunction(terms) if terms else None
        self._candidates: Mask | None = None
        if condition.source_only:
            only = conjunction(condition.source_only)
            self._candidates = as_mask(source.values(only, names))
        types = [self._target_type(equality.target) for equality in condition.equalities]
        self._index = keys.index(types, candidates=self._candidates)
        self._first_by_source = len(clauses.matched)
        self.matched = np.zeros(source.num_rows if clauses.not_matched else 0, np.bool_)
        self.observed: dict[str, Positions] = {}
        pair_expressions = [*self._matched.expressions]
        if self._residual is not None:
            pair_expressions.append(self._residual)
        self._pair_columns = names.columns_of(names.target_alias, pair_expressions)
        self._pair_source_columns = names.columns_of(names.source_alias, pair_expressions)
        alone = [equality.target for equality in condition.equalities]
        if self._target_only is not None:
            alone.append(self._target_only)
        self._alone_columns = names.columns_of(names.target_alias, [*alone, *self._by_source.expressions])
        columns = [
            name for name in snapshot.schema.names if name in {*self._pair_columns, *self._alone_columns}
        ]
        position = "_position"
        while snapshot.schema.find(position) is not None:
            position += "_"
        self._position = position
        # Each look-up has a cost for every distinct key of the source, or reads its keys again.
        most = _MOST_BATCH_ROWS if isinstance(self._index, KeyIndex) else _MOST_HASHED_BATCH_ROWS
        batch_rows = min(max(DEFAULT_BATCH_ROWS, source.num_rows), most)
        self._reader = FileReader(
            schema=snapshot.schema,
            columns=columns,
            predicate=None if predicate == TRUE else predicate,
            partition_columns=snapshot.partition_columns,
            mapping=snapshot.column_mapping,
            row_tracking=PositionColumn(position),
            access=access,
            batch_rows=batch_rows,
            use_threads=threads < 2,
        )

    def changes(self, index: int, file: AddFile) -> FileChanges | None:
        """The changed rows of a file; None if no row changes."""
        known, num_records = _NOTHING, 0
        dv = file.deletion_vector

        def deleted(num_rows: int) -> Positions:
            nonlocal known, num_records
            num_records = num_rows
            if dv is not None:
                known = read_deletion_vector(self._snapshot.store, dv, num_rows=num_rows, access=self._access)
            return known

        place = self._access.locate(file.path, store=self._snapshot.store)
        positions, actions, sources = [_NOTHING], [np.empty(0, np.int16)], [_NOTHING]
        observed = [_NOTHING]
        for batch in self._reader.read(place.store, place.path, file.partition_values, deleted=deleted):
            action, source, is_matched = self._chosen(batch)
            rows = np.flatnonzero(action >= 0)
            at = batch.column(self._position).to_numpy(zero_copy_only=False)
            if self._clauses.not_matched:
                observed.append(at[is_matched & (action < 0)])
            if len(rows):
                positions.append(at[rows])
                actions.append(action[rows])
                sources.append(source[rows])
        self.observed[canonical_log_path(file.path)] = np.concatenate(observed)
        changed = np.concatenate(positions)
        if not len(changed):
            return None
        return FileChanges(
            index=index,
            file=file,
            rows=unite(known, changed, num_records=num_records),
            actions=np.concatenate(actions),
            sources=np.concatenate(sources),
        )

    def touches(self, file: AddFile) -> bool:
        """Whether a row of a file, such as a new file of another writer, matches or would be changed."""
        dv, store = file.deletion_vector, self._snapshot.store

        def deleted(num_rows: int) -> Positions:
            if dv is None:
                return _NOTHING
            return read_deletion_vector(store, dv, num_rows=num_rows, access=self._access)

        place = self._access.locate(file.path, store=store)
        for batch in self._reader.read(place.store, place.path, file.partition_values, deleted=deleted):
            for target_rows, source_rows in self._pairs(batch):
                if self._residual is not None and len(target_rows):
                    data = self._pair_data(batch, target_rows, source_rows)
                    target_rows = target_rows[as_mask(matches(self._residual, data))]
                if len(target_rows):
                    return True
            if self._by_source.conditions:
                struct = struct_of(batch, self._alone_columns)
                data = self._names.data(batch.num_rows, target=struct, source=None)
                if (self._by_source.of(data) >= 0).any():
                    return True
        return False

    def _chosen(self, batch: pa.RecordBatch) -> tuple[npt.NDArray[np.int16], Numbers, Mask]:
        """The clause and the source row of each row of a batch, and which rows match."""
        num_rows = batch.num_rows
        action = np.full(num_rows, NO_CLAUSE, np.int16)
        source = np.full(num_rows, -1, np.int64)
        is_matched = np.zeros(num_rows, np.bool_)
        takes_any = self._clauses.allows_many_matches
        for target_rows, source_rows in self._pairs(batch):
            if not len(target_rows):
                continue
            data = self._pair_data(batch, target_rows, source_rows)
            if self._residual is not None:
                is_true = as_mask(matches(self._residual, data))
                target_rows, source_rows = target_rows[is_true], source_rows[is_true]
                data = data.filter(pa.array(is_true))
            if len(self.matched):
                self.matched[source_rows] = True
            if self._clauses.is_insert_only:
                is_matched[target_rows] = True
                continue
            if takes_any:
                is_matched[target_rows] = True
                action[target_rows] = 0
                continue
            chosen = self._matched.of(data)
            if self._ignores_idle_matches:
                is_matched[target_rows] = True
                acts = chosen >= 0
                target_rows, source_rows, chosen = target_rows[acts], source_rows[acts], chosen[acts]
                self._refuse_duplicates(target_rows, source_rows, action >= 0, source)
            else:
                self._refuse_duplicates(target_rows, source_rows, is_matched, source)
                is_matched[target_rows] = True
            source[target_rows] = source_rows
            action[target_rows] = chosen
        if self._by_source.conditions:
            rest = np.flatnonzero(~is_matched)
            if len(rest):
                part = batch.take(pa.array(rest))
                struct = struct_of(part, self._alone_columns)
                chosen = self._by_source.of(self._names.data(len(rest), target=struct, source=None))
                action[rest] = np.where(chosen < 0, NO_CLAUSE, chosen + self._first_by_source)
        return action, source, is_matched

    def _pairs(self, batch: pa.RecordBatch) -> Iterator[tuple[Numbers, Numbers]]:
        """Pairs of rows that may match: the equalities and the terms of one side hold."""
        allowed: Mask | None = None
        struct = struct_of(batch, self._alone_columns)
        data = self._names.data(batch.num_rows, target=struct, source=None)
        if self._target_only is not None:
            allowed = as_mask(matches(self._target_only, data))
        if self._index is not None:
            keys = [evaluate(equality.target, data) for equality in self._condition.equalities]
            pairs = self._index.pairs(keys)
        else:
            pairs = self._all_pairs(batch.num_rows)
        for target_rows, source_rows in pairs:
            if allowed is not None:
                is_allowed = allowed[target_rows]
                target_rows, source_rows = target_rows[is_allowed], source_rows[is_allowed]
            yield target_rows, source_rows

    def _all_pairs(self, num_rows: int) -> Iterator[tuple[Numbers, Numbers]]:
        count = self._source.num_rows
        sources = np.arange(count) if self._candidates is None else np.flatnonzero(self._candidates)
        for first in range(0, len(sources), BLOCK_PAIRS):
            part = sources[first : first + BLOCK_PAIRS]
            step = max(1, BLOCK_PAIRS // len(part))
            for start in range(0, num_rows, step):
                rows = np.arange(start, min(start + step, num_rows))
                yield np.repeat(rows, len(part)), np.tile(part, len(rows))

    def _pair_data(self, batch: pa.RecordBatch, target_rows: Numbers, source_rows: Numbers) -> pa.RecordBatch:
        target: Struct | None = None
        if self._pair_columns:
            part = batch.select(list(self._pair_columns)).take(pa.array(target_rows))
            target = struct_of(part, self._pair_columns)
        source = self._source.rows(self._pair_source_columns, source_rows)
        return self._names.data(len(target_rows), target=target, source=source)

    def _target_type(self, expression: Expression) -> pa.DataType:
        empty = to_arrow(self._names.target).empty_table()
        arrays = [one_array(column) for column in empty.columns]
        struct = pa.StructArray.from_arrays(arrays, names=empty.schema.names)
        return evaluate(expression, self._names.data(0, target=struct, source=None)).type

    def _refuse_duplicates(
        self, target_rows: Numbers, source_rows: Numbers, is_matched: Mask, source: Numbers
    ) -> None:
        """Refuse a second source row for a target row, in this block or an earlier one."""
        again = is_matched[target_rows]
        if again.any():
            rows = target_rows[again][:_SHOWN_KEYS]
            raise self._duplicate_error(source[rows], np.full(len(rows), 2))
        if self._index is not None and self._index.is_unique:
            return
        distinct, first, counts = np.unique(target_rows, return_index=True, return_counts=True)
        many = np.flatnonzero(counts > 1)[:_SHOWN_KEYS]
        if len(distinct) and len(many):
            raise self._duplicate_error(source_rows[first[many]], counts[many])

    def _duplicate_error(self, rows: Numbers, counts: Numbers) -> MergeDuplicateMatchError:
        condition = self._condition
        terms = [
            *(equality.source for equality in condition.equalities),
            *condition.source_only,
            condition.residual,
        ]
        columns = self._names.columns_of(self._names.source_alias, terms)
        shown = []
        struct = self._source.rows(columns, np.asarray(rows, np.int64))
        values: list[dict[str, Any]] = [{} for _ in rows] if struct is None else struct.to_pylist()
        for row, count in zip(values, counts, strict=True):
            keys = ", ".join(f"{name}={value}" for name, value in row.items())
            shown.append(f"{keys} ({count} source rows)")
        return MergeDuplicateMatchError(
            "Several source rows match the same target row, so the result of the merge is ambiguous.",
            cause=f"Keys with more than one source row: {'; '.join(sorted(set(shown)))}.",
            fix="Keep one source row for each key (deduplicate), or narrow the condition. Nothing was "
            "written.",
        )


def find_matches(matcher: Matcher, files: Sequence[AddFile], *, clauses: int, threads: int) -> Matches:
    """Find the changed rows of all files, at most `threads` files at a time.

    Args:
        matcher: the merge.
        files: the candidates.
        clauses: the number of clauses for rows of the table.
        threads: the number of threads.

    Raises:
        MergeDuplicateMatchError: several source rows match one row, and the clauses do not allow it.
        ExpressionError: a condition fails on a row.
        MissingDataFileError, PathEscapeError, InvalidTableError: see `Scan.to_batches`.
    """
    if threads < 2:
        found = [matcher.changes(index, file) for index, file in enumerate(files)]
    else:
        pool = ThreadPoolExecutor(threads, "deltaward-merge")
        try:
            found = list(pool.map(matcher.changes, range(len(files)), files))
        finally:
            pool.shutdown(cancel_futures=True)
    changed = tuple(item for item in found if item is not None)
    counts = np.zeros(clauses, np.int64)
    for item in changed:
        counts += np.bincount(item.actions, minlength=clauses)
    return Matches(
        files=changed,
        matched=matcher.matched,
        counts=counts,
        observed=matcher.observed if any(map(len, matcher.observed.values())) else None,
    )


def thread_count(files: Sequence[AddFile]) -> int:
    """The number of threads that look for matches."""
    return min(len(files), os.cpu_count() or 1, _MOST_THREADS)


def as_mask(values: pa.Array | pa.ChunkedArray) -> Mask:
    """Booleans as a mask of NumPy; null is false."""
    array = one_array(values)
    if array.null_count:
        array = array.fill_null(False)
    return np.asarray(array.to_numpy(zero_copy_only=False), dtype=np.bool_)
