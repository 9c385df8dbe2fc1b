"""Operations that change a table's rows (append, overwrite, delete, update) and its definition."""

from __future__ import annotations

from typing import TYPE_CHECKING

from delta_core.on_demand import on_demand

if TYPE_CHECKING:
    from delta_core.dml.assignments import Updates as Updates
    from delta_core.dml.commit_files import resolve_predicate as resolve_predicate
    from delta_core.dml.definition.create import create_table as create_table
    from delta_core.dml.delete import DeleteResult as DeleteResult
    from delta_core.dml.delete import delete_rows as delete_rows
    from delta_core.dml.update import UpdateResult as UpdateResult
    from delta_core.dml.update import update_rows as update_rows
    from delta_core.dml.write import write_deltalake as write_deltalake
else:
    __getattr__, __dir__, __all__ = on_demand(
        __name__,
        {
            "DeleteResult": "delta_core.dml.delete",
            "UpdateResult": "delta_core.dml.update",
            "Updates": "delta_core.dml.assignments",
            "create_table": "delta_core.dml.definition.create",
            "delete_rows": "delta_core.dml.delete",
            "resolve_predicate": "delta_core.dml.commit_files",
            "update_rows": "delta_core.dml.update",
            "write_deltalake": "delta_core.dml.write",
        },
    )
