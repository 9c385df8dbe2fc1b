"""Writes the rows of a MERGE in Arrow: changed rows file by file, then inserted rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from delta_core.actions import AddCdcFile, AddFile
from delta_core.data.row_batch import RowBatch
from delta_core.data.row_files import FileOptions, RowFileWriter
from delta_core.dml.change_files import Change, ChangeFileWriter
from delta_core.dml.find_rows import FileMatch
from delta_core.dml.matched_rows import Mask, MatchedRows, rows_where
from delta_core.dml.metadata_update import MetadataUpdate
from delta_core.dml.row_statement import RowStatement, WrittenGroup, write_groups
from delta_core.merge.matching import FileChanges, Numbers
from delta_core.merge.new_rows import RowChanger, evolved

_BLOCK_ROWS = 131_072


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """The files of a merge, and the number of inserted rows."""

    files: tuple[AddFile, ...]
    changes: tuple[AddCdcFile, ...]
    inserted: int


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class MergeWriter:
    """The settings of the second phase.

    Attributes:
        statement: the merge as a row statement.
        change: the table definition after the merge.
        rows: computes the values.
        deletes: the clause numbers that delete.
        copies: whether unchanged rows of changed files are copied. Otherwise deletion vectors delete the
            changed rows.
        records_changes: whether change data files are needed.
    """

    statement: RowStatement
    change: MetadataUpdate
    rows: RowChanger
    deletes: frozenset[int]
    copies: bool
    records_changes: bool

    def write(self, changed: Sequence[FileChanges], unmatched: Numbers) -> Written:
        """Write the changed rows of files and the rows that the unmatched source rows add.

        After an error, no written file remains.
        """
        by_index = {item.index: item for item in changed}
        read = [self._match(item) for item in changed if self._is_read(item)]
        inserted = 0

        def write_group(matches: Sequence[FileMatch]) -> WrittenGroup:
            nonlocal inserted
            is_last = not read or (bool(matches) and matches[-1] is read[-1])
            reader = self._reader(alone=len(matches) == len(read)) if matches else None
            with self._file_writer() as files, self._change_writer() as changes:
                if reader is not None:
                    for match in matches:
                        self._write_file(reader, match, by_index[match.index], files, changes)
                if is_last:
                    for batch in self._inserted(unmatched):
                        inserted += batch.num_rows
                        files.write(batch)
                        if self.records_changes:
                            changes.write(batch.columns, Change.INSERT)
                return WrittenGroup(written=tuple(files.finish()), changes=changes.finish())

        group = write_groups(self.statement.snapshot.store, read, write_group)
        return Written(files=group.written, changes=group.changes, inserted=inserted)

    def _is_read(self, item: FileChanges) -> bool:
        """Whether rows of the file are written, as data or as changes."""
        if self.records_changes:
            return True
        if self.copies:
            return not (item.rows.deletes_all and self._deletes_only(item))
        return not self._deletes_only(item)

    def _deletes_only(self, item: FileChanges) -> bool:
        return bool(self.deletes) and bool(np.isin(item.actions, list(self.deletes)).all())

    def _match(self, item: FileChanges) -> FileMatch:
        rows = item.rows
        if not self.copies and not self.records_changes and self.deletes:
            kept = ~np.isin(item.actions, list(self.deletes))
            rows = replace(rows, newly_deleted=rows.newly_deleted[kept])
        return FileMatch(index=item.index, file=item.file, rows=rows)

    def _write_file(
        self,
        reader: MatchedRows,
        match: FileMatch,
        item: FileChanges,
        files: RowFileWriter,
        changes: ChangeFileWriter,
    ) -> None:
        actions, sources = item.actions, item.sources
        if match.rows is not None and len(match.rows.newly_deleted) < len(actions):
            kept = ~np.isin(actions, list(self.deletes))
            actions, sources = actions[kept], sources[kept]
        done = 0
        for batch, mask in self._batches(reader, match):
            count = int(np.count_nonzero(mask))
            action, source = actions[done : done + count], sources[done : done + count]
            done += count
            if not count:
                files.write(batch)
                continue
            is_deleted = np.isin(action, list(self.deletes)) if self.deletes else np.zeros(count, np.bool_)
            if is_deleted.any():
                deleted = np.zeros(batch.num_rows, np.bool_)
                deleted[np.flatnonzero(mask)[is_deleted]] = True
                if self.records_changes:
                    changes.write(rows_where(batch, deleted).columns, Change.DELETE)
                batch, mask = rows_where(batch, ~deleted), mask[~deleted]
                action, source = action[~is_deleted], source[~is_deleted]
                if not len(action):
                    if batch.num_rows:
                        files.write(batch)
                    continue
            old = rows_where(batch, mask)
            new = self.rows.updated(old, action, source)
            if not mask.all():
                files.write(rows_where(batch, ~mask))
            files.write(new)
            if self.records_changes:
                changes.write(old.columns, Change.BEFORE_UPDATE)
                changes.write(new.columns, Change.AFTER_UPDATE)

    def _batches(self, reader: MatchedRows, match: FileMatch) -> Iterator[tuple[RowBatch, Mask]]:
        """The rows of a file to write, with a mask of the changed ones; unchanged ones only for copies."""
        schema = self.change.schema
        is_evolved = schema != self.statement.snapshot.schema
        if self.copies:
            for batch, mask in reader.marked(match):
                yield (evolved(batch, schema) if is_evolved else batch), mask
            return
        for batch in reader.matching(match):
            rows = evolved(batch, schema) if is_evolved else batch
            yield rows, np.ones(batch.num_rows, np.bool_)

    def _inserted(self, unmatched: Numbers) -> Iterator[RowBatch]:
        for start in range(0, len(unmatched), _BLOCK_ROWS):
            yield from self.rows.inserted(unmatched[start : start + _BLOCK_ROWS])

    def _reader(self, *, alone: bool) -> MatchedRows:
        # Copied rows keep their values, and a change data feed contains the old values.
        known = set(self.statement.snapshot.schema.names)
        unread = frozenset() if self.copies or self.records_changes else self.rows.unread & known
        return self.statement.matched_rows(None, alone=alone, unread=unread)

    def _file_writer(self) -> RowFileWriter:
        statement, plan = self.statement, self.change.plan
        return RowFileWriter(
            statement.snapshot.store,
            plan=plan,
            options=FileOptions(
                target_file_size_bytes=statement.target_file_size_bytes, parquet=statement.run.parquet
            ),
            properties=plan.properties,
            keep_row_ids=True,
            clock=statement.run.clock,
        )

    def _change_writer(self) -> ChangeFileWriter:
        statement = self.statement
        return ChangeFileWriter(statement.snapshot.store, self.change.plan, clock=statement.run.clock)
