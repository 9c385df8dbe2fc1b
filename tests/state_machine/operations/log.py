"""The log itself: checkpoints of either kind, log compactions, checksums, clean-up, and time that passes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hypothesis import strategies as st

from delta_core.checkpoint.log_compaction import compact_log
from delta_core.checkpoint.v2 import ManifestForm, supports_v2, write_v2_checkpoint
from delta_core.checkpoint.version_checksum import write_version_checksum
from delta_core.table_features.feature import WriterKind
from tests.state_machine.model import DAY_MS
from tests.state_machine.operations.registry import Draw, operation

if TYPE_CHECKING:
    from tests.state_machine.machine import TableMachine


def _retention_ms(machine: TableMachine) -> int:
    days = machine.state.properties.get("delta.logRetentionDuration", "interval 30 days").split()[1]
    return int(days) * DAY_MS


@operation
def checkpoint(machine: TableMachine, draw: Draw) -> None:
    """Of the kind that the table asks for."""
    if not machine.refuses(WriterKind.CHECKPOINT):
        machine.table.update_incremental()
        assert machine.table.create_checkpoint().version == machine.model.latest
    machine.settle(machine.state)


@operation(when=lambda machine: supports_v2(machine.newest.snapshot))
def v2_checkpoint(machine: TableMachine, draw: Draw) -> None:
    """With few files in each sidecar, and a manifest in either form."""
    form = draw(st.sampled_from(list(ManifestForm)))
    write_v2_checkpoint(machine.fresh().snapshot, form=form, sidecar_actions=2)
    machine.settle(machine.state)


@operation(when=lambda machine: machine.model.latest >= 2)
def compact_commits(machine: TableMachine, draw: Draw) -> None:
    """Some commits, the newest among them, as one file."""
    latest = machine.model.latest
    lowest = max(machine.model.promised().start + 1, latest - 5, 1)
    if lowest < latest:
        compact_log(machine.fresh().snapshot, first=draw(st.integers(lowest, latest - 1)), last=latest)
    machine.settle(machine.state)


@operation
def checksum(machine: TableMachine, draw: Draw) -> None:
    """The version's checksum."""
    write_version_checksum(machine.newest.snapshot)
    machine.settle(machine.state)


@operation
def clean_up(machine: TableMachine, draw: Draw) -> None:
    """The log before what is promised goes."""
    if machine.refuses(WriterKind.CLEANUP):
        return
    machine.table.update_incremental()
    machine.table.cleanup_metadata()
    machine.give_up(log_ms=_retention_ms(machine))
    machine.settle(machine.state)


@operation
def time_passes(machine: TableMachine, draw: Draw) -> None:
    """Enough for a vacuum, or for a clean-up, to find something.

    A checkpoint may clean up by itself from now on, so what is older than the shortest retention is not
    promised any more.
    """
    machine.pass_days(draw(st.sampled_from([0.5, 3, 8, 12, 40])))
    machine.give_up(log_ms=9 * DAY_MS)
