"""Keys that are twice in one object are found however the text is written."""

from __future__ import annotations

import json

import orjson
import pytest

from delta_core.actions.json_codec import duplicate_key


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ('{"add":{"path":"x","size":1}}', None),
        ('{"add":{"path":"x","size":1,"path":"y"}}', "path"),
        ('{ "add": {"path": "x", "path": "y"} }', "path"),
        ('{"add":{"size":1.0}}', None),
        ('{"add":{"size":1e0,"size":2}}', "size"),
        ('{"add":{"p\\u0061th":"x"}}', None),
        ('{"add":{"p\\u0061th":"x","path":"x"}}', "path"),
        ('{"a":[{"b":1},{"b":2}]}', None),
        ('{"a":[{"b":1,"b":1}]}', "b"),
        ('{"a":{"k\\\\":1,"k\\\\":1}}', "k\\"),
        ('{"a":"\\"b\\":\\"b\\":"}', None),
        ('{"a":{"v":12345678901234567890123}}', None),
    ],
)
def test_found_or_not(text: str, wanted: str | None) -> None:
    assert duplicate_key(text.encode(), json.loads(text)) == wanted
    assert duplicate_key(text.encode(), orjson.loads(text)) == wanted


def test_nesting_deeper_than_the_writer_goes_is_looked_through() -> None:
    for inner, wanted in (('{"b":1}', None), ('{"b":1,"b":2}', "b")):
        text = ('{"a":' * 400 + inner + "}" * 400).encode()
        assert duplicate_key(text, orjson.loads(text)) == wanted
