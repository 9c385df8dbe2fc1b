"""Combines many small appends of one process into few commits.

Each commit costs a round trip and a version, and each append a data file. A writer that appends a few rows at
a time pays both for each append, and leaves thousands of small files. `GroupCommit` collects the appends that
arrive during a commit. Then it writes them as one file (or one file per partition) in one version. Each
append is still a transaction: it is in the table or not, its idempotency key is in the commit, and its caller
receives its outcome.
"""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, replace
from types import TracebackType
from typing import NoReturn, Self

import pyarrow as pa

from delta_core.actions import AddFile, SetTransaction
from delta_core.arguments import whole_number
from delta_core.boundary import public_class, refuse_pickle, typed_error
from delta_core.clock import SYSTEM_CLOCK, Clock
from delta_core.data.file_writer import Compression, choose_compression
from delta_core.data.row_files import FileOptions, write_rows_to_files
from delta_core.data.row_pipeline import RowPipeline
from delta_core.data.write_plan import WritePlan, write_plan_of
from delta_core.dml.attempts import Attempts
from delta_core.dml.input_data import ArrowData, as_table
from delta_core.dml.metadata_update import SAME_DEFINITION, plan_metadata_update
from delta_core.dml.post_commit import commit_and_checkpoint
from delta_core.dml.write import HANDLE_MAX_AGE_MS, TableHandle, open_handle
from delta_core.errors import ConfigurationError, DeltaError, StorageError
from delta_core.run import Run
from delta_core.schema.arrow import from_arrow
from delta_core.snapshot.same_table import require_same_table
from delta_core.snapshot.snapshot import Snapshot
from delta_core.storage.log_store import LogStore
from delta_core.storage.open import open_store
from delta_core.table_features.feature import WriterKind
from delta_core.transaction.commit_properties import (
    DEFAULT_COMMIT_PROPERTIES,
    CommitProperties,
    IdempotencyKey,
    idempotency_key,
)
from delta_core.transaction.commit_result import (
    Committed,
    Conflict,
    Unknown,
    already_applied,
    raise_for_result,
    unknown_outcome,
)
from delta_core.transaction.file_actions import num_records
from delta_core.transaction.owned_files import OwnedFiles
from delta_core.transaction.transaction import Transaction

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Append:
    """The rows of one call of `append`."""

    rows: pa.Table
    txn: SetTransaction | None
    outcome: Future[Committed]


@public_class
class GroupCommit:
    """Appends to one table from any number of threads, in as few commits as possible.

    A background thread writes and commits. Appends that arrive meanwhile are collected. Use it as a context
    manager: its exit waits for all appends.
    """

    def __init__(
        self,
        table_or_uri: str | os.PathLike[str] | TableHandle,
        *,
        storage_options: Mapping[str, str] | None = None,
        max_appends: int = 1000,
        max_bytes: int = 256 << 20,
        commit_properties: CommitProperties = DEFAULT_COMMIT_PROPERTIES,
        compression: Compression | None = None,
        clock: Clock = SYSTEM_CLOCK,
    ) -> None:
        """Open the table, which must exist.

        Args:
            table_or_uri: the location, or an open `DeltaTable`, whose store and options are used. The handle
                stays at its version, because it belongs to its own thread.
            storage_options: options of the store; not with an open table.
            max_appends: the maximum number of appends in one commit.
            max_bytes: the maximum size of waiting rows in memory. `append` waits while there are more, except
                when it is called from a callback of another append.
            commit_properties: provenance and limits of each commit. Idempotency keys belong to the appends.
            compression: the compression of the data files; None takes the table's.
            clock: the source of time.

        Raises:
            TableNotFoundError: the table does not exist.
            UnsupportedTableFeatureError: the table needs a feature that this library does not write.
            ConfigurationError: the properties have an idempotency key, a limit is not above zero, or storage
                options are given for an open table.
        """
        self._run = Run(clock=clock, commit=commit_properties)
        if commit_properties.txn is not None:
            raise ConfigurationError(
                "The commit_properties of a GroupCommit contain an idempotency key.",
                cause="A commit contains many appends, and each append has its own key.",
                fix="Pass txn to append.",
            )
        for name, limit in (("max_appends", max_appends), ("max_bytes", max_bytes)):
            # A limit that is not a number would make every comparison with it false.
            if (whole_number(limit, what=name, fix="Omit the argument.") or 0) < 1:
                raise ConfigurationError(
                    f"The limit {name} is {limit!r}, which is not above zero.",
                    fix="Pass a whole number above zero, or omit the argument.",
                )
        self._store = _store_of(table_or_uri, storage_options, clock)
        self._verified_at_ms = clock.now_ms()
        self._snapshot = Snapshot.load(self._store, clock=clock)
        self._snapshot.require_writable(writer_kind=WriterKind.ARROW_ROWS)
        self._max_appends, self._max_bytes = max_appends, max_bytes
        self._compression = compression
        self._process = os.getpid()
        self._changed = threading.Condition()
        self._waiting: list[_Append] = []
        self._waiting_bytes = 0
        self._closed = False
        self._thread = threading.Thread(target=self._work, name="deltaward-group-commit", daemon=True)
        self._thread.start()

    def __reduce__(self) -> NoReturn:
        """Raises ConfigurationError, which states what to do instead."""
        raise refuse_pickle(
            "A GroupCommit",
            "Create a GroupCommit in each process. Their appends do not conflict with each other.",
        )

    def append(self, data: ArrowData, *, txn: IdempotencyKey | None = None) -> Future[Committed]:
        """Add rows to the next commit. Returns at once unless too many bytes are waiting.

        Args:
            data: data as for `write_deltalake`. A reader is read completely.
            txn: the append's idempotency key, `(app_id, version)`.

        Returns:
            A future of the commit that contains the rows, or of `AlreadyApplied` when the table already had
            the key. After a failure the future raises the error that `write_deltalake` would have raised.

        Raises:
            ConfigurationError: the group is closed or was created in the process that this one was forked
                from, the key is not valid, or the data has no Arrow interface.
        """
        if self._process != os.getpid():
            raise ConfigurationError(
                "The GroupCommit was created in another process.",
                cause="This process was forked from it, and does not have the thread that commits.",
                fix="Create a GroupCommit in each process.",
            )
        key = None if txn is None else idempotency_key(txn)
        table = as_table(data)
        append = _Append(rows=table, txn=key, outcome=Future())
        with self._changed:
            # Callbacks run on the background thread, which would wait for itself.
            if threading.current_thread() is not self._thread:
                self._changed.wait_for(lambda: self._closed or self._waiting_bytes <= self._max_bytes)
            if self._closed:
                raise ConfigurationError("The GroupCommit is closed.", fix="Append before the context ends.")
            self._waiting.append(append)
            self._waiting_bytes += table.nbytes
            self._changed.notify_all()
        return append.outcome

    def close(self) -> None:
        """Commit the waiting appends, and end. Repeated calls are allowed.

        A call from a callback returns at once, as does a call in a forked process: the appends belong to the
        process that created the group.
        """
        if self._process != os.getpid():
            return
        with self._changed:
            self._closed = True
            self._changed.notify_all()
        if threading.current_thread() is not self._thread:
            self._thread.join()

    def __enter__(self) -> Self:
        """The group itself."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Call `close`."""
        self.close()

    # ------------------------------------------------------------ the thread

    def _work(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._closed or self._waiting)
                group = self._next_group()
                ended = self._closed and not group and not self._waiting
                self._changed.notify_all()
            if ended:
                return
            try:
                self._commit(group)
            except BaseException as error:
                # After any error no caller may wait forever.
                _fail(group, error)

    def _next_group(self) -> list[_Append]:
        """The appends for the next commit, oldest first. Of each application id only the first key."""
        group: list[_Append] = []
        later: list[_Append] = []
        applications: set[str] = set()
        for append in self._waiting:
            in_group = append.txn is not None and append.txn.app_id in applications
            if append.txn is not None:
                applications.add(append.txn.app_id)
            if in_group or len(group) >= self._max_appends:
                later.append(append)
            elif append.outcome.set_running_or_notify_cancel():
                group.append(append)
        self._waiting = later
        self._waiting_bytes = sum(append.rows.nbytes for append in later)
        return group

    def _commit(self, group: Sequence[_Append]) -> None:
        if not 0 <= self._run.now_ms() - self._verified_at_ms <= HANDLE_MAX_AGE_MS:
            self._refresh()
        attempts = Attempts(run=self._run)
        for _ in attempts:
            # Plan again for each attempt: another writer may have advanced an identity column.
            plan = write_plan_of(self._snapshot)
            pipeline = RowPipeline(plan, now_us=self._run.now_ms() * 1000)
            group, rows = self._checked(group, pipeline)
            if rows is None:
                return
            group, adds = self._written(group, rows, plan)
            if not group:
                return
            with self._owned(adds).deleted_on_error():
                run = attempts.next_run()
                transaction = self._staged(group, adds, pipeline.high_water_marks, run).prepare()
            try:
                result = commit_and_checkpoint(transaction)
            except DeltaError:
                raise
            except Exception as error:
                _resolve_unknown(
                    group,
                    problem=f"It is not known whether the commit with txnId {transaction.txn_id} landed.",
                    cause=f"{type(error).__name__}: {error}",
                    txn_id=transaction.txn_id,
                    version=None,
                    source=error,
                )
                return
            if isinstance(result, Committed):
                # Report the outcome first: the steps after it may fail, but the commit succeeded.
                for append in group:
                    _resolve(append, result)
                self._update_snapshot(result)
                return
            self._owned(adds).discard(result)
            if isinstance(result, Unknown):
                self._verified_at_ms = 0
                _resolve_unknown(
                    group,
                    problem=result.error.problem,
                    cause=result.error.cause,
                    txn_id=result.txn_id,
                    version=result.version,
                    source=result.error,
                )
                return
            if not isinstance(result, Conflict) or result.rule == "attempts_exhausted":
                # The next group refreshes the snapshot. A failed refresh here would hide this outcome.
                self._verified_at_ms = 0
                raise_for_result(result)
            self._refresh()
            if attempts.is_last:
                raise attempts.given_up(result.error) from result.error
            # Another writer changed the table or committed one of the keys. The next attempt checks which
            # appends are affected.

    def _update_snapshot(self, result: Committed) -> None:
        if result.snapshot is None:
            self._verified_at_ms = 0
        else:
            self._snapshot, self._verified_at_ms = result.snapshot, result.snapshot.verified_at_ms

    def _refresh(self) -> None:
        # Set the time only after success: a failed refresh does not show that the old snapshot is current.
        self._snapshot = require_same_table(self._snapshot, self._snapshot.refresh())
        self._verified_at_ms = self._snapshot.verified_at_ms

    def _checked(
        self, group: Sequence[_Append], pipeline: RowPipeline
    ) -> tuple[list[_Append], pa.Table | None]:
        """The appends that are still to be committed, and all their rows. Resolves the other appends."""
        waiting = []
        for append in group:
            applied = already_applied(self._snapshot, append.txn)
            if applied is None:
                waiting.append(append)
            else:
                _resolve(append, applied)
        if len({append.rows.schema for append in waiting}) == 1:
            try:
                return waiting, self._fitted(pa.concat_tables([append.rows for append in waiting]), pipeline)
            except DeltaError:
                pass  # An append does not fit. The loop below finds which one.
        valid, tables = [], []
        for append in waiting:
            try:
                tables.append(self._fitted(append.rows, pipeline))
            except Exception as error:
                _resolve(append, error)
            else:
                valid.append(append)
        return valid, pa.concat_tables(tables) if tables else None

    def _fitted(self, rows: pa.Table, pipeline: RowPipeline) -> pa.Table:
        plan_metadata_update(
            self._snapshot,
            data_schema=from_arrow(rows.schema),
            definition=SAME_DEFINITION,
            now_ms=self._run.now_ms(),
            may_merge=False,
        )
        return pipeline.new_rows(rows)

    def _written(
        self, group: Sequence[_Append], rows: pa.Table, plan: WritePlan
    ) -> tuple[list[_Append], list[AddFile]]:
        """The appends whose rows were written, and their files. The other appends fail with their errors.

        An append whose rows cannot be written is found by bisection. An error of the store fails all appends.
        """
        written: list[_Append] = []
        adds: list[AddFile] = []
        parts = [(list(group), rows)]
        while parts:
            appends, table = parts.pop()
            try:
                adds += self._write(table, plan)
            except StorageError:
                self._owned(adds).delete()
                raise
            except Exception as error:
                if len(appends) == 1:
                    _resolve(appends[0], error)
                    continue
                middle = len(appends) // 2
                first = sum(append.rows.num_rows for append in appends[:middle])
                parts.append((appends[middle:], table.slice(first)))
                parts.append((appends[:middle], table.slice(0, first)))
            else:
                written += appends
        return written, adds

    def _write(self, rows: pa.Table, plan: WritePlan) -> list[AddFile]:
        options = FileOptions(compression=choose_compression(self._compression, plan.properties))
        return write_rows_to_files(self._store, rows, plan=plan, options=options, clock=self._run.clock)

    def _owned(self, adds: Sequence[AddFile]) -> OwnedFiles:
        return OwnedFiles(store=self._store).with_data(adds)

    def _staged(
        self, group: Sequence[_Append], adds: Sequence[AddFile], marks: Mapping[str, int], run: Run
    ) -> Transaction:
        transaction = run.begin(
            self._snapshot,
            operation="WRITE",
            writer_kind=WriterKind.ARROW_ROWS,
            operation_parameters={
                "mode": "Append",
                "partitionBy": list(self._snapshot.partition_columns),
                "groupedAppends": len(group),
            },
            verified_at_ms=self._verified_at_ms,
        )
        change = plan_metadata_update(
            self._snapshot,
            data_schema=self._snapshot.schema,
            definition=SAME_DEFINITION,
            now_ms=run.now_ms(),
        )
        transaction.add(*change.with_high_water_marks_of(marks).actions)
        now_ms = run.now_ms()
        keys = [append.txn for append in group if append.txn is not None]
        transaction.add(*(replace(key, last_updated_ms=key.last_updated_ms or now_ms) for key in keys), *adds)
        transaction.set_metrics(
            {
                "numFiles": len(adds),
                "numOutputBytes": sum(add.size_bytes for add in adds),
                "numOutputRows": sum(num_records(add) or 0 for add in adds),
            }
        )
        return transaction


def _store_of(
    table_or_uri: str | os.PathLike[str] | TableHandle, options: Mapping[str, str] | None, clock: Clock
) -> LogStore:
    if isinstance(table_or_uri, str | os.PathLike):
        return open_store(table_or_uri, storage_options=options, clock=clock)
    return open_handle(table_or_uri, options).store


def _resolve(append: _Append, outcome: Committed | BaseException) -> None:
    """Set the outcome of an append. An error in a callback must not affect the other appends."""
    try:
        if isinstance(outcome, BaseException):
            append.outcome.set_exception(_typed(outcome))
        else:
            append.outcome.set_result(outcome)
    except BaseException:
        _log.exception("a callback of an append failed")


def _resolve_unknown(
    group: Sequence[_Append],
    *,
    problem: str,
    cause: str,
    txn_id: str,
    version: int | None,
    source: BaseException,
) -> None:
    """Set an unknown outcome. The error of each append advises whether it may simply be repeated."""
    for append in group:
        error = unknown_outcome(
            problem, cause=cause, txn_id=txn_id, version=version, has_key=append.txn is not None
        )
        error.__cause__ = source
        _resolve(append, error)


def _typed(error: BaseException) -> BaseException:
    """The error that an append's outcome raises: a typed error, except for errors that end the program."""
    if not isinstance(error, Exception):
        return error
    typed = typed_error(error, doing="the append")
    if typed is not error:
        typed.__cause__ = error
    return typed


def _fail(group: Sequence[_Append], error: BaseException) -> None:
    for append in group:
        if not append.outcome.done():
            _resolve(append, error)
