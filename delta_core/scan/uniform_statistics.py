"""Statistics texts that one writer wrote: all of the same form, read by their quotes.

JSON readers spend their time on finding out what they read. A writer's texts hardly differ but in their
numbers: the same keys in the same order. Such texts, cut at every quote, are lines of equally many cells, of
which the odd ones are strings and the even ones what is between them; the cells of a few columns are then
all that is looked at. The first text, cut in the same way, tells which cells these are.

That the others have the same form is proved, not assumed:

- without a backslash anywhere, every quote begins or ends a string;
- every line has as many quotes as the first;
- the cells where the first text opens or closes an object do so in every line, and all lines together have
  no brace more. So each has its braces there and nowhere else, and every object is where the first has it;
- the keys that are wanted are in their cells, and a colon follows each.

What does not pass is read as JSON, text by text or all at once, by `statistics`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv

from delta_core.scan.cell_checks import all_equal, bytes_of

Fields = Mapping[str, pa.DataType]
Path = tuple[str, ...]

_JSON_NUMBER = r"^(-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?|null)$"


def read_uniform(
    joined: pa.Buffer,
    num_strings: int,
    first: str,
    wanted: Mapping[str, pa.DataType | Fields],
    *,
    may_lack: bool = False,
) -> pa.Table | None:
    """Some fields of many texts of one form.

    Args:
        joined: the texts, valid UTF-8, one to a line; each begins and ends as an object does, without a
            line break.
        num_strings: how many they are.
        first: the first of them.
        wanted: integers, floats, decimals and strings, by name; a mapping is an object's fields.
        may_lack: whether fields that no text has are left out; then every key is looked at.

    Returns:
        A row for each text and a column for each field, objects as structs. An object that no text has is
        left out. None when the texts are not of one form, lack a field, or a value is not of its type.
    """
    form = _form_of(first)
    if form is None or not form.has_all_signs(joined, num_strings):
        return None
    keys = _wanted_keys(form, wanted, may_lack=may_lack)
    if keys is None:
        return None
    try:
        cells = _Cells(joined, form, form.keys.values() if may_lack else [key for key, _ in keys.values()])
        if cells.num_rows != num_strings or not cells.have_the_form():
            return None
        values = {path: cells.values(key, data_type) for path, (key, data_type) in keys.items()}
    except pa.ArrowException:
        return None
    return _as_table(values, wanted)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Form:
    """What a text is made of, cut at its quotes.

    Attributes:
        cells: the pieces.
        keys: the cell of each key, by path; a field of an object has two names.
        objects: the names of the objects.
        constants: cells that open objects, the same in every text.
        endings: how cells end that only close objects.
    """

    cells: tuple[str, ...]
    keys: Mapping[Path, int]
    objects: frozenset[str]
    constants: Mapping[int, str]
    endings: Mapping[int, str]

    def has_all_signs(self, joined: pa.Buffer, num_strings: int) -> bool:
        """Whether so many texts of the form have as many braces as there are, and there is no backslash."""
        found = np.frombuffer(joined, np.uint8)
        for sign in "{}":
            wanted = sum(text.count(sign) for text in (*self.constants.values(), *self.endings.values()))
            if np.count_nonzero(found == ord(sign)) != wanted * num_strings:
                return False
        return not any((found == ord(sign)).any() for sign in "\\\r")


def _form_of(text: str) -> _Form | None:
    """None where the text has more than objects of single values in an object."""
    cells = text.split('"')
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


def _wanted_keys(
    form: _Form, wanted: Mapping[str, pa.DataType | Fields], *, may_lack: bool
) -> dict[Path, tuple[int, pa.DataType]] | None:
    """The cells of the keys, with the types of their values; None where the form lacks one."""
    paths: dict[Path, pa.DataType] = {}
    for name, one in wanted.items():
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
    """The cells of all texts that have to be looked at."""

    def __init__(self, joined: pa.Buffer, form: _Form, keys: Iterable[int]) -> None:
        self._form = form
        self._keys = tuple(keys)
        behind = {at + more for at in self._keys for more in (0, 1, 2)}
        # What opens an object follows its name.
        names = {at - 1 for at in form.constants if at}
        looked_at = sorted({*behind, *names, *form.constants, *form.endings} & {*range(len(form.cells))})
        columns = [str(at) for at in looked_at]
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
                # The texts are UTF-8, and a quote is no part of another character.
                check_utf8=False,
            ),
        )
        self.num_rows = self._table.num_rows

    def have_the_form(self) -> bool:
        """Whether the objects, and the keys that are looked for, are where the form has them."""
        form = self._form
        equal = {**form.constants, **{at - 1: form.cells[at - 1] for at in form.constants if at}}
        equal |= {key: form.cells[key] for key in self._keys}
        return all(all_equal(self._cell(at), text) for at, text in equal.items()) and all(
            bytes_of(self._cell(at)).end_with(text) for at, text in form.endings.items()
        )

    def values(self, key: int, data_type: pa.DataType) -> pa.Array:
        """What the key in a cell has. Raises ArrowInvalid where a text has something else."""
        behind, form = self._cell(key + 1), self._form.cells[key + 1]
        if (form == ":") != pa.types.is_string(data_type):
            raise pa.ArrowInvalid("a string is a number, or the other way round")
        if form == ":":
            _require(all_equal(behind, ":"))
            return self._cell(key + 2)
        ending = self._form.endings.get(key + 1, ",")
        cells = bytes_of(behind)
        _require(cells.begin_with(":") and cells.end_with(ending) and cells.are_at_least(2 + len(ending)))
        # As bytes, since both ends are ASCII: in texts the characters would be counted.
        texts = pc.binary_slice(behind.view(pa.binary()), 1, -len(ending)).view(pa.string())
        # Arrow's casts take more for a number than JSON does: 0x10, 007, inf.
        if pa.types.is_integer(data_type):
            # All that is too much begins with a zero, and goes on. -0 is left to the others.
            _require(not cells.have_leading_zeros(before=1, behind=len(ending)))
        else:
            _require(bool(pc.all(pc.match_substring_regex(texts, _JSON_NUMBER)).as_py()))
        try:
            return pc.cast(texts, data_type)
        except pa.ArrowInvalid:
            return pc.cast(
                pc.if_else(pc.equal(texts, "null"), pa.scalar(None, pa.string()), texts), data_type
            )

    def _cell(self, at: int) -> pa.Array:
        column = self._table.column(str(at))
        return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()


def _require(proved: bool) -> None:
    if not proved:
        raise pa.ArrowInvalid("not of one form")


def _as_table(values: Mapping[Path, pa.Array], wanted: Mapping[str, pa.DataType | Fields]) -> pa.Table:
    columns: dict[str, pa.Array] = {}
    for name in wanted:
        if (name,) in values:
            columns[name] = values[name,]
        elif fields := {path[1]: one for path, one in values.items() if path[0] == name}:
            columns[name] = pa.StructArray.from_arrays(list(fields.values()), list(fields))
    return pa.table(columns)
