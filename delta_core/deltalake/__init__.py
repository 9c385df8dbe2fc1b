"""The calls of the `deltalake` package on the core of Deltaward.

    from delta_core.deltalake import DeltaTable, write_deltalake

This package exists for compatibility only: the names, arguments and results are those of `deltalake`. The
names of `delta_core` are the documented ones. `DeltaTable.delta_table` is the handle of `delta_core`.

The public names load on first use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from delta_core.on_demand import on_demand
from delta_core.version import VERSION

__version__ = VERSION

if TYPE_CHECKING:
    from delta_core.deltalake.features import TableFeatures as TableFeatures
    from delta_core.deltalake.query import QueryBuilder as QueryBuilder
    from delta_core.deltalake.results import Metadata as Metadata
    from delta_core.deltalake.results import ProtocolVersions as ProtocolVersions
    from delta_core.deltalake.schema import DataType as DataType
    from delta_core.deltalake.schema import Field as Field
    from delta_core.deltalake.schema import Schema as Schema
    from delta_core.deltalake.schema import VariantType as VariantType
    from delta_core.deltalake.table import DeltaTable as DeltaTable
    from delta_core.deltalake.transaction import CommitProperties as CommitProperties
    from delta_core.deltalake.transaction import PostCommitHookProperties as PostCommitHookProperties
    from delta_core.deltalake.transaction import Transaction as Transaction
    from delta_core.deltalake.writer import convert_to_deltalake as convert_to_deltalake
    from delta_core.deltalake.writer import write_deltalake as write_deltalake
    from delta_core.deltalake.writer_properties import BloomFilterProperties as BloomFilterProperties
    from delta_core.deltalake.writer_properties import ColumnProperties as ColumnProperties
    from delta_core.deltalake.writer_properties import WriterProperties as WriterProperties
else:
    __getattr__, __dir__, __all__ = on_demand(
        __name__,
        {
            "BloomFilterProperties": "delta_core.deltalake.writer_properties",
            "ColumnProperties": "delta_core.deltalake.writer_properties",
            "CommitProperties": "delta_core.deltalake.transaction",
            "DataType": "delta_core.deltalake.schema",
            "DeltaTable": "delta_core.deltalake.table",
            "Field": "delta_core.deltalake.schema",
            "Metadata": "delta_core.deltalake.results",
            "PostCommitHookProperties": "delta_core.deltalake.transaction",
            "ProtocolVersions": "delta_core.deltalake.results",
            "QueryBuilder": "delta_core.deltalake.query",
            "Schema": "delta_core.deltalake.schema",
            "TableFeatures": "delta_core.deltalake.features",
            "Transaction": "delta_core.deltalake.transaction",
            "VariantType": "delta_core.deltalake.schema",
            "WriterProperties": "delta_core.deltalake.writer_properties",
            "convert_to_deltalake": "delta_core.deltalake.writer",
            "write_deltalake": "delta_core.deltalake.writer",
        },
    )
