"""What readers' pins keep from a vacuum."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field

from delta_core.actions import AddCdcFile
from delta_core.errors import DeltaError, MaintenanceError, VersionNotFoundError
from delta_core.maintenance.vacuum.file_keys import FileKeys
from delta_core.maintenance.vacuum.protected import NAMED_COLUMNS
from delta_core.snapshot.history import commit_actions
from delta_core.snapshot.pins import PinnedVersion, pins_in_force
from delta_core.snapshot.snapshot import Snapshot


@dataclass(frozen=True, slots=True, kw_only=True)
class PinnedFiles:
    """The files that one pin needs, those with the version's change data included, as keys of store paths."""

    pin: PinnedVersion
    keys: FileKeys


@dataclass(slots=True, kw_only=True)
class Pins:
    """The pins of a table, looked up as often as asked; what a version has is read once."""

    _keys: dict[tuple[int, str], FileKeys] = field(default_factory=dict)

    def in_force(self, latest: Snapshot, *, store_now_ms: int) -> tuple[PinnedFiles, ...]:
        """What must stay for pins, by version.

        Requests: one listing, one for each pin, a load and two more for each version.

        Args:
            latest: the newest version.
            store_now_ms: a time of the store that is not later than now.

        Raises:
            LeaseFileError: a pin cannot be read, so nothing may be deleted.
            MaintenanceError: a pinned version cannot be read, so nothing may be deleted.
        """
        found = pins_in_force(latest.store, store_now_ms=store_now_ms)
        return tuple(PinnedFiles(pin=pin, keys=self._of(pin, latest)) for pin in found)

    def _of(self, pin: PinnedVersion, latest: Snapshot) -> FileKeys:
        known = self._keys.get((pin.version, pin.table_id))
        if known is None:
            known = self._keys[pin.version, pin.table_id] = _keys(pin, latest)
        return known


def _keys(pin: PinnedVersion, latest: Snapshot) -> FileKeys:
    nothing = FileKeys(root_uri=latest.store.uri)
    try:
        pinned = Snapshot.load(latest.store, version=pin.version, clock=latest.clock)
        if pinned.metadata.id != pin.table_id:
            # A pin of the table that was here before.
            return nothing
        return _needed(pinned)
    except (DeltaError, ValueError) as error:
        if pin.table_id != latest.metadata.id:
            return nothing
        raise MaintenanceError(
            f"Nothing is deleted: what {pin.label} needs cannot be told.",
            cause=str(error),
            fix="Delete the pin's file when its reader has ended, then run again.",
        ) from error


def _needed(snapshot: Snapshot) -> FileKeys:
    keys = FileKeys(root_uri=snapshot.store.uri)
    for batch in snapshot.files.batches(NAMED_COLUMNS):
        keys.add_files(batch)
    # Without the commit nobody can read what changed in it.
    with suppress(VersionNotFoundError):
        actions = commit_actions(snapshot.store, snapshot.version)
        keys.add_paths([action.path for action in actions if isinstance(action, AddCdcFile)])
    return keys
