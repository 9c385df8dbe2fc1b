"""Pointing the hint at a checkpoint that was just written (PROTOCOL.md, "Last Checkpoint File")."""

from __future__ import annotations

import warnings

from delta_core.errors import DeltaWarning, StorageError
from delta_core.log.last_checkpoint import LastCheckpoint, read_last_checkpoint, write_last_checkpoint
from delta_core.snapshot.snapshot import Snapshot


def point_hint_to(snapshot: Snapshot, checkpoint: LastCheckpoint) -> None:
    """Replace the hint, unless it names a later checkpoint of the table.

    One that cannot be written is a DeltaWarning: the hint is no part of the table. Two requests, and a
    listing where the hint names a later version.
    """
    try:
        earlier = read_last_checkpoint(snapshot.store)
        later = earlier is not None and earlier.version > checkpoint.version
        if later and earlier is not None and earlier.version <= snapshot.refresh().version:
            return
        write_last_checkpoint(snapshot.store, checkpoint)
    except StorageError as error:
        warnings.warn(
            f"The hint to the newest checkpoint was not written: {error}", DeltaWarning, stacklevel=3
        )
