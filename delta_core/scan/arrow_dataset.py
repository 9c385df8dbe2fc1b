"""A version of a table as a dataset of Arrow, with the partition values and bounds of each file.

Arrow can read a data file by itself when the file's rows are the table's rows: without a deletion vector,
without column mapping, and below the table's root. Other files are read through `Scan`, into memory.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import reduce
from operator import and_

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.fs as pafs

from delta_core.expressions.ast import Expression
from delta_core.scan.partition_pruning import typed_partitions
from delta_core.scan.scan import Scan
from delta_core.scan.statistics import has_bounds, parse_statistics
from delta_core.schema.arrow import to_arrow
from delta_core.schema.column_mapping import UNMAPPED
from delta_core.schema.types import DataType
from delta_core.snapshot.snapshot import Snapshot
from delta_core.storage.arrow_filesystem import arrow_filesystem
from delta_core.storage.data_access import DataAccess
from delta_core.storage.log_store import LogStore

_COLUMNS = ["path", "size_bytes", "partition_values", "stats", "deletion_vector"]


def arrow_dataset(
    snapshot: Snapshot,
    *,
    predicate: Expression | str | None = None,
    schema: pa.Schema | None = None,
    filesystem: pafs.FileSystem | None = None,
    read_options: ds.ParquetReadOptions | None = None,
    allowed_roots: tuple[LogStore, ...] = (),
) -> ds.Dataset:
    """The version as a dataset. Arrow skips files by their partition values and bounds.

    Args:
        snapshot: the version.
        predicate: leave out files without matching rows; rows that do not match may remain.
        schema: the schema of the dataset; the table's when None.
        filesystem: opens the files, by paths relative to the table's root; the table's store when None.
        read_options: how Arrow reads the files.
        allowed_roots: see `Scan`.

    Cost: reads no data file, except those that Arrow cannot read by itself. Those are read into memory.

    Raises:
        UnsupportedTableFeatureError, ExpressionError, PathEscapeError: as `Scan`.
    """
    scan = Scan(snapshot, predicate=predicate, allowed_roots=allowed_roots)
    whole = to_arrow(snapshot.schema) if schema is None else schema
    files = scan.files(_COLUMNS)
    access = DataAccess(allowed_roots=allowed_roots, clock=snapshot.clock)
    places = [access.locate(path, store=snapshot.store) for path in files.column("path").to_pylist()]
    plain = pc.is_null(files.column("deletion_vector")).to_pylist()
    readable = all(plain) and all(place.store is snapshot.store for place in places)
    widened = any("delta.typeChanges" in field.metadata for field in snapshot.schema)
    if snapshot.column_mapping != UNMAPPED or widened or not readable:
        return ds.dataset(scan.to_table().cast(whole))
    sizes = dict(zip((place.path for place in places), files.column("size_bytes").to_pylist(), strict=True))
    opened = arrow_filesystem(snapshot.store, sizes) if filesystem is None else filesystem
    layout = ds.ParquetFileFormat(
        read_options=read_options,
        default_fragment_scan_options=ds.ParquetFragmentScanOptions(pre_buffer=True),
    )
    fragments = [
        layout.make_fragment(place.path, filesystem=opened, partition_expression=known)
        for place, known in zip(places, _known(snapshot, files, whole), strict=True)
    ]
    for name in layout.read_options.dictionary_columns or ():
        index = whole.get_field_index(name)
        if index >= 0:
            item = whole.field(index)
            whole = whole.set(index, item.with_type(pa.dictionary(pa.int32(), item.type)))
    return ds.FileSystemDataset(fragments, whole, layout, opened)


def _known(snapshot: Snapshot, files: pa.Table, whole: pa.Schema) -> Iterator[pc.Expression]:
    """The condition that all rows of each file satisfy, from partition values and statistics."""
    schema, names = snapshot.schema, snapshot.partition_columns
    partitions = typed_partitions(files, schema, names)
    bounded: dict[tuple[str, ...], DataType] = {
        (field.name,): field.data_type
        for field in schema
        if field.name not in names and has_bounds(field.data_type)
    }
    parsed = parse_statistics(files.column("stats"), bounded)
    records = parsed.num_records.to_pylist()
    columns = {path[0]: parsed.columns[path] for path in bounded}
    for row in range(files.num_rows):
        terms = []
        for name in names:
            value = partitions.column(name)[row]
            column = pc.field(name)
            terms.append(column == value if value.is_valid else column.is_null())
        for name, found in columns.items():
            nulls = _at(found.null_count, row)
            if nulls is not None and nulls.is_valid and records[row] and nulls.as_py() == records[row]:
                terms.append(pc.field(name).is_null())
                continue
            low, high = _at(found.minimum, row), _at(found.maximum, row)
            if low is None or high is None or not (low.is_valid and high.is_valid):
                continue
            column = pc.field(name)
            within = (column >= low) & (column <= high)
            is_full = nulls is not None and nulls.is_valid and nulls.as_py() == 0
            terms.append(within if is_full else within | column.is_null())
        yield reduce(and_, terms) if terms else pc.scalar(True)


def _at(values: pa.Array | pa.ChunkedArray | None, row: int) -> pa.Scalar | None:
    return None if values is None else values[row]
