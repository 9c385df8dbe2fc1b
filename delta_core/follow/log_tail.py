"""The commits from a version on, as a stream needs them: in order, and none left out unnoticed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from delta_core.errors import (
    ObjectNotFoundError,
    StreamDataLossError,
    StreamTableReplacedError,
    TableNotFoundError,
)
from delta_core.log.commit_reader import CommitData, read_commits
from delta_core.log.listing import CommitFile, commit_file, list_log
from delta_core.snapshot.snapshot import Snapshot

_CHUNK = 8
"""Commits that are read side by side on a remote store."""


class LogTail:
    """Reads the new commits of a table again and again."""

    def __init__(self, snapshot: Snapshot, *, fail_on_data_loss: bool) -> None:
        """Create it for a table.

        Args:
            snapshot: a version of the table, to notice when another table is at its location.
            fail_on_data_loss: raise an error for a missing commit. Otherwise it is passed over.
        """
        self._store = snapshot.store
        self._table_id = snapshot.metadata.id
        self._fails = fail_on_data_loss
        commit = snapshot.segment.version_file
        self._read = None if commit is None else CommitFile(version=snapshot.version, info=commit)

    def newest_version(self, first: int) -> int:
        """The newest version of the log, or the one before `first` if it has none from there on. One listing.

        Raises:
            DeltaError: see `commits`.
        """
        files = self._listed(first)
        return files[-1].version if files else first - 1

    def commits(self, first: int, *, before: int | None = None) -> Iterator[tuple[CommitFile, CommitData]]:
        """The commits from `first` on, in order.

        Requests: one listing, and one for each commit. Commits are read only as far as the caller iterates.

        Args:
            first: the first version.
            before: the version to stop at; None is the end of the log.

        Raises:
            StreamDataLossError: a commit is no longer in the log, and that is to be an error.
            StreamTableReplacedError: another table is at the location.
            TableNotFoundError: there is no table any more.
            CorruptLogError: a commit is damaged.
        """
        files = [file for file in self._listed(first) if before is None or file.version < before]
        if before is not None and first < before and not files:
            self._lost(first)
        expected, ready = first, list[CommitFile]()
        for file in files:
            while expected < file.version:
                found = commit_file(self._store, expected)
                if found is None:
                    yield from self._contents(ready)
                    ready = []
                    self._lost(expected)
                    expected = file.version
                    break
                ready.append(found)
                expected += 1
            ready.append(file)
            expected = file.version + 1
            if len(ready) >= _CHUNK:
                yield from self._contents(ready)
                ready = []
        yield from self._contents(ready)

    def _contents(self, files: Sequence[CommitFile]) -> Iterator[tuple[CommitFile, CommitData]]:
        if not files:
            return
        try:
            contents = read_commits(self._store, files)
        except ObjectNotFoundError:
            # Log cleanup has deleted a commit since the listing.
            for file in files:
                try:
                    contents = read_commits(self._store, [file])
                except ObjectNotFoundError:
                    self._lost(file.version)
                    continue
                self._read = file
                yield file, contents[0]
            return
        for file, content in zip(files, contents, strict=True):
            self._read = file
            yield file, content

    def _listed(self, first: int) -> Sequence[CommitFile]:
        """The commits from a version on. The commit before it shows whether the table is still the same."""
        listing = list_log(self._store, from_version=max(0, first - 1))
        if listing.is_empty:
            if not Snapshot.exists(self._store):
                raise TableNotFoundError(
                    f"Found no Delta table at {self._store.uri!r}.",
                    cause="It was deleted while a stream read it.",
                    fix="Stop the stream.",
                )
            raise StreamTableReplacedError(
                f"The table {self._store.uri!r} was replaced while a stream read it.",
                cause=f"The stream has read version {first - 1}, which the log does not have.",
                fix="Start a new stream, with another position or checkpoint.",
            )
        read = self._read
        if read is not None:
            same = next((file for file in listing.commits if file.version == read.version), None)
            if same is not None and same.info != read.info:
                self._require_same_table()
                self._read = same
        return [file for file in listing.commits if file.version >= first]

    def _require_same_table(self) -> None:
        found = Snapshot.load(self._store).metadata.id
        if found != self._table_id:
            raise StreamTableReplacedError(
                f"The table {self._store.uri!r} was replaced while a stream read it.",
                cause=f"Its id is {found}, and the stream has read the table {self._table_id}.",
                fix="Start a new stream, with another position or checkpoint.",
            )

    def _lost(self, version: int) -> None:
        if self._fails:
            raise StreamDataLossError(
                f"A stream cannot read version {version} of {self._store.uri!r}.",
                cause="Its commit is no longer in the log, because log cleanup deleted it.",
                fix="Start a new stream with the rows of the newest version. To continue without the missing "
                "changes, set failOnDataLoss (fail_on_data_loss) to false.",
            )
