"""What an operation reads and changes, declared in words rather than observed."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

_LOWEST, _HIGHEST = -(2**63), 2**63


@dataclass(frozen=True, slots=True, kw_only=True)
class Box:
    """A partition and a range of ids, both ends included: a predicate, or the bounds of a file's rows."""

    partition: str
    low: int = _LOWEST
    high: int = _HIGHEST

    def meets(self, other: Box) -> bool:
        """Whether both may hold one row."""
        return self.partition == other.partition and self.low <= other.high and other.low <= self.high


class MetadataChange(StrEnum):
    """What a commit does to the table's metadata.

    INERT: nothing that says what a data file may hold.
    DEMANDING: schema, partitioning, or a property that writers must obey.
    """

    NONE = "none"
    INERT = "inert"
    DEMANDING = "demanding"


@dataclass(frozen=True, slots=True, kw_only=True)
class Footprint:
    """The facts that the written rules speak of.

    Attributes:
        reads_all: every row was read, or the absence of other rows matters.
        reads: or the rows that were.
        read_files: labels of the files whose rows were read.
        removes: labels of the files that go.
        adds: bounds of the files that come.
        data_change: False when the same rows come as go.
        metadata: what happens to the metadata.
        protocol: the protocol changes.
        key: application id and version.
        serializable: the operation demands this level, whatever the table's.
        reuses_files: what it adds are old files.
        deletes_files: it deletes data files that the newest version does not have.
    """

    reads_all: bool = False
    reads: tuple[Box, ...] = ()
    read_files: frozenset[str] = frozenset()
    removes: frozenset[str] = frozenset()
    adds: tuple[Box, ...] = ()
    data_change: bool = True
    metadata: MetadataChange = MetadataChange.NONE
    protocol: bool = False
    key: tuple[str, int] | None = None
    serializable: bool = False
    reuses_files: bool = False
    deletes_files: bool = False

    @property
    def reads_rows(self) -> bool:
        """Whether its outcome depends on rows of the table."""
        return self.reads_all or bool(self.reads)

    @property
    def is_blind_append(self) -> bool:
        """Only adds, and looked at no row."""
        return bool(self.adds) and not self.removes and not self.reads_rows
