"""Results of clones."""

from __future__ import annotations

from dataclasses import dataclass

from delta_core.transaction.commit_result import Committed


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptHistory:
    """The history that a clone with `keep_history` has copied.

    Attributes:
        first_version: the oldest version in the source's log; for a clone that existed already, the first
            new version.
        last_version: the clone's newest version.
        versions_copied: how many commits are new in the clone.
        files_gone: number of files of older versions that the source no longer has, for instance because a
            vacuum deleted them. Those versions cannot be read from the source or from the clone.
        keeps_times: whether the clone's store accepted the modification times of the log files. When it did
            not and the table has no in-commit timestamps, load versions by number: every version's time is
            the time of cloning.
    """

    first_version: int
    last_version: int
    versions_copied: int
    files_gone: int
    keeps_times: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class CloneResult:
    """The result of a clone.

    Attributes:
        committed: the clone's own commit; None when the clone already equalled the source, or keeps the
            source's history.
        source_version: the version that was cloned.
        files_added, files_removed: files that the clone's own commit added and removed.
        files_copied, bytes_copied: copied data files and deletion vector files, and their total size.
        history: the copied history; None for a clone without it.
    """

    committed: Committed | None
    source_version: int
    files_added: int = 0
    files_removed: int = 0
    files_copied: int = 0
    bytes_copied: int = 0
    history: KeptHistory | None = None

    @property
    def version(self) -> int | None:
        """The version of the clone that this call created; None when it created none."""
        if self.history is not None:
            return self.history.last_version if self.history.versions_copied else None
        return None if self.committed is None or self.committed.already_applied else self.committed.version
