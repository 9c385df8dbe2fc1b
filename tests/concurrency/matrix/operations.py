"""Every operation of the matrix. A new one is one more value here; the cells follow."""

from __future__ import annotations

from dataclasses import replace

from delta_core.transaction.isolation import IsolationLevel
from tests.concurrency.matrix.definitions import DEFINITIONS
from tests.concurrency.matrix.layouts import template
from tests.concurrency.matrix.maintenance import maintenance
from tests.concurrency.matrix.operation import Operation
from tests.concurrency.matrix.row_changes import ROW_CHANGES
from tests.concurrency.matrix.state import TableState
from tests.concurrency.matrix.writes import WRITES

LEVELS = (IsolationLevel.SERIALIZABLE, IsolationLevel.WRITE_SERIALIZABLE)


def _restored(state: TableState) -> TableState:
    """The state of the restored version; what is not restored is the isolation level's own template."""
    level = IsolationLevel(dict(state.properties)["delta.isolationLevel"])
    # `txn` entries stay, since a load that was undone is not to be applied again by its retry.
    return replace(template(level).restored, keys=state.keys)


OPERATIONS: dict[str, Operation] = {
    operation.name: operation for operation in (*WRITES, *ROW_CHANGES, *maintenance(_restored), *DEFINITIONS)
}
