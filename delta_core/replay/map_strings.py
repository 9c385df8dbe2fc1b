"""Lookup of keys in columns with maps of strings, such as `partitionValues`.

Checkpoints are decoded with dictionaries for keys and items. A lookup with Arrow's kernel searches each row.
If all rows have the same n keys in the same order, as writers produce them, the items of one key are every
n-th of all items.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from delta_core.actions.arrow_schema import STRING_MAP
from delta_core.replay.column_types import MalformedColumn, is_string


@dataclass(frozen=True, slots=True)
class CodedStrings:
    """A dictionary-encoded column of strings.

    Attributes:
        codes: the positions of the values in `strings`; -1 for null.
        strings: distinct strings without nulls; some may not occur in the column.
    """

    codes: npt.NDArray[np.signedinteger]
    strings: pa.StringArray

    def take(self, rows: npt.NDArray[np.generic]) -> CodedStrings:
        """The rows that `rows` selects, by number or by mask."""
        return CodedStrings(self.codes[rows], self.strings)

    def to_array(self) -> pa.StringArray:
        """The column as a plain array of strings."""
        return self.strings.take(self.indices())

    def indices(self) -> pa.Int32Array:
        """The codes, with null instead of -1."""
        return pa.array(self.codes.astype(np.int32), pa.int32(), mask=self.codes < 0)


@dataclass(frozen=True, slots=True)
class CodedMap:
    """A map column whose rows all have the same keys in the same order. It takes a fifth of a map's memory.

    Attributes:
        keys: the keys, distinct.
        items: the items of each key.
    """

    keys: tuple[str, ...]
    items: tuple[CodedStrings, ...]

    def get(self, key: str) -> CodedStrings:
        """The items of a key. If no key has the exact spelling, case is ignored."""
        if key in self.keys:
            return self.items[self.keys.index(key)]
        matches = [place for place, name in enumerate(self.keys) if name.casefold() == key.casefold()]
        if len(matches) > 1:
            return _coded(_looked_up(plain_map(self.to_map()), key))
        return self.items[matches[0]] if matches else CodedStrings(self._nulls(), pa.array([], pa.string()))

    def to_map(self) -> pa.MapArray:
        """The column as a map with dictionary-encoded keys and items."""
        rows, width = len(self.items[0].codes), len(self.keys)
        sizes = [len(item.strings) for item in self.items]
        first = np.cumsum([0, *sizes[:-1]], dtype=np.int32)
        codes = np.stack([item.codes.astype(np.int32) for item in self.items], axis=1)
        codes = np.where(codes < 0, -1, codes + first).reshape(-1)
        items = pa.DictionaryArray.from_arrays(
            pa.array(codes, pa.int32(), mask=codes < 0),
            pa.concat_arrays([item.strings for item in self.items]),
        )
        keys = pa.DictionaryArray.from_arrays(
            pa.array(np.tile(np.arange(width, dtype=np.int32), rows)), pa.array(self.keys, pa.string())
        )
        return pa.MapArray.from_arrays(np.arange(rows + 1, dtype=np.int32) * width, keys, items)

    def _nulls(self) -> npt.NDArray[np.int16]:
        return np.full(len(self.items[0].codes), -1, np.int16)


def coded_map(values: pa.MapArray) -> CodedMap | None:
    """The compact form of a dictionary-encoded map; None when its rows have different keys."""
    if not len(values) or values.null_count or not pa.types.is_dictionary(values.type.item_type):
        return None
    rows = len(values)
    offsets = values.offsets.to_numpy()
    first, last = int(offsets[0]), int(offsets[-1])
    width, rest = divmod(last - first, rows)
    if rest or width == 0 or not (np.diff(offsets) == width).all():
        return None
    keys, items = (side.slice(first, last - first) for side in (values.keys, values.items))
    if not pa.types.is_dictionary(keys.type):
        keys = keys.dictionary_encode()
    key_codes = _codes(keys.indices).reshape(rows, width)
    if not (key_codes[:1] == key_codes).all():
        return None
    all_names, strings = (side.dictionary.cast(pa.string()) for side in (keys, items))
    names = tuple(all_names[int(code)].as_py() for code in key_codes[0])
    if len(set(names)) < width or None in names or strings.null_count:
        return None
    codes = _codes(items.indices).reshape(rows, width)
    small = np.int16 if len(strings) <= np.iinfo(np.int16).max else np.int32
    return CodedMap(
        names,
        tuple(CodedStrings(codes[:, place].astype(small, order="C"), strings) for place in range(width)),
    )


def coded_strings(values: pa.MapArray, key: str) -> CodedStrings:
    """The items of one key of a map column.

    Keys are column names: if no key has the exact spelling, case is ignored.
    """
    compact = coded_map(values)
    return _coded(_looked_up(plain_map(values), key)) if compact is None else compact.get(key)


def map_values(values: pa.MapArray, key: str) -> pa.StringArray:
    """The items of one key of a map column as a plain array; see `coded_strings`."""
    return coded_strings(values, key).to_array()


def plain_map(values: pa.MapArray) -> pa.MapArray:
    """A map with keys and items that may be dictionary-encoded, as `map<string, string>`.

    Raises:
        MalformedColumn: it is not a map of strings.
    """
    if values.type == STRING_MAP:
        return values
    require_map_of_strings(values.type)
    if len(values) == 0:
        return pa.array([], STRING_MAP)
    offsets = values.offsets
    first, last = offsets[0].as_py(), offsets[-1].as_py()
    # `keys` and `items` cover the whole buffer, also if the map is a slice.
    keys = _plain_strings(values.keys, first, last)
    items = _plain_strings(values.items, first, last)
    # Arrow does not allow a null bitmap together with sliced offsets.
    moved = offsets if first == 0 and offsets.offset == 0 else pc.subtract(offsets, offsets[0])
    if values.null_count == 0:
        return pa.MapArray.from_arrays(moved, keys, items, STRING_MAP)
    return pa.MapArray.from_arrays(moved, keys, items, STRING_MAP, mask=pc.is_null(values))


def require_map_of_strings(data_type: pa.DataType) -> None:
    """Raise MalformedColumn unless the type is a map of strings; both sides may be dictionary-encoded."""
    sides = (data_type.key_type, data_type.item_type) if pa.types.is_map(data_type) else (data_type,)
    for side in sides:
        if side is data_type or not is_string(side):
            raise MalformedColumn(f"expected a map of strings, found {data_type}")


def _plain_strings(values: pa.Array, first: int, last: int) -> pa.Array:
    cut = values if len(values) == last - first else values.slice(first, last - first)
    return cut if cut.type == pa.string() else cut.cast(pa.string())


def _looked_up(values: pa.MapArray, key: str) -> pa.StringArray:
    if len(values) == 0:
        return pa.array([], pa.string())
    spellings = [name for name in pc.unique(values.keys).to_pylist() if name.casefold() == key.casefold()]
    items = [
        pc.map_lookup(values, pa.scalar(name, pa.string()), "last")
        for name in sorted(spellings, key=lambda name: name != key) or [key]
    ]
    return items[0] if len(items) == 1 else pc.coalesce(*items)


def _coded(values: pa.StringArray) -> CodedStrings:
    encoded = values.dictionary_encode()
    codes = pc.fill_null(encoded.indices, -1).to_numpy(zero_copy_only=False)
    return CodedStrings(codes.astype(np.int32, copy=False), encoded.dictionary)


def _codes(indices: pa.Array) -> npt.NDArray[np.int32]:
    if indices.type != pa.int32():
        indices = indices.cast(pa.int32())
    if indices.null_count:
        indices = pc.fill_null(indices, -1)
    return np.asarray(indices.to_numpy(zero_copy_only=True))
