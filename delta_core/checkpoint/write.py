"""Writing the kind of checkpoint that the table's policy specifies (PROTOCOL.md, "Checkpoints")."""

from __future__ import annotations

from delta_core.checkpoint.classic import CheckpointInfo
from delta_core.checkpoint.classic import write_checkpoint as write_classic_checkpoint
from delta_core.checkpoint.v2 import supports_v2, write_v2_checkpoint
from delta_core.snapshot.snapshot import Snapshot
from delta_core.table_features.table_properties import CHECKPOINT_POLICY

_V2_POLICY = "v2"


def write_checkpoint(snapshot: Snapshot) -> CheckpointInfo:
    """Write and verify a checkpoint of a snapshot's version, of the kind that the table's policy specifies.

    The checkpoint follows the V2 spec if `delta.checkpointPolicy` is `v2` and the protocol lists the feature.
    Otherwise it is classic. Contract, requests and errors are those of `write_v2_checkpoint` and of
    `classic.write_checkpoint`.
    """
    # Another writer may have set an unknown policy. The table then gets classic checkpoints.
    policy = snapshot.metadata.configuration.get(CHECKPOINT_POLICY.key, CHECKPOINT_POLICY.default)
    if policy.strip().lower() == _V2_POLICY and supports_v2(snapshot):
        return write_v2_checkpoint(snapshot)
    return write_classic_checkpoint(snapshot)
