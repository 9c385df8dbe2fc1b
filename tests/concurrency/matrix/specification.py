"""The conflict rules as published, over declared footprints. Nothing here calls the library.

From the Delta documentation, "Isolation levels and write conflicts", and PROTOCOL.md:

* A change of the protocol or of the metadata fails every concurrent write. This project lets a blind append
  pass a change of metadata that says nothing about what a data file may hold.
* ConcurrentAppend: files were added to what was read. Under WriteSerializable a blind append may be ordered
  after the operation that did not see it, unless that operation changes the metadata.
* ConcurrentDeleteRead: a file that was read is gone. A file that was only rearranged (`dataChange` false) has
  lost no row, so it counts for neither of the two.
* ConcurrentDeleteDelete: both remove one file.
* ConcurrentTransaction: both write as one application. A version that the table has by then is no conflict:
  the work was done.
* A vacuum deletes files that the newest version does not have, so an operation that takes such files back
  (RESTORE) fails beside it. That is this project's own rule.
* What changes no data (OPTIMIZE) runs under snapshot isolation: only what both write matters.
"""

from __future__ import annotations

from dataclasses import dataclass

from delta_core.transaction.isolation import IsolationLevel
from tests.concurrency.matrix.footprint import Footprint, MetadataChange

ERRORS = {
    "protocol_changed": "ProtocolChangedError",
    "metadata_changed": "MetadataChangedError",
    "concurrent_append": "ConcurrentAppendError",
    "delete_read": "ConcurrentDeleteReadError",
    "delete_delete": "ConcurrentDeleteDeleteError",
    "same_application": "ConcurrentTransactionError",
    "vacuum_started": "ConcurrentWriteError",
}
"""The error that each rule raises."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What must become of the loser: committed after the winner, already applied, or a rule's conflict."""

    rule: str | None = None
    already_applied: bool = False

    def __str__(self) -> str:
        if self.already_applied:
            return "already applied"
        return f"conflicts by {self.rule}" if self.rule else "commutes"


COMMUTES = Verdict()


def specified(loser: Footprint, winner: Footprint, table_level: IsolationLevel) -> Verdict:
    """The verdict on a transaction that finds another one committed since its snapshot."""
    if loser.key and winner.key and loser.key[0] == winner.key[0] and winner.key[1] >= loser.key[1]:
        return Verdict(already_applied=True)
    if winner.protocol:
        return Verdict(rule="protocol_changed")
    if winner.metadata is not MetadataChange.NONE and not _survives(loser, winner):
        return Verdict(rule="metadata_changed")
    level = _level(loser, table_level)
    if level is not IsolationLevel.SNAPSHOT_ISOLATION and loser.reads_rows and winner.data_change:
        reordered = (
            level is IsolationLevel.WRITE_SERIALIZABLE
            and winner.is_blind_append
            and loser.metadata is MetadataChange.NONE
        )
        if not reordered and _would_have_read(loser, winner):
            return Verdict(rule="concurrent_append")
        if loser.read_files & winner.removes or (loser.reads_all and winner.removes):
            return Verdict(rule="delete_read")
    if loser.removes & winner.removes:
        return Verdict(rule="delete_delete")
    if loser.key and winner.key and loser.key[0] == winner.key[0]:
        return Verdict(rule="same_application")
    if loser.reuses_files and winner.deletes_files:
        return Verdict(rule="vacuum_started")
    return COMMUTES


def _survives(loser: Footprint, winner: Footprint) -> bool:
    untouched = loser.is_blind_append and loser.metadata is MetadataChange.NONE
    return untouched and winner.metadata is MetadataChange.INERT


def _level(loser: Footprint, table_level: IsolationLevel) -> IsolationLevel:
    if not loser.data_change:
        return IsolationLevel.SNAPSHOT_ISOLATION
    return IsolationLevel.SERIALIZABLE if loser.serializable else table_level


def _would_have_read(loser: Footprint, winner: Footprint) -> bool:
    if loser.reads_all:
        return bool(winner.adds)
    return any(read.meets(added) for read in loser.reads for added in winner.adds)
