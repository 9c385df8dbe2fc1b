"""Update of `_last_checkpoint` after a checkpoint was written (PROTOCOL.md, "Last Checkpoint File")."""

from __future__ import annotations

import warnings

from delta_core.errors import DeltaWarning, StorageError
from delta_core.log.last_checkpoint import LastCheckpoint, read_last_checkpoint, write_last_checkpoint
from delta_core.snapshot.snapshot import Snapshot


def point_hint_to(snapshot: Snapshot, checkpoint: LastCheckpoint) -> None:
    """Replace `_last_checkpoint`, unless it refers to a later checkpoint of the table.

    A failed write is only a DeltaWarning, since the file is a hint. Two requests, and one listing if the hint
    refers to a later version.
    """
    try:
        earlier = read_last_checkpoint(snapshot.store)
        later = earlier is not None and earlier.version > checkpoint.version
        if later and earlier is not None and earlier.version <= snapshot.refresh().version:
            return
        write_last_checkpoint(snapshot.store, checkpoint)
    except StorageError as error:
        warnings.warn(f"The hint _last_checkpoint was not written: {error}", DeltaWarning, stacklevel=3)
