"""The part of an open table that changes rows which are there."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from delta_core.clock import Clock
from delta_core.dml.assignments import Updates
from delta_core.dml.delete import DeleteResult, delete_rows
from delta_core.dml.update import UpdateResult, update_rows
from delta_core.dml.write import TableHandle
from delta_core.expressions.ast import Expression
from delta_core.storage.log_store import LogStore
from delta_core.transaction.commit_properties import DEFAULT_COMMIT_PROPERTIES, CommitProperties


class _OpenTable(TableHandle, Protocol):
    """What the methods need of the table."""

    _allowed_roots: Sequence[LogStore]
    _clock: Clock


class RowChanges:
    """Methods of `DeltaTable`."""

    def delete(
        self: _OpenTable,
        predicate: Expression | str | None = None,
        *,
        commit_properties: CommitProperties = DEFAULT_COMMIT_PROPERTIES,
    ) -> DeleteResult:
        """Delete the rows for which a predicate is true; where it is null, a row stays.

        By deletion vectors where the table property `delta.enableDeletionVectors` says so, else by rewriting
        the files that lose rows. The handle shows the new version after.

        Args:
            predicate: Spark SQL text or a tree; None is every row.
            commit_properties: provenance, idempotency key and limits of the commit.

        Returns:
            The commit, and metrics by deltalake's names.

        Raises:
            ExpressionError: the predicate is invalid, does not fit the schema, or fails on a row.
            InvalidTableError: the table is append-only.
            UnsupportedTableFeatureError: the table needs what is not written; nothing was.
            ConcurrentModificationError: another writer has changed or added such rows; nothing was deleted.
            CommitStateUnknownError: the store never said whether the commit landed; files were kept.
        """
        self.update_incremental()
        result = delete_rows(
            self.snapshot,
            predicate,
            allowed_roots=self._allowed_roots,
            properties=commit_properties,
            clock=self._clock,
        )
        if result.committed is not None and result.committed.snapshot is not None:
            self.adopt(result.committed.snapshot)
        return result

    def update(
        self: _OpenTable,
        updates: Updates | None = None,
        predicate: Expression | str | None = None,
        *,
        new_values: Updates | None = None,
        commit_properties: CommitProperties = DEFAULT_COMMIT_PROPERTIES,
    ) -> UpdateResult:
        """Assign values to columns of the rows for which a predicate is true; where it is null, a row stays.

        By deletion vectors where the table property `delta.enableDeletionVectors` says so, else by rewriting
        the files that have such rows. The handle shows the new version after.

        Args:
            updates: what columns become, by name; `a.b` or `("a", "b")` is a field of a struct. Texts are
                Spark SQL over the row as it was (`DEFAULT` is the column's default); trees do, too, and any
                other Python value is itself.
            predicate: Spark SQL text or a tree; None is every row.
            new_values: as `updates`, but a text is that text.
            commit_properties: provenance, idempotency key and limits of the commit.

        Returns:
            The commit, and metrics by deltalake's names.

        Raises:
            ConfigurationError: nothing is assigned, or one column twice.
            ExpressionError: the predicate or an assignment is invalid, does not fit the schema, or fails on
                a row.
            SchemaMismatchError: an identity column is assigned.
            ConstraintViolationError: a row would break a constraint or NOT NULL; shows it.
            InvalidTableError: the table is append-only.
            UnsupportedTableFeatureError: the table needs what is not written; nothing was.
            ConcurrentModificationError: another writer has changed or added such rows; nothing was updated.
            CommitStateUnknownError: the store never said whether the commit landed; files were kept.
        """
        self.update_incremental()
        result = update_rows(
            self.snapshot,
            updates,
            predicate,
            new_values=new_values,
            allowed_roots=self._allowed_roots,
            properties=commit_properties,
            clock=self._clock,
        )
        if result.committed is not None and result.committed.snapshot is not None:
            self.adopt(result.committed.snapshot)
        return result
