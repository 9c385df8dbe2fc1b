"""Options of a stream: the rows that it reads, and the size of a batch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from delta_core.arguments import Instant, at_least, whole_bytes
from delta_core.errors import ConfigurationError
from delta_core.leases.lease import checked_name

LATEST: Final = "latest"
"""As the starting version: only commits that are made after the stream starts."""

DEFAULT_MAX_FILES: Final = 1000
"""The most files of a batch when no limit is given, as in delta-spark."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FollowOptions:
    """The rows that a stream reads.

    Attributes:
        starting_version: start with the changes of this commit, or with LATEST. None starts with the rows of
            the newest version.
        starting_timestamp: start with the first commit at this time or later.
        ignore_deletes: pass over commits that only remove files.
        ignore_changes: read the added files of a commit that also removes files. Rows that the commit only
            copied are read again.
        skip_change_commits: pass over all commits that remove files.
        fail_on_data_loss: raise an error when the log no longer has a commit. Otherwise the stream continues
            with the next commit that the log has.
        change_feed: read the changes with their kinds, as `load_cdf` does.
    """

    starting_version: int | str | None = None
    starting_timestamp: Instant | None = None
    ignore_deletes: bool = False
    ignore_changes: bool = False
    skip_change_commits: bool = False
    fail_on_data_loss: bool = True
    change_feed: bool = False

    def __post_init__(self) -> None:
        """Check the options.

        Raises:
            ConfigurationError: there are two starts, or a value is not valid.
        """
        if self.starting_version is not None and self.starting_timestamp is not None:
            raise ConfigurationError(
                "A stream has both a starting version and a starting timestamp.", fix="Pass only one of them."
            )
        if self.starting_version != LATEST:
            at_least(
                0,
                self.starting_version,  # type: ignore[arg-type] # the call refuses other strings
                what="starting version",
                fix="Pass a version such as 3, or 'latest'.",
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchLimits:
    """How much one batch has.

    Attributes:
        max_files: the most files.
        max_bytes: a batch ends with the file that reaches this number of bytes.
    """

    max_files: int | None = DEFAULT_MAX_FILES
    max_bytes: int | None = None

    def __post_init__(self) -> None:
        """Check the limits.

        Raises:
            ConfigurationError: a limit is not a positive whole number.
        """
        fix = "Pass a positive whole number."
        at_least(1, self.max_files, what="most files of a batch", fix=fix)
        at_least(
            1,
            whole_bytes(self.max_bytes, what="most bytes of a batch"),
            what="most bytes of a batch",
            fix=fix,
        )

    @classmethod
    def of(cls, max_files: int | None, max_bytes: int | None) -> BatchLimits:
        """The limits with delta-spark's default: DEFAULT_MAX_FILES if there is no limit at all."""
        if max_files is None and max_bytes is None:
            return cls()
        return cls(max_files=max_files, max_bytes=max_bytes)


DEFAULT_PIN_SECONDS: Final = 7 * 86_400.0
"""How long a named pin lasts without a renewal: as long as vacuum keeps removed files by default."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PinOptions:
    """The pin with which a stream keeps what it has not read.

    Attributes:
        name: the name of the pin, which stays when the stream ends until its time is over. None for a pin
            that ends with the stream.
        seconds: how long the pin lasts after the stream has renewed it for the last time.
    """

    name: str | None
    seconds: float = DEFAULT_PIN_SECONDS

    @classmethod
    def of(cls, name: str | None, seconds: float | None) -> PinOptions | None:
        """The options of a stream; None without a pin.

        Raises:
            ConfigurationError: the name or the time is not valid.
        """
        if name is not None:
            checked_name(name, "the pin of a stream")
        if seconds is not None:
            return cls(name=name, seconds=seconds)
        return None if name is None else cls(name=name)


UNLIMITED: Final = BatchLimits(max_files=None, max_bytes=None)
"""Everything that is available."""


class Admission:
    """Which files still go into a batch, as delta-spark's source admits them."""

    def __init__(self, limits: BatchLimits) -> None:
        """Start a batch."""
        self._files = limits.max_files
        self._bytes = limits.max_bytes
        self._has_commit = False

    @property
    def has_capacity(self) -> bool:
        """Whether another file fits."""
        return (self._files is None or self._files > 0) and (self._bytes is None or self._bytes > 0)

    def admit(self, size_bytes: int) -> bool:
        """Whether a file goes into the batch. It may be larger than the rest of the limit."""
        self._has_commit = True
        admitted = self.has_capacity
        self._take(1, size_bytes)
        return admitted

    def admit_together(self, files: int, size_bytes: int) -> bool:
        """Whether the files of one commit go into the batch. The first commit of a batch always does."""
        fits = (self._files is None or self._files >= files) and (
            self._bytes is None or self._bytes >= size_bytes
        )
        admitted = fits or not self._has_commit
        self._has_commit = True
        self._take(files, size_bytes)
        return admitted

    def _take(self, files: int, size_bytes: int) -> None:
        self._files = None if self._files is None else self._files - files
        self._bytes = None if self._bytes is None else self._bytes - size_bytes
