"""A fast parser for statistics strings of one writer, which all have the same form.

A JSON parser spends most of its time on recognizing the structure. The strings of one writer hardly differ
except in their numbers: they have the same keys in the same order. Split at every quote, such strings are
lines with the same number of cells. Odd cells are JSON strings, and even cells are the characters between
them. Only the cells of the needed columns are then read; the first string, split in the same way, shows which
cells these are.

That the other strings have the same form is proved, not assumed:

- without a backslash anywhere, every quote begins or ends a string;
- every line has as many quotes as the first;
- the cells where the first string opens or closes an object do so in every line, and all lines together have
  no other braces. So every line has its braces only there, and every object at the same place as the first;
- the needed keys are in their cells, and a colon follows each.

Strings that fail these checks are parsed as JSON by `statistics`, all at once or one by one. Fewer than 1,024
strings go straight to Arrow's JSON reader.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv

Fields = Mapping[str, pa.DataType]
Path = tuple[str, ...]

_JSON_NUMBER = r"^(-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?|null)$"


def read_uniform(
    joined: pa.Buffer,
    num_strings: int,
    first: str,
    fields: Mapping[str, pa.DataType | Fields],
    *,
    may_lack: bool = False,
) -> pa.Table | None:
    """Some fields of many strings of one form.

    Args:
        joined: the strings, valid UTF-8, one per line; each begins and ends like an object, and has no line
            break.
        num_strings: the number of strings.
        first: the first string.
        fields: integers, floats, decimals and strings, by name; a mapping has the fields of an object.
        may_lack: whether fields that no string has are left out; every key is then checked.

    Returns:
        A row for each string and a column for each field, with objects as structs. An object that no string
        has is left out. None when the strings do not have one form, lack a field, or have an invalid value.
    """
    form = _form_of(first)
    if form is None or not form.has_all_signs(joined, num_strings):
        return None
    keys = _needed_keys(form, fields, may_lack=may_lack)
    if keys is None:
        return None
    try:
        cells = _Cells(joined, form, form.keys.values() if may_lack else [key for key, _ in keys.values()])
        if cells.num_rows != num_strings or not cells.have_the_form():
            return None
        values = {path: cells.values(key, data_type) for path, (key, data_type) in keys.items()}
    except pa.ArrowException:
        return None
    return _as_table(values, fields)


@dataclass(frozen=True, slots=True, kw_only=True)
class StringBytes:
    """The bytes of a string column: string `i` is `data[begins[i]:ends[i]]`.

    Arrow's kernels return a mask with one answer per string. `read_uniform` only needs to know whether all
    strings agree; comparing buffers, or one byte per string, answers this several times faster.
    """

    data: npt.NDArray[np.uint8]
    begins: npt.NDArray[np.intp]
    ends: npt.NDArray[np.intp]

    def begin_with(self, prefix: str) -> bool:
        """Whether all strings begin with `prefix`, which is ASCII."""
        return self.are_at_least(len(prefix)) and all(
            bool((self.data[self.begins + at] == code).all())
            for at, code in enumerate(prefix.encode("ascii"))
        )

    def end_with(self, suffix: str) -> bool:
        """Whether all strings end with `suffix`, which is ASCII."""
        return self.are_at_least(len(suffix)) and all(
            bool((self.data[self.ends - at] == code).all())
            for at, code in enumerate(reversed(suffix.encode("ascii")), start=1)
        )

    def are_at_least(self, length: int) -> bool:
        """Whether all strings have at least this length, in bytes."""
        return bool((self.ends - self.begins >= length).all())

    def have_leading_zeros(self, *, before: int, after: int) -> bool:
        """Whether any number begins with a zero followed by another byte, or with a minus sign and a zero.

        Args:
            before: bytes of each string before its number.
            after: bytes after its number. The number has at least one byte in every string.
        """
        begins, lasts = self.begins + before, self.ends - (after + 1)
        first = self.data[begins]
        if bool((begins[first == ord("0")] < lasts[first == ord("0")]).any()):
            return True
        negative = (first == ord("-")) & (begins < lasts)
        return bool((self.data[begins[negative] + 1] == ord("0")).any())


def bytes_of(column: pa.Array) -> StringBytes:
    """The bytes of a string column that has no nulls and is not a slice of another column."""
    _, offsets, data = column.buffers()
    bounds = np.frombuffer(offsets, np.int32, len(column) + 1).astype(np.intp)
    content = np.frombuffer(data, np.uint8) if data is not None else np.zeros(0, np.uint8)
    return StringBytes(data=content, begins=bounds[:-1], ends=bounds[1:])


def all_equal(column: pa.Array, string: str) -> bool:
    """Whether every string of the column equals `string`. The column is as for `bytes_of`."""
    offsets, data = _repeated(string, len(column))
    _, column_offsets, column_data = column.buffers()
    if not column_offsets.slice(0, offsets.size).equals(offsets):
        return False
    # The buffer may be longer than the column's last string.
    return data.size == 0 or bool(column_data.slice(0, data.size).equals(data))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Form:
    """The form of a string, split at its quotes.

    Attributes:
        cells: the pieces.
        keys: the cell of each key, by path; a field of an object has a path of two names.
        objects: the names of the objects.
        constants: cells that open objects, the same in every string.
        endings: the endings of cells that only close objects.
    """

    cells: tuple[str, ...]
    keys: Mapping[Path, int]
    objects: frozenset[str]
    constants: Mapping[int, str]
    endings: Mapping[int, str]

    def has_all_signs(self, joined: pa.Buffer, num_strings: int) -> bool:
        """Whether the number of braces fits `num_strings` strings of the form, without any backslash."""
        content = np.frombuffer(joined, np.uint8)
        for sign in "{}":
            count = sum(cell.count(sign) for cell in (*self.constants.values(), *self.endings.values()))
            if np.count_nonzero(content == ord(sign)) != count * num_strings:
                return False
        return not any((content == ord(sign)).any() for sign in "\\\r")


def _form_of(string: str) -> _Form | None:
    """The form; None where the string has more than scalar values and objects of scalar values."""
    cells = string.split('"')
    keys: dict[Path, int] = {}
    constants: dict[int, str] = {}
    endings: dict[int, str] = {}
    inside: Path = ()
    for at in range(0, len(cells), 2):
        cell = cells[at]
        if "[" in cell or len(cells) % 2 == 0:
            return None
        if "{" in cell:
            constants[at] = cell
            if at and cell == ":{" and not inside:
                inside = (cells[at - 1],)
            elif at and not cell.startswith(":{}"):
                return None
        elif "}" in cell:
            endings[at] = cell[cell.index("}") :]
            inside = ()
        if at + 2 < len(cells) and cells[at + 2].startswith(":"):
            path = (*inside, cells[at + 1])
            if path in keys:
                return None
            keys[path] = at + 1
    objects = frozenset(cells[at - 1] for at in constants if at)
    return _Form(cells=tuple(cells), keys=keys, objects=objects, constants=constants, endings=endings)


def _needed_keys(
    form: _Form, fields: Mapping[str, pa.DataType | Fields], *, may_lack: bool
) -> dict[Path, tuple[int, pa.DataType]] | None:
    """The cells of the keys, with the types of their values; None where the form lacks a key."""
    paths: dict[Path, pa.DataType] = {}
    for name, one in fields.items():
        if isinstance(one, pa.DataType):
            paths[name,] = one
        elif (name,) in form.keys:
            paths |= {(name, field): data_type for field, data_type in one.items()}
    if may_lack:
        paths = {path: data_type for path, data_type in paths.items() if path in form.keys}
    if not all(path in form.keys and path[-1] not in form.objects for path in paths):
        return None
    return {path: (form.keys[path], data_type) for path, data_type in paths.items()}


class _Cells:
    """The cells of all strings that must be read."""

    def __init__(self, joined: pa.Buffer, form: _Form, keys: Iterable[int]) -> None:
        self._form = form
        self._keys = tuple(keys)
        key_cells = {at + more for at in self._keys for more in (0, 1, 2)}
        # The cell that opens an object follows the cell of its name.
        names = {at - 1 for at in form.constants if at}
        needed = sorted({*key_cells, *names, *form.constants, *form.endings} & {*range(len(form.cells))})
        columns = [str(at) for at in needed]
        self._table = csv.read_csv(
            pa.BufferReader(joined),
            read_options=csv.ReadOptions(
                column_names=[str(at) for at in range(len(form.cells))],
                block_size=joined.size + 1,
                use_threads=False,
            ),
            parse_options=csv.ParseOptions(
                delimiter='"',
                quote_char=False,
                escape_char=False,
                double_quote=False,
                ignore_empty_lines=False,
            ),
            convert_options=csv.ConvertOptions(
                include_columns=columns,
                column_types=dict.fromkeys(columns, pa.string()),
                strings_can_be_null=False,
                # The strings are UTF-8, where the byte of a quote is never a part of another character.
                check_utf8=False,
            ),
        )
        self.num_rows = self._table.num_rows

    def have_the_form(self) -> bool:
        """Whether the objects and the needed keys are in the cells where the form has them."""
        form = self._form
        equal = {**form.constants, **{at - 1: form.cells[at - 1] for at in form.constants if at}}
        equal |= {key: form.cells[key] for key in self._keys}
        return all(all_equal(self._cell(at), cell) for at, cell in equal.items()) and all(
            bytes_of(self._cell(at)).end_with(ending) for at, ending in form.endings.items()
        )

    def values(self, key: int, data_type: pa.DataType) -> pa.Array:
        """The values of the key in a cell. Raises ArrowInvalid where a string lacks the form."""
        following, form = self._cell(key + 1), self._form.cells[key + 1]
        if (form == ":") != pa.types.is_string(data_type):
            raise pa.ArrowInvalid("a value is a string where a number is expected, or vice versa")
        if form == ":":
            _require(all_equal(following, ":"))
            return self._cell(key + 2)
        ending = self._form.endings.get(key + 1, ",")
        cells = bytes_of(following)
        _require(cells.begin_with(":") and cells.end_with(ending) and cells.are_at_least(2 + len(ending)))
        # Sliced as bytes, since both ends are ASCII; slicing strings would count characters.
        numbers = pc.binary_slice(following.view(pa.binary()), 1, -len(ending)).view(pa.string())
        # Arrow's casts accept more numbers than JSON does: 0x10, 007, inf.
        if pa.types.is_integer(data_type):
            # All invalid integers begin with a zero followed by more. -0 is left to the JSON parser.
            _require(not cells.have_leading_zeros(before=1, after=len(ending)))
        else:
            _require(bool(pc.all(pc.match_substring_regex(numbers, _JSON_NUMBER)).as_py()))
        try:
            return pc.cast(numbers, data_type)
        except pa.ArrowInvalid:
            return pc.cast(
                pc.if_else(pc.equal(numbers, "null"), pa.scalar(None, pa.string()), numbers), data_type
            )

    def _cell(self, at: int) -> pa.Array:
        column = self._table.column(str(at))
        return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()


def _require(proved: bool) -> None:
    if not proved:
        raise pa.ArrowInvalid("the strings do not have one form")


def _as_table(values: Mapping[Path, pa.Array], fields: Mapping[str, pa.DataType | Fields]) -> pa.Table:
    columns: dict[str, pa.Array] = {}
    for name in fields:
        if (name,) in values:
            columns[name] = values[name,]
        elif members := {path[1]: one for path, one in values.items() if path[0] == name}:
            columns[name] = pa.StructArray.from_arrays(list(members.values()), list(members))
    return pa.table(columns)


@lru_cache(maxsize=64)
def _repeated(string: str, num_strings: int) -> tuple[pa.Buffer, pa.Buffer]:
    whole = string.encode()
    offsets = np.arange(num_strings + 1, dtype=np.int32) * np.int32(len(whole))
    return pa.py_buffer(offsets), pa.py_buffer(whole * num_strings)
