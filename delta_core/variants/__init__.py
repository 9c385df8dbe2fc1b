"""Parquet's Variant type: its binary encoding, and shredded variants in several columns.

The names below are public. The modules of this package are internal.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from delta_core.on_demand import on_demand

if TYPE_CHECKING:
    from delta_core.variants.python_values import variant_array as variant_array
else:
    __getattr__, __dir__, __all__ = on_demand(
        __name__,
        {
            "variant_array": "delta_core.variants.python_values",
        },
    )
