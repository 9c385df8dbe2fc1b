"""A winning commit of another writer, with its actions sorted by kind for the conflict rules."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from delta_core.actions import (
    Action,
    AddFile,
    CommitInfo,
    DomainMetadata,
    Metadata,
    Protocol,
    RemoveFile,
    SetTransaction,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class WinningCommit:
    """The actions of one committed version."""

    version: int
    commit_info: CommitInfo | None
    adds: tuple[AddFile, ...]
    removes: tuple[RemoveFile, ...]
    metadata: Metadata | None
    protocol: Protocol | None
    transactions: tuple[SetTransaction, ...]
    domain_metadata: tuple[DomainMetadata, ...]

    @classmethod
    def of(cls, version: int, actions: Sequence[Action]) -> WinningCommit:
        """Sort the actions of a version by their kinds."""
        return cls(
            version=version,
            commit_info=next((a for a in actions if isinstance(a, CommitInfo)), None),
            adds=tuple(a for a in actions if isinstance(a, AddFile)),
            removes=tuple(a for a in actions if isinstance(a, RemoveFile)),
            metadata=next((a for a in actions if isinstance(a, Metadata)), None),
            protocol=next((a for a in actions if isinstance(a, Protocol)), None),
            transactions=tuple(a for a in actions if isinstance(a, SetTransaction)),
            domain_metadata=tuple(a for a in actions if isinstance(a, DomainMetadata)),
        )

    @property
    def domains(self) -> frozenset[str]:
        """Names of the metadata domains that the commit sets or removes."""
        return frozenset(domain.domain for domain in self.domain_metadata)

    @property
    def is_blind_append(self) -> bool:
        """True when the writer declared that it only added files and did not read the table."""
        info = self.commit_info
        return info is not None and info.is_blind_append is True and not self.removes

    @property
    def label(self) -> str:
        """The version and operation, for messages."""
        operation = self.commit_info.operation if self.commit_info else None
        return f"version {self.version}" + (f" ({operation})" if operation else "")
