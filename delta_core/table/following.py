"""`DeltaTable.follow`: the new rows or changes of a table, batch by batch, without a cluster."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from delta_core import follow as streams
from delta_core.arguments import Instant, name_list
from delta_core.boundary import public_class, typed_iterator
from delta_core.clock import Clock
from delta_core.errors import ConfigurationError, StreamPositionError
from delta_core.expressions.ast import Expression
from delta_core.snapshot.snapshot import Snapshot
from delta_core.storage.log_store import LogStore

if TYPE_CHECKING:
    from delta_core.follow import StreamBatch, StreamPosition


@public_class
class TableFollowing:
    """The streaming methods of a table. `DeltaTable` is the only class that inherits from it."""

    _snapshot: Snapshot
    _clock: Clock
    _allowed_roots: tuple[LogStore, ...]

    def follow(
        self,
        since: StreamPosition | str | None = None,
        *,
        position_file: str | os.PathLike[str] | None = None,
        wait: bool = False,
        poll_seconds: float = 1.0,
        columns: Sequence[str] | None = None,
        filters: Expression | str | None = None,
        starting_version: int | str | None = None,
        starting_timestamp: Instant | None = None,
        change_feed: bool = False,
        max_files: int | None = None,
        max_bytes: int | None = None,
        ignore_deletes: bool = False,
        ignore_changes: bool = False,
        skip_change_commits: bool = False,
        fail_on_data_loss: bool = True,
        pin: str | None = None,
        pin_seconds: float | None = None,
    ) -> Iterator[StreamBatch]:
        """Read the table's rows, and then the rows of each later commit, as a stream of batches.

        Each `StreamBatch` has `to_batches()` and `to_table()` for its rows, and `position`, from which the
        stream can continue. A batch counts as read when the next one is requested: only then is its position
        saved to `position_file`. So after a crash the last batch comes again (at least once). A consumer that
        stores `position` together with the rows reads each row exactly once, by passing it as `since`.

        Rows have the columns of the newest version at the start. Requests: one listing while there is nothing
        new, and one request for each new commit.

        Args:
            since: the position of an earlier batch, also as JSON. It takes precedence over the file.
            position_file: a local file for the position.
            wait: wait for further commits. Otherwise the stream ends with the versions that exist now.
            poll_seconds: the pause between two listings while there is nothing new.
            columns: the columns of the rows; None for all.
            filters: only rows for which this predicate is true. Files are not pruned by it.
            starting_version: a new stream starts with the changes of this commit, or with `latest`, the next
                one. By default it starts with the rows of the newest version.
            starting_timestamp: a new stream starts with the first commit at this time or later.
            change_feed: read the changes with the columns of `load_cdf`. The table must record them.
            max_files: the most files of a batch; 1000 if neither limit is given.
            max_bytes: a batch ends with the file that reaches this size.
            ignore_deletes: pass over commits that only remove files.
            ignore_changes: of commits that replace files, read the new files, with the rows that they copy.
            skip_change_commits: pass over commits that remove files.
            fail_on_data_loss: raise an error when log cleanup has deleted a commit; otherwise continue with
                the next one.
            pin: the name of a pin (docs/leases.md) that keeps everything readable that the stream has not
                read. It stays when the stream ends, for `pin_seconds` or seven days, and the next stream with
                this name takes it over.
            pin_seconds: how long the pin lasts after the last batch. Without a name the pin ends with the
                stream.

        Raises:
            TableChangedError: a commit removes or changes rows, and no option determines how to read that.
            StreamRestartRequiredError: the table has new columns; call `follow` again at the last position.
            StreamSchemaChangedError: a column was renamed or dropped, or has another type.
            StreamTableReplacedError, StreamPositionError: the position is not that of this table.
            StreamDataLossError: a commit is no longer in the log.
            LeaseLostError: another stream has taken over the pin, or its files were deleted.
            VersionNotFoundError: the starting version does not exist.
            ConfigurationError: an argument is not valid.
        """
        seconds = _seconds(poll_seconds, "poll_seconds")
        loop = streams.FollowLoop(
            since=_position(since),
            limits=streams.BatchLimits.of(max_files, max_bytes),
            position_file=None if position_file is None else streams.PositionFile(position_file),
            wait=wait,
            poll_seconds=seconds,
            pin=streams.PinOptions.of(
                pin, None if pin_seconds is None else _seconds(pin_seconds, "pin_seconds")
            ),
        )
        options = streams.FollowOptions(
            starting_version=starting_version,
            starting_timestamp=starting_timestamp,
            ignore_deletes=ignore_deletes,
            ignore_changes=ignore_changes,
            skip_change_commits=skip_change_commits,
            fail_on_data_loss=fail_on_data_loss,
            change_feed=change_feed,
        )
        planner = streams.BatchPlanner(
            self._snapshot.refresh(),
            options,
            columns=name_list(columns),
            predicate=filters,
            allowed_roots=self._allowed_roots,
        )
        return typed_iterator(
            streams.follow_batches(planner, loop, clock=self._clock), doing="following the table"
        )


def _position(since: StreamPosition | str | None) -> StreamPosition | None:
    if since is None or isinstance(since, streams.StreamPosition):
        return since
    if isinstance(since, str):
        return streams.StreamPosition.from_json(since)
    raise StreamPositionError(
        f"{since!r} is not the position of a stream.",
        fix="Pass the position of a batch, or its JSON form.",
    )


def _seconds(value: float, name: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < 1e9:
        raise ConfigurationError(
            f"{name} cannot be {value!r}.", cause="It is a time in seconds.", fix="Pass a number above 0."
        )
    return float(value)
