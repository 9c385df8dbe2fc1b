"""Delta's schemas: types, their JSON and Arrow forms, partition values, enforcement, evolution.

The names below are public. The modules of this package are internal.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from delta_core.on_demand import on_demand

if TYPE_CHECKING:
    from delta_core.schema.arrow import variant_field as variant_field
else:
    __getattr__, __dir__, __all__ = on_demand(
        __name__,
        {
            "variant_field": "delta_core.schema.arrow",
        },
    )
