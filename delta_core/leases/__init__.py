"""Leases on a table, and pins that keep a version readable.

The names below are public. The modules of this package are internal.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from delta_core.on_demand import on_demand

if TYPE_CHECKING:
    from delta_core.leases.lease import acquire_lease as acquire_lease
    from delta_core.leases.pins import pin_version as pin_version
else:
    __getattr__, __dir__, __all__ = on_demand(
        __name__,
        {
            "acquire_lease": "delta_core.leases.lease",
            "pin_version": "delta_core.leases.pins",
        },
    )
