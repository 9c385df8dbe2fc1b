"""What a clone did."""

from __future__ import annotations

from dataclasses import dataclass

from delta_core.transaction.commit_result import Committed


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptHistory:
    """The history of a clone that keeps it.

    Attributes:
        first_version: the oldest version that the source's log has shown; of a clone that was there already,
            the first one that was new.
        last_version: the clone's newest version.
        versions_copied: how many commits are new in the clone.
        files_gone: files of older versions that the source no longer has, to a vacuum for instance. Those
            versions can be read of the clone as little as of the source.
        keeps_times: whether the clone's store took the times of the log's files. Where it does not, and the
            table has no in-commit timestamps, versions are asked for by number: by time all are as old as the
            clone.
    """

    first_version: int
    last_version: int
    versions_copied: int
    files_gone: int
    keeps_times: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class CloneResult:
    """What a clone did; `committed` is None when the clone was already what the source is.

    Attributes:
        committed: the clone's own commit, which one that keeps the source's history does not make.
        source_version: the version that was cloned.
        files_added, files_removed: in the clone's log, by its own commit.
        files_copied, bytes_copied: of data files and deletion vectors.
        history: of a clone that keeps it.
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
        """The clone's version that came about; None where nothing was new."""
        if self.history is not None:
            return self.history.last_version if self.history.versions_copied else None
        return None if self.committed is None or self.committed.already_applied else self.committed.version
