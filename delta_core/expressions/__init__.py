"""One predicate tree: parsed from Spark SQL, then evaluated, used for data skipping, or rendered."""

from __future__ import annotations

from typing import TYPE_CHECKING

from delta_core.on_demand import on_demand

if TYPE_CHECKING:
    from delta_core.expressions.dnf import from_dnf as from_dnf
    from delta_core.expressions.parse import parse as parse
    from delta_core.expressions.parse import parse_predicate as parse_predicate
    from delta_core.expressions.parse import parse_value as parse_value
    from delta_core.expressions.stored_expressions import (
        parse_stored as parse_stored,
    )
    from delta_core.expressions.stored_expressions import (
        resolve_stored as resolve_stored,
    )
else:
    __getattr__, __dir__, __all__ = on_demand(
        __name__,
        {
            "from_dnf": "delta_core.expressions.dnf",
            "parse": "delta_core.expressions.parse",
            "parse_predicate": "delta_core.expressions.parse",
            "parse_stored": "delta_core.expressions.stored_expressions",
            "parse_value": "delta_core.expressions.parse",
            "resolve_stored": "delta_core.expressions.stored_expressions",
        },
    )
