"""The files that readers' pins protect from a vacuum."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field

from delta_core.actions import AddCdcFile, AddFile, RemoveFile
from delta_core.actions.json_codec import decode_commit
from delta_core.errors import DeltaError, MaintenanceError, VersionNotFoundError
from delta_core.leases.lease_files import Following
from delta_core.leases.pins import PinnedVersion, pins_in_force
from delta_core.log.commit_reader import read_commits
from delta_core.log.listing import list_log
from delta_core.maintenance.vacuum.deletion_vectors import deletion_vector_keys
from delta_core.maintenance.vacuum.file_keys import FileKeys
from delta_core.maintenance.vacuum.path_identity import protected_keys
from delta_core.maintenance.vacuum.protected import NAMED_COLUMNS
from delta_core.snapshot.history import commit_actions
from delta_core.snapshot.snapshot import Snapshot

PinIdentity = tuple[int, str, Following | None]
"""`PinnedVersion.identity`."""

_COMMITS_AT_ONCE = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class PinnedFiles:
    """The files that one pin needs, including the version's change data, as keys of store paths."""

    pin: PinnedVersion
    keys: FileKeys


@dataclass(slots=True, kw_only=True)
class Pins:
    """The pins of a table. Reads the pins at each call, and the files of each pinned version once."""

    _keys: dict[PinIdentity, FileKeys] = field(default_factory=dict)

    def in_force(self, latest: Snapshot, *, store_now_ms: int) -> tuple[PinnedFiles, ...]:
        """The files that the valid pins need, one entry per pin.

        Requests: one listing, one for each pin, and a snapshot load and two more for each new version. The
        pin of a stream: one for each commit after its version.

        Args:
            latest: the newest version.
            store_now_ms: a time by the store's clock, not later than now.

        Raises:
            LeaseFileError: a pin cannot be read, so nothing may be deleted.
            MaintenanceError: a pinned version cannot be read, so nothing may be deleted.
        """
        pins = pins_in_force(latest.store, store_now_ms=store_now_ms)
        return tuple(PinnedFiles(pin=pin, keys=self._of(pin, latest)) for pin in pins)

    def _of(self, pin: PinnedVersion, latest: Snapshot) -> FileKeys:
        keys = self._keys.get(pin.identity)
        if keys is None:
            keys = self._keys[pin.identity] = _keys(pin, latest)
        return keys


def _keys(pin: PinnedVersion, latest: Snapshot) -> FileKeys:
    no_keys = FileKeys(root_uri=latest.store.uri)
    try:
        if pin.following in (Following.COMMITS, Following.CHANGES):
            return _followed(pin, latest)
        pinned = Snapshot.load(latest.store, version=pin.version, clock=latest.clock)
        if pinned.metadata.id != pin.table_id:
            # The pin is of a former table at this path.
            return no_keys
        keys = _needed(pinned)
        if pin.following is not None:
            keys.add_all(_followed(pin, latest))
        return keys
    except (DeltaError, ValueError) as error:
        if pin.table_id != latest.metadata.id:
            return no_keys
        raise MaintenanceError(
            f"The files that {pin.label} needs cannot be determined. Nothing was deleted.",
            cause=str(error),
            fix="Delete the pin's file after its reader has ended. Then run the vacuum again.",
        ) from error


def _needed(snapshot: Snapshot) -> FileKeys:
    keys = FileKeys(root_uri=snapshot.store.uri)
    for batch in snapshot.files.batches(NAMED_COLUMNS):
        keys.add_files(batch)
    # Without the commit no reader can read the version's change data.
    with suppress(VersionNotFoundError):
        actions = commit_actions(snapshot.store, snapshot.version)
        keys.add_paths([action.path for action in actions if isinstance(action, AddCdcFile)])
    return keys


def _followed(pin: PinnedVersion, latest: Snapshot) -> FileKeys:
    """The files that a stream reads of the commits after the pinned version."""
    store, root_uri = latest.store, latest.store.uri
    keys = FileKeys(root_uri=root_uri)
    first = pin.version + 1
    files = [file for file in list_log(store, from_version=pin.version).commits if file.version >= first]
    if first <= latest.version and (not files or files[0].version != first):
        raise VersionNotFoundError(
            f"Version {first} of {root_uri!r} is not in the log.",
            cause="Its commit was cleaned up, although a stream has pinned it.",
            fix="Start the stream again.",
        )
    is_feed = pin.following is Following.CHANGES
    for start in range(0, len(files), _COMMITS_AT_ONCE):
        for commit in read_commits(store, files[start : start + _COMMITS_AT_ONCE]):
            for action in decode_commit(commit.data, path=commit.path):
                if isinstance(action, AddCdcFile):
                    keys.add_keys(protected_keys([action.path], root_uri=root_uri))
                elif isinstance(action, AddFile) or (is_feed and isinstance(action, RemoveFile)):
                    keys.add_keys(protected_keys([action.path], root_uri=root_uri))
                    keys.add_keys(deletion_vector_keys(action.deletion_vector, root_uri=root_uri))
    return keys
