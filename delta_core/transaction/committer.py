"""The commit loop: it creates one version by exactly one writer, whatever the store answers.

*"Already exists" proves nothing*: the response to this commit's own write may have been lost, and some stores
report a conflict although nothing was written. So whenever a create-only write does not plainly succeed, the
loop reads the version back and compares the transaction id:

- This commit's id: the commit landed, and only its response was lost.
- Another id: the loop checks for conflicts up to the newest version, then tries the version after it.
- The version does not exist: the loop writes the same bytes again at the same version. If the first write
  arrives late, it is still this commit.
- The version stays unreadable: the outcome is unknown, and the caller keeps its files.

Some failures prove that the store wrote nothing. They leave no doubt: the loop repeats the write, and when
the deadline passes it returns `Rejected`.

The loop never skips a version. It tries the next version only after it has read another writer's commit at
this one.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from random import Random

from delta_core.actions import CommitInfo
from delta_core.actions.json_codec import decode_commit
from delta_core.clock import Clock
from delta_core.errors import (
    CommitRejectedError,
    ConcurrentWriteError,
    CorruptLogError,
    DeltaError,
    MaxCommitAttemptsError,
    NameBlockedError,
    NotWrittenError,
    ObjectExistsError,
    ObjectNotFoundError,
    PathEscapeError,
    StorageError,
    StorageFullError,
    StorePermissionError,
    UnsafeStoreError,
    WriteRefusedError,
)
from delta_core.log.commit_reader import CommitData
from delta_core.log.log_path import MAX_VERSION, commit_path
from delta_core.observability import (
    COMMIT_CONFLICT_TOTAL,
    COMMIT_REBASE_TOTAL,
    COMMIT_RECOVERED_TOTAL,
    COMMIT_SPURIOUS_EXISTS_TOTAL,
    COMMIT_TOTAL,
    COMMIT_UNKNOWN_TOTAL,
    METRICS,
)
from delta_core.storage.log_store import LogStore
from delta_core.transaction.backoff import DecorrelatedJitter, FullJitter
from delta_core.transaction.commit_result import (
    AlreadyApplied,
    CommitResult,
    Committed,
    Conflict,
    Rejected,
    Unknown,
    unknown_outcome,
)
from delta_core.transaction.log_tail_guard import LogTailGuard
from delta_core.transaction.observer import CommitPhase, TransactionObserver
from delta_core.transaction.winning_commit import WinningCommit

READ_BACK_TRIES = 8
"""How often a version is read back before its writer counts as unknown."""

_REFUSALS = (StorePermissionError, UnsafeStoreError, NameBlockedError, WriteRefusedError, PathEscapeError)
"""Errors by which the store states that it created nothing."""

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitRequest:
    """A commit as functions of its version.

    Attributes:
        txn_id: the commit's `txnId`.
        read_version: the version that the transaction read; -1 for a table to be created.
        render: returns the commit's bytes for a version. It is called once for each version tried.
        examine: checks a winning commit for conflicts. None means that this commit may follow the winner.
        max_attempts: how many versions are tried.
        deadline_seconds: how long the commit may take in total.
        has_key: whether the commit carries an idempotency key. Only the advice in errors depends on it.
    """

    txn_id: str
    read_version: int
    render: Callable[[int], bytes]
    examine: Callable[[WinningCommit], Conflict | AlreadyApplied | None]
    max_attempts: int
    deadline_seconds: float
    has_key: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class _Lost:
    """Another writer created the version."""

    winner: WinningCommit


@dataclass(slots=True, kw_only=True)
class Committer:
    """Runs one commit request. Not reusable.

    Cost: two requests when no other writer interferes, and one when the commit creates the table. Otherwise
    there is one more read for each winning commit, and one for the free version after them.
    """

    store: LogStore
    request: CommitRequest
    guard: LogTailGuard
    clock: Clock
    random: Random
    observer: TransactionObserver
    tail: list[CommitData] = field(default_factory=list)
    """The winning commits after the version read, followed by this commit once it landed."""
    _attempts: int = 0
    _ambiguous: bool = False
    _started_seconds: float = field(default=0.0)

    def run(self) -> CommitResult:
        """Commit and return the outcome.

        Only errors of the observer and of `examine` are raised. Errors of the store and of `render` become
        results.
        """
        self._started_seconds = self.clock.monotonic_seconds()
        result = self._run()
        _count(result)
        return result

    def _run(self) -> CommitResult:
        request = self.request
        version = request.read_version + 1
        pauses = FullJitter(random=self.random)
        for _ in range(request.max_attempts):
            try:
                data = request.render(version)
            except DeltaError as error:
                # Every version tried before belongs to another writer, so this commit cannot have landed.
                return Rejected(error=error, attempts=self._attempts)
            outcome = self._settle(version, data)
            if not isinstance(outcome, _Lost):
                return outcome
            self.observer.on_phase(CommitPhase.LOST, version)
            refusal = request.examine(outcome.winner)
            if refusal is not None:
                return refusal
            if self._out_of_time:
                return self._given_up(version)
            self.clock.sleep(pauses.next_seconds())
            tail = self._examine_to_tail(version)
            if not isinstance(tail, int):
                return tail
            version = tail + 1
            METRICS.increment(COMMIT_REBASE_TOTAL)
            self.observer.on_phase(CommitPhase.REBASED, version)
        return self._given_up(version - 1)

    def _settle(self, version: int, data: bytes) -> CommitResult | _Lost:
        """Write one version until it is certain which writer created it."""
        if version > MAX_VERSION:
            return Rejected(error=_beyond(version), attempts=self._attempts)
        pauses = DecorrelatedJitter(random=self.random)
        undecided = False
        failed: NotWrittenError | None = None
        while True:
            stale = self._stale()
            if stale is not None:
                return self._refused(version, stale)
            if undecided and self._out_of_time:
                if failed is not None and not self._ambiguous:
                    return Rejected(error=failed, attempts=self._attempts)
                return self._unknown(version, "The deadline passed before the store gave a clear answer.")
            if self.guard.has_version_0:
                # A write that was sent and refused may still land after a cleanup frees version 0.
                outcome = self._owner(version, data)
                if outcome is not None:
                    return outcome
            self.observer.on_phase(CommitPhase.BEFORE_PUT, version)
            self._attempts += 1
            refused: DeltaError | None = None
            exists = False
            try:
                self._put(version, data)
            except ObjectExistsError:
                exists = True
            except _REFUSALS as error:
                if not self._ambiguous:
                    return Rejected(error=_rejection(error), attempts=self._attempts)
                refused = error
            except NotWrittenError as error:
                failed = error
                _log.warning("commit not written yet", extra={"version": version, "error": str(error)})
            except StorageError as error:
                self._ambiguous = True
                _log.warning("commit outcome unclear", extra={"version": version, "error": str(error)})
            else:
                self.observer.on_phase(CommitPhase.AFTER_PUT, version)
                return self._landed(version, data, recovered=False)
            self.observer.on_phase(CommitPhase.AFTER_PUT, version)
            # A write that certainly did not happen needs no reading back.
            outcome = self._owner(version, data) if exists or self._ambiguous else None
            if outcome is not None:
                return outcome
            if refused is not None:
                return self._unknown(version, f"An earlier attempt was unclear, then: {refused.problem}")
            if exists:
                METRICS.increment(COMMIT_SPURIOUS_EXISTS_TOTAL)
                self._ambiguous = True
            undecided = True
            self.clock.sleep(pauses.next_seconds())

    def _stale(self) -> DeltaError | None:
        try:
            with _typed():
                return self.guard.check()
        except StorageError as error:
            return error  # it is not known which log the next version would be written to

    def _refused(self, version: int, error: DeltaError) -> CommitResult:
        if self._ambiguous:
            return self._unknown(version, str(error))
        return Rejected(error=error, attempts=self._attempts)

    def _owner(self, version: int, data: bytes) -> CommitResult | _Lost | None:
        """Read a version back: the outcome (landed, lost or unknown), or None when it does not exist."""
        pauses = DecorrelatedJitter(random=self.random)
        unreadable = ""
        for remaining in range(READ_BACK_TRIES - 1, -1, -1):
            began_ms = self.clock.now_ms()
            try:
                current = self._read(version)
            except StorageError as error:
                return self._unknown(version, f"Reading the version back failed: {error.problem}")
            if current is None:
                return None
            if current == data:
                return self._recovered(version, data)
            try:
                actions = decode_commit(current, path=commit_path(version))
            except CorruptLogError as error:
                unreadable = str(error)
            else:
                info = next((a for a in actions if isinstance(a, CommitInfo)), None)
                if info is not None and info.txn_id == self.request.txn_id:
                    return self._recovered(version, data)
                # A line without an action that this protocol version knows is also another writer's.
                if current.strip():
                    stale = self._stale()
                    if stale is not None:
                        return self._refused(version, stale)
                    self._keep(version, current)
                    self.guard.winner_seen(commit_path(version), current, at_ms=began_ms)
                    return _Lost(winner=WinningCommit.of(version, actions))
                unreadable = "Its file is empty."
            # The store may have sent only a part of the file, and the file may be this commit's.
            if remaining:
                self.clock.sleep(pauses.next_seconds())
        return self._unknown(version, f"The version cannot be parsed: {unreadable}")

    def _examine_to_tail(self, known: int) -> int | CommitResult:
        """Check every commit after `known`: the newest version, or the result when a commit conflicts."""
        began_ms = self.clock.now_ms()
        version = known
        newest: bytes | None = None
        outcome: CommitResult | None = None
        while outcome is None:
            try:
                data = self._read(version + 1)
                if data is None:
                    break
                actions = decode_commit(data, path=commit_path(version + 1))
            except (StorageError, CorruptLogError) as error:
                return self._unreadable(version + 1, str(error))
            version += 1
            newest = data
            self._keep(version, data)
            outcome = self.request.examine(WinningCommit.of(version, actions))
        # After a pause the reads above may have been of a replaced log. The log is the same as before
        # exactly when `known` is unchanged.
        stale = self._stale()
        if stale is not None:
            return self._refused(version + 1, stale)
        self.guard.tail_seen(began_ms)
        if newest is not None:
            self.guard.winner_seen(commit_path(version), newest, at_ms=began_ms)
        return version if outcome is None else outcome

    def _read(self, version: int) -> bytes | None:
        """The version's bytes, or None when it does not exist. Transport failures are retried."""
        pauses = DecorrelatedJitter(random=self.random)
        for remaining in range(READ_BACK_TRIES - 1, -1, -1):
            try:
                return self._get(version)
            except ObjectNotFoundError:
                return None
            except StorageError:
                if remaining == 0:
                    raise
                self.clock.sleep(pauses.next_seconds())
        raise AssertionError("unreachable: the last try returns or raises")

    def _recovered(self, version: int, data: bytes) -> CommitResult:
        try:
            # The file may be readable only from a cache whose flush has failed.
            with _typed():
                self.store.persist([commit_path(version)])
        except StorageError as error:
            return self._unknown(version, f"The commit is readable but may not be durable: {error.problem}")
        return self._landed(version, data, recovered=True)

    def _put(self, version: int, data: bytes) -> None:
        with _typed():
            self.store.put_if_absent(commit_path(version), data)

    def _get(self, version: int) -> bytes:
        with _typed():
            return self.store.read(commit_path(version))

    def _landed(self, version: int, data: bytes, *, recovered: bool) -> CommitResult:
        try:
            with _typed():
                stale = self.guard.after_put(version)
        except StorageError as error:
            return self._unknown(version, f"Checking the log's tail failed: {error.problem}")
        if stale is not None:
            if self._ambiguous and self._attempts > 1:
                # An earlier attempt may have landed in time, and log cleanup may have deleted it since.
                return self._unknown(version, f"An earlier attempt was unclear, the last is lost: {stale}")
            return Rejected(error=stale, files_referenced=True, attempts=self._attempts)
        self._keep(version, data)
        self.observer.on_phase(CommitPhase.COMMITTED, version)
        return Committed(
            version=version, recovered=recovered, attempts=self._attempts, txn_id=self.request.txn_id
        )

    def _keep(self, version: int, data: bytes) -> None:
        self.tail.append(CommitData(version=version, path=commit_path(version), data=data))

    def _unknown(self, version: int, cause: str) -> Unknown:
        txn_id = self.request.txn_id
        error = unknown_outcome(
            f"It is not known whether version {version} was committed.",
            cause=cause,
            txn_id=txn_id,
            version=version,
            has_key=self.request.has_key,
        )
        return Unknown(version=version, txn_id=txn_id, error=error, attempts=self._attempts)

    def _unreadable(self, version: int, cause: str) -> Conflict:
        error = ConcurrentWriteError(
            f"Another writer committed version {version}, and that commit cannot be checked for conflicts.",
            cause=cause,
            fix="Check the table's log, then run the operation again.",
        )
        return Conflict(winner=version, rule="unreadable_winner", error=error, attempts=self._attempts)

    def _given_up(self, winner: int) -> Conflict:
        error = MaxCommitAttemptsError(
            f"Other writers won every attempt, last with version {winner}.",
            cause=f"The number of attempts was {self._attempts}.",
            fix="Run the operation again when fewer writers are active, or raise max_attempts.",
        )
        return Conflict(winner=winner, rule="attempts_exhausted", error=error, attempts=self._attempts)

    @property
    def _out_of_time(self) -> bool:
        elapsed = self.clock.monotonic_seconds() - self._started_seconds
        return elapsed >= self.request.deadline_seconds


@contextmanager
def _typed() -> Iterator[None]:
    """Turn an undocumented exception of the store into StorageError: the request's outcome is unknown."""
    try:
        yield
    except DeltaError:
        raise
    except Exception as error:
        raise StorageError(
            "The store raised an undocumented error.",
            cause=f"{type(error).__name__}: {error}",
            fix="Look for the cause in the store's client.",
        ) from error


def _beyond(version: int) -> CommitRejectedError:
    return CommitRejectedError(
        f"The table cannot have a version {version}.",
        cause=f"The highest version that readers accept is {MAX_VERSION}. Only a forged log reaches it.",
        fix="Find out which writer created the log's last version, and restore the log from a copy.",
    )


def _rejection(error: DeltaError) -> DeltaError:
    # Callers decide by the class: after either of these two errors they may repair the store and retry.
    if isinstance(error, UnsafeStoreError | StorageFullError):
        return error
    return CommitRejectedError(
        f"The store refused the commit: {error.problem}", cause=error.cause, fix=error.fix
    )


def _count(result: CommitResult) -> None:
    if isinstance(result, Unknown):
        METRICS.increment(COMMIT_UNKNOWN_TOTAL)
    elif isinstance(result, Conflict):
        METRICS.increment(COMMIT_CONFLICT_TOTAL)
    elif isinstance(result, Committed) and not result.already_applied:
        METRICS.increment(COMMIT_TOTAL)
        if result.recovered:
            METRICS.increment(COMMIT_RECOVERED_TOTAL)
