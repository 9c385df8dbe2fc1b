"""Holds what a call said against what is in the table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from tests.concurrency.ambiguity.cells import Operation
from tests.concurrency.ambiguity.raw_tables import RawTable

ROWS_BEFORE = (1, 2, 3, 4)


class Said(StrEnum):
    """What a call came to, as its caller knows it."""

    DONE = "done"
    UNKNOWN = "unknown"
    """It says that it does not know."""
    FAILED = "failed"
    """It says that nothing was changed, or something from which its caller must take that."""


class Outcome(StrEnum):
    """What that was worth. All but the first three are wrong."""

    ONCE = "once"
    UNKNOWN = "unknown"
    """It did not know, and said so; what it may need later is kept."""
    FAILED_CLEANLY = "failed, nothing landed"
    """True, but work that has to be done again: a transient fault need not fail a call."""
    DOUBLED = "doubled"
    LOST = "acknowledged, not there"
    FAILED_BUT_LANDED = "reported as failed, landed"
    DAMAGED = "damaged"
    """The log has a gap, an old version changed, rows are not what they should be."""

    @property
    def wrong(self) -> bool:
        """Whether the table and the caller disagree."""
        return self not in (Outcome.ONCE, Outcome.UNKNOWN, Outcome.FAILED_CLEANLY)


@dataclass(frozen=True, slots=True, kw_only=True)
class Expected:
    """What an operation should give: the live rows, and whether data files are written.

    Attributes:
        ids: the rows afterwards.
        before: the rows as long as it has not happened.
        files: how many there are.
        column: one that is new.
    """

    ids: Sequence[int]
    before: Sequence[int] = ROWS_BEFORE
    writes_files: bool = True
    files: int | None = None
    column: str | None = None


EXPECTED = {
    Operation.APPEND: Expected(ids=(1, 2, 3, 4, 5)),
    Operation.OVERWRITE: Expected(ids=(5,)),
    Operation.REPLACE_WHERE: Expected(ids=(1, 2, 3, 7, 8)),
    Operation.RESTORE: Expected(ids=(1, 2), writes_files=False),
    Operation.OPTIMIZE: Expected(ids=ROWS_BEFORE, files=1),
    Operation.ALTER: Expected(ids=ROWS_BEFORE, writes_files=False, column="note"),
    Operation.DELETE: Expected(ids=(1, 2, 4), files=2),
    # The old row goes by a vector, the new one comes in a file; the values of two rows of two files change.
    Operation.UPDATE: Expected(ids=(1, 4, 12, 13)),
    Operation.MERGE: Expected(ids=(1, 3, 4, 9, 12)),
    Operation.CLONE: Expected(ids=ROWS_BEFORE, before=(), files=2),
    Operation.CONVERT: Expected(ids=ROWS_BEFORE, before=(), writes_files=False, files=2),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """A cell after its run.

    Attributes:
        said: what the call came to.
        error: its error, as text.
        before, after: the table's bytes.
        txn_id: of the transaction, where the call returned it.
        read_by_peer: the live rows as the `deltalake` package reads them; None where it was not asked.
    """

    said: Said
    error: str
    before: RawTable
    after: RawTable
    txn_id: str | None = None
    read_by_peer: Sequence[int] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """The outcome and why."""

    outcome: Outcome
    detail: str = ""


def judge(evidence: Evidence, expected: Expected) -> Verdict:
    """What a cell's evidence shows."""
    before, after = evidence.before, evidence.after
    versions = sorted(after.commits)
    if versions != list(range(len(versions))):
        return Verdict(outcome=Outcome.DAMAGED, detail=f"the versions are {versions}")
    changed = [version for version, data in before.commits.items() if after.commits.get(version) != data]
    if changed:
        return Verdict(outcome=Outcome.DAMAGED, detail=f"the versions {changed} changed")
    landed = len(after.commits) - len(before.commits)
    ids = [txn_id for txn_id in after.txn_ids() if txn_id is not None]
    twice = sorted({path for path in after.added_paths() if after.added_paths().count(path) > 1})
    restored = set(twice) <= set(before.names)
    if landed > 1 or len(ids) != len(set(ids)) or (twice and not restored):
        return Verdict(outcome=Outcome.DOUBLED, detail=f"{landed} new versions; {evidence.error}")
    if evidence.said is Said.FAILED:
        outcome = Outcome.FAILED_BUT_LANDED if landed else Outcome.FAILED_CLEANLY
        return Verdict(outcome=outcome, detail=evidence.error)
    if evidence.said is Said.DONE and not landed:
        return Verdict(outcome=Outcome.LOST)
    wrong = _wrong_state(evidence, expected if landed else Expected(ids=expected.before))
    if wrong:
        return Verdict(outcome=Outcome.DAMAGED, detail=wrong)
    if evidence.said is Said.UNKNOWN:
        if expected.writes_files and after.names <= before.names:
            return Verdict(outcome=Outcome.DAMAGED, detail="unknown, and the new files are gone")
        return Verdict(outcome=Outcome.UNKNOWN, detail=evidence.error)
    if evidence.txn_id is not None and after.txn_ids()[-1] != evidence.txn_id:
        return Verdict(outcome=Outcome.LOST, detail=f"{evidence.txn_id} is not in the new version")
    return Verdict(outcome=Outcome.ONCE)


def _wrong_state(evidence: Evidence, expected: Expected) -> str:
    """What the newest version has that it should not have; empty when all is well."""
    after, wanted = evidence.after, sorted(expected.ids)
    missing = sorted(after.live_names() - after.names)
    if missing:
        return f"live files are missing: {missing}"
    found = after.ids()
    if found != wanted:
        return f"the rows are {found} in place of {wanted}"
    if evidence.read_by_peer is not None and sorted(evidence.read_by_peer) != wanted:
        return f"deltalake reads {sorted(evidence.read_by_peer)} in place of {wanted}"
    if expected.files is not None and len(after.live_paths()) != expected.files:
        return f"{len(after.live_paths())} live files in place of {expected.files}"
    if expected.column is not None and after.columns().count(expected.column) != 1:
        return f"the columns are {after.columns()}"
    return ""
