"""`delta_core.deltalake` under the name `deltalake`, for the Python tests of delta-rs.

`delta_rs_suite.py` copies this module to `deltalake/__init__.py` of a temporary directory. It also gives the
tests what they take from private modules of the package: names, and the conversion of a schema for writing,
which no public call returns.
"""

import importlib
import sys
import types
from pathlib import Path

import arro3.core as arro3
import pyarrow as pa

import delta_core.deltalake as ours
from delta_core.deltalake import _util as util
from delta_core.deltalake import exceptions, fs, query, schema, table, transaction, writer
from delta_core.deltalake.schema import _SIGNED, _mapped

for _name in dir(ours):
    globals()[_name] = getattr(ours, _name)
__version__ = "1.6.6"
_NANOSECONDS = False


def rust_core_version():
    return "0.1.0"


def init_tracing(endpoint=None):
    raise RuntimeError("There is no tracing.")


def enable_nanosecond_timestamps():
    raise RuntimeError("There are no timestamps with nanoseconds.")


def _nanosecond_timestamps_enabled():
    return _NANOSECONDS


def _disable_nanosecond_timestamps():
    pass


def _module(name, **members):
    module = types.ModuleType(f"deltalake.{name}")
    vars(module).update(members)
    sys.modules[module.__name__] = module
    return module


for _found in (exceptions, fs, query, schema, table, transaction):
    _short = _found.__name__.rpartition(".")[2]
    sys.modules[f"deltalake.{_short}"] = globals()[_short] = _found
sys.modules["deltalake._util"] = util


def _stored_leaf(leaf):
    if pa.types.is_timestamp(leaf):
        return pa.timestamp("us", None if leaf.tz is None else "UTC")
    if pa.types.is_fixed_size_binary(leaf):
        return pa.binary()
    return _SIGNED.get(leaf, leaf)


def _convert_arro3_schema_to_delta(given, existing_schema=None):
    fields = []
    known = None if existing_schema is None else pa.schema(existing_schema)
    for field in pa.schema(given):
        data_type = field.type
        if known is not None and pa.types.is_null(data_type) and field.name in known.names:
            data_type = known.field(field.name).type
        stored = _mapped(data_type, _stored_leaf)
        if pa.types.is_fixed_size_list(data_type):
            stored = pa.list_(data_type.value_field.with_type(stored.value_type), data_type.list_size)
        fields.append(field.with_type(stored))
    return arro3.Schema.from_arrow(pa.schema(fields))


def try_get_table_and_table_uri(table_or_uri, storage_options=None):
    if not isinstance(table_or_uri, str | Path | ours.DeltaTable):
        raise ValueError("table_or_uri must be a str, Path or DeltaTable")
    if isinstance(table_or_uri, ours.DeltaTable):
        return table_or_uri, table_or_uri.table_uri
    try:
        return ours.DeltaTable(table_or_uri, storage_options=storage_options), str(table_or_uri)
    except exceptions.TableNotFoundError:
        return None, str(table_or_uri)


_writer = _module("writer", __path__=[], **{name: getattr(writer, name) for name in writer.__all__})
globals()["writer"] = _writer
_module("writer._conversion", _convert_arro3_schema_to_delta=_convert_arro3_schema_to_delta)
_module("writer._utils", try_get_table_and_table_uri=try_get_table_and_table_uri)
_internal = _module(
    "_internal",
    _NANOSECOND_TIMESTAMPS=False,
    **{
        name: getattr(module, name)
        for module in (exceptions, schema, transaction)
        for name in dir(module)
        if not name.startswith("_")
    },
)


class _Raw:
    """The little that the tests ask of the private table."""

    def __init__(self, shown):
        self._shown = shown

    def table_uri(self):
        return self._shown.table_uri

    def version(self):
        return self._shown.version()

    def get_add_file_sizes(self):
        rows = pa.table(self._shown.get_add_actions())
        return dict(zip(rows["path"].to_pylist(), rows["size_bytes"].to_pylist(), strict=True))


ours.DeltaTable._table = property(_Raw)
importlib.invalidate_caches()
