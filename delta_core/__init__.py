"""The Delta Lake transaction log in pure Python: tables, transactions and maintenance without a cluster.

The public names load on first use, so that `import delta_core` costs next to nothing.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from delta_core.on_demand import imported

if TYPE_CHECKING:
    from delta_core import errors
    from delta_core.actions.set_transaction import SetTransaction
    from delta_core.dml.definition.new_column import IdentityGenerator, define_column
    from delta_core.dml.group_commit import GroupCommit
    from delta_core.dml.write import write_deltalake
    from delta_core.errors import DeltaError
    from delta_core.maintenance.clone.clone import clone_table
    from delta_core.maintenance.convert.convert import convert_to_deltalake
    from delta_core.scan.scan import Scan
    from delta_core.schema.column_changes import After, First
    from delta_core.snapshot.snapshot import Snapshot
    from delta_core.table.delta_table import DeltaTable
    from delta_core.transaction.commit_properties import CommitProperties
    from delta_core.transaction.commit_result import AlreadyApplied, Committed
    from delta_core.transaction.transaction import Transaction

_EXPORTS = {
    "After": "delta_core.schema.column_changes",
    "AlreadyApplied": "delta_core.transaction.commit_result",
    "CommitProperties": "delta_core.transaction.commit_properties",
    "Committed": "delta_core.transaction.commit_result",
    "DeltaError": "delta_core.errors",
    "DeltaTable": "delta_core.table.delta_table",
    "First": "delta_core.schema.column_changes",
    "GroupCommit": "delta_core.dml.group_commit",
    "IdentityGenerator": "delta_core.dml.definition.new_column",
    "Scan": "delta_core.scan.scan",
    "SetTransaction": "delta_core.actions.set_transaction",
    "Snapshot": "delta_core.snapshot.snapshot",
    "Transaction": "delta_core.transaction.transaction",
    "clone_table": "delta_core.maintenance.clone.clone",
    "convert_to_deltalake": "delta_core.maintenance.convert.convert",
    "define_column": "delta_core.dml.definition.new_column",
    "write_deltalake": "delta_core.dml.write",
}

__all__ = [
    "After",
    "AlreadyApplied",
    "CommitProperties",
    "Committed",
    "DeltaError",
    "DeltaTable",
    "First",
    "GroupCommit",
    "IdentityGenerator",
    "Scan",
    "SetTransaction",
    "Snapshot",
    "Transaction",
    "clone_table",
    "convert_to_deltalake",
    "define_column",
    "errors",
    "write_deltalake",
]

if not TYPE_CHECKING:
    # A type checker that saw `__getattr__` would accept any name as a name of the package.

    def __getattr__(name: str) -> Any:
        """Load a public name from the module that defines it (PEP 562)."""
        if name == "errors":
            return importlib.import_module("delta_core.errors")
        module = _EXPORTS.get(name)
        if module is None:
            raise AttributeError(f"module 'delta_core' has no attribute {name!r}")
        value = getattr(imported(module), name)
        globals()[name] = value
        return value

    def __dir__() -> list[str]:
        """The public names, loaded or not, without the names that only this module uses."""
        return sorted(
            {*globals(), *__all__} - {"Any", "TYPE_CHECKING", "annotations", "importlib", "imported"}
        )
