"""Damage that knows JSON: keys dropped, doubled and misspelled, types changed, numbers out of every range."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator
from typing import Any

NUMBERS = (
    0,
    -1,
    1,
    2**31 - 1,
    2**31,
    -(2**31) - 1,
    2**53 + 1,
    2**63 - 1,
    2**63,
    2**64,
    10**30,
    -(2**63),
    -(2**63) - 1,
    1.5,
    -0.0,
    1e308,
    5e-324,
)
STRINGS = (
    "",
    "\0",
    "..",
    "../x",
    "%2e%2e/x",
    "/etc/passwd",
    "file:///etc/passwd",
    "s3://b/x",
    "é\u202e",
    "x" * 5000,
    "null",
    "1e999",
    "{",
    "u",
    "i",
    "p",
    "\ud7ff",
    "NaN",
    "-0",
    " ",
    "a\nb",
)
_RAW = (
    b"1e999",
    b"-0",
    b"18446744073709551616",
    b"NaN",
    b"Infinity",
    b"1E+2",
    b"00",
    b"0x10",
    b"",
    b"{",
    b"[" * 600,
    b"[" * 100_000,
    b'{"a":' * 900 + b"1" + b"}" * 900,
    b"\xff",
    b'"\\ud800"',
    b'"\\u0000"',
    b"nul",
    b"9" * 5000,
)
_HERE = b'"@@here@@"'

Path = tuple[Any, ...]


def mutate_json(data: bytes, rng: random.Random) -> tuple[str, bytes]:
    """One change of a file of JSON lines; gives its name and the new bytes."""
    name = rng.choices(list(_MUTATORS), [weight for _, weight in _MUTATORS.values()])[0]
    return name, _MUTATORS[name][0](data, rng)


def _lines(data: bytes) -> list[bytes]:
    return [line for line in data.split(b"\n") if line] or [b"{}"]


def _joined(lines: list[bytes]) -> bytes:
    return b"".join(line + b"\n" for line in lines)


def _paths(value: Any, at: Path = ()) -> Iterator[Path]:
    yield at
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in items:
        yield from _paths(item, (*at, key))


def _replaced(value: Any, path: Path, make: Callable[[Any], Any]) -> Any:
    if not path:
        return make(value)
    copy = dict(value) if isinstance(value, dict) else list(value)
    copy[path[0]] = _replaced(value[path[0]], path[1:], make)
    return copy


def _dump(value: Any) -> bytes:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode("utf-8", "surrogatepass")


def _at_one_place(data: bytes, rng: random.Random, make: Callable[[Any], Any]) -> bytes:
    """Apply a change to one value of one line, sometimes inside of JSON that is a string in JSON."""
    lines = _lines(data)
    at = rng.randrange(len(lines))
    document = json.loads(lines[at])
    path = rng.choice([path for path in _paths(document) if path] or [()])

    def change(value: Any) -> Any:
        if isinstance(value, str) and value.startswith("{") and rng.random() < 0.7:
            inner = json.loads(value)
            return _dump(_replaced(inner, rng.choice(list(_paths(inner))), make)).decode("utf-8", "replace")
        return make(value)

    lines[at] = _dump(_replaced(document, path, change))
    return _joined(lines)


def _set_number(data: bytes, rng: random.Random) -> bytes:
    return _at_one_place(data, rng, lambda _: rng.choice(NUMBERS))


def _set_string(data: bytes, rng: random.Random) -> bytes:
    return _at_one_place(data, rng, lambda _: rng.choice(STRINGS))


def _set_type(data: bytes, rng: random.Random) -> bytes:
    return _at_one_place(
        data,
        rng,
        lambda value: rng.choice([None, True, False, [], {}, [value], {"a": value}, str(value), "1"]),
    )


def _set_raw(data: bytes, rng: random.Random) -> bytes:
    """Text that `json` would not write."""
    marked = _at_one_place(data, rng, lambda _: "@@here@@")
    return marked.replace(_HERE, rng.choice(_RAW))


def _step_number(data: bytes, rng: random.Random) -> bytes:
    def change(value: Any) -> Any:
        return value + rng.choice((-1, 1, 256)) if isinstance(value, int) else value

    return _at_one_place(data, rng, change)


def _keys(data: bytes, rng: random.Random, change: Callable[[dict[str, Any], str], dict[str, Any]]) -> bytes:
    """Apply a change to one key of one object of one line."""
    lines = _lines(data)
    at = rng.randrange(len(lines))
    document = json.loads(lines[at])
    objects = [path for path in _paths(document) if _has_keys(document, path)]
    if objects:
        document = _replaced(
            document, rng.choice(objects), lambda value: change(value, rng.choice(list(value)))
        )
    lines[at] = _dump(document)
    return _joined(lines)


def _has_keys(document: Any, path: Path) -> bool:
    for key in path:
        document = document[key]
    return isinstance(document, dict) and bool(document)


def _drop_key(data: bytes, rng: random.Random) -> bytes:
    return _keys(data, rng, lambda value, key: {name: item for name, item in value.items() if name != key})


def _rename_key(data: bytes, rng: random.Random) -> bytes:
    def change(value: dict[str, Any], key: str) -> dict[str, Any]:
        other = rng.choice([key.upper(), key + " ", "", key[::-1], "path", "add", "remove", "\0", "a" * 300])
        return {other if name == key else name: item for name, item in value.items()}

    return _keys(data, rng, change)


def _double_key(data: bytes, rng: random.Random) -> bytes:
    """The same key twice in one object, with equal or different values, spelled alike or with escapes."""
    marked = _keys(data, rng, lambda value, key: {"@@double@@" + key: value[key], **value})
    start = marked.find(b'"@@double@@')
    end = marked.index(b'"', start + 1)
    name = marked[start + len(b'"@@double@@') : end]
    spelled = name if rng.random() < 0.7 or not name else b"\\u%04x" % name[0] + name[1:]
    value = rng.choice((b"null", b"0", b'"x"', b"{}")) + b"," if rng.random() < 0.5 else b""
    extra = b'"' + spelled + b'"' + rng.choice((b":", b" :", b": ")) + value if value else b""
    if extra:
        return (
            marked[:start]
            + extra
            + marked[start:].replace(b'"@@double@@' + name + b'":', b'"' + name + b'":', 1)
        )
    return marked.replace(b'"@@double@@' + name, b'"' + spelled, 1)


def _escape_key(data: bytes, rng: random.Random) -> bytes:
    """A key or word spelled with escapes: the same JSON."""
    word = rng.choice(
        (b'"add"', b'"remove"', b'"metaData"', b'"protocol"', b'"path"', b'"size"', b'"commitInfo"')
    )
    return data.replace(word, b'"\\u%04x' % word[1] + word[2:])


def _double_line(data: bytes, rng: random.Random) -> bytes:
    lines = _lines(data)
    lines.insert(rng.randrange(len(lines) + 1), rng.choice(lines))
    return _joined(lines)


def _drop_line(data: bytes, rng: random.Random) -> bytes:
    lines = _lines(data)
    del lines[rng.randrange(len(lines))]
    return _joined(lines)


def _merge_lines(data: bytes, rng: random.Random) -> bytes:
    """Two actions in one line, as one object or as two."""
    lines = _lines(data)
    at = rng.randrange(len(lines))
    joint = rng.choice((b"", b" ", b","))
    lines[at : at + 2] = (
        [joint.join(lines[at : at + 2])]
        if rng.random() < 0.5
        else [b",".join(lines[at : at + 2]).replace(b"},{", b",")]
    )
    return _joined(lines)


def _white_space(data: bytes, rng: random.Random) -> bytes:
    """White space that JSON allows, and line ends of other systems."""
    old, new = rng.choice(
        ((b"\n", b"\r\n"), (b"\n", b"\n\n"), (b",", b", "), (b":", b" : "), (b"{", b"\t{"), (b"\n", b""))
    )
    return data.replace(old, new)


def _mark(data: bytes, rng: random.Random) -> bytes:
    return rng.choice((b"\xef\xbb\xbf", b"\xff\xfe", b"\0", b" ", b"[")) + data


_MUTATORS: dict[str, tuple[Callable[[bytes, random.Random], bytes], int]] = {
    "number": (_set_number, 3),
    "text": (_set_string, 3),
    "type": (_set_type, 3),
    "raw value": (_set_raw, 3),
    "step": (_step_number, 2),
    "drop key": (_drop_key, 2),
    "rename key": (_rename_key, 2),
    "double key": (_double_key, 2),
    "escape key": (_escape_key, 1),
    "double line": (_double_line, 1),
    "drop line": (_drop_line, 1),
    "merge lines": (_merge_lines, 1),
    "white space": (_white_space, 1),
    "mark": (_mark, 1),
}
