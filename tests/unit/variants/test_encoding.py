"""Bytes of variants that lie about their lengths, offsets and names."""

from __future__ import annotations

import random

import pytest

from delta_core.variants.encoding import (
    Dictionary,
    MalformedVariant,
    encode_array,
    encode_decimal,
    encode_integer,
    encode_object,
    encode_sized,
    encode_string,
    object_fields,
)

NAMES = [b"a", b"b", b"zebra", "ü".encode()]
METADATA = b"\x01\x04\x00\x01\x02\x07\x09" + b"".join(NAMES)
DICTIONARY = Dictionary.parse(METADATA)
FIELDS = {
    b"a": encode_integer(-70_000),
    b"b": encode_object({b"a": b"\x00", b"zebra": encode_string(b"x" * 100)}, DICTIONARY),
    b"zebra": encode_array([encode_decimal(-125, 2), b"\x04", encode_string(b"s")] * 100),
    "ü".encode(): encode_sized(15, b"\xff"),
}
VALUE = encode_object(FIELDS, DICTIONARY)


def test_an_object_gives_back_its_fields() -> None:
    assert list(DICTIONARY.names) == NAMES
    assert object_fields(VALUE, DICTIONARY) == FIELDS
    assert object_fields(encode_object({}, DICTIONARY), DICTIONARY) == {}


@pytest.mark.parametrize("type_id", [1, 2, *range(3, 15), 17, 18, 19, 20])
def test_every_primitive_type_has_its_size(type_id: int) -> None:
    sizes = {3: 1, 4: 2, 5: 4, 6: 8, 7: 8, 8: 5, 9: 9, 10: 17, 11: 4, 12: 8, 13: 8, 14: 4}
    sizes |= {1: 0, 2: 0, 17: 8, 18: 8, 19: 8, 20: 16}
    value = bytes([type_id << 2]) + bytes(sizes[type_id])
    assert object_fields(encode_object({b"a": value}, DICTIONARY), DICTIONARY) == {b"a": value}
    cut = b"\x02\x01\x00\x00" + bytes([sizes[type_id]]) + value
    with pytest.raises(MalformedVariant, match=r"extends beyond the end|extends beyond"):
        object_fields(cut[:-1] if sizes[type_id] else cut, DICTIONARY)


def test_a_name_may_be_in_the_dictionary_twice() -> None:
    twice = Dictionary.parse(b"\x01\x02\x00\x01\x02aa")
    assert object_fields(encode_object({b"a": b"\x00"}, twice), twice) == {b"a": b"\x00"}
    with pytest.raises(MalformedVariant, match="'a' twice"):
        object_fields(b"\x02\x02\x00\x01\x00\x01\x02\x00\x00", twice)


@pytest.mark.parametrize(
    ("metadata", "cause"),
    [
        (b"", "begins with nothing"),
        (b"\x02\x00\x00", "begins with 02"),
        (b"\x01", "ends too early"),
        (b"\x01\x01\x00", "ends too early"),
        (b"\xc1\xff\xff\xff\xff\x00", "ends too early"),
        (b"\x01\x01\x01\x01a", "are longer than the metadata"),
        (b"\x01\x01\x00\x05a", "are longer than the metadata"),
        (b"\x01\x02\x00\x02\x01ab", "ends before it begins"),
    ],
)
def test_damaged_dictionaries(metadata: bytes, cause: str) -> None:
    with pytest.raises(MalformedVariant, match=cause):
        Dictionary.parse(metadata)


@pytest.mark.parametrize(
    ("value", "cause"),
    [
        (b"", "is not an object"),
        (b"\x0c\x01", "is not an object"),
        (b"\x02", "ends too early"),
        (b"\x42\xff\xff\xff\xff\x00\x00", "ends too early"),
        (b"\x02\x01\x04\x00\x01\x00", "no field 4"),
        (b"\x02\x01\x00\x05\x06\x00", "begins beyond the end"),
        (b"\x02\x01\x00\x00\x01\x40\xff\xff\xff\xff", "extends beyond the end"),
        (b"\x02\x01\x00\x00\x01\xfc", "primitive type 63 does not exist"),
        (b"\x02\x01\x00\x00\x01\x40\x01", "ends too early"),
        (b"\x02\x01\x00\x00\x01\x13", "ends too early"),
        (b"\x02\x01\x00\x00\x01\x0c\x01", "extends beyond the object"),
    ],
)
def test_damaged_objects(value: bytes, cause: str) -> None:
    with pytest.raises(MalformedVariant, match=cause):
        object_fields(value, DICTIONARY)


def test_random_damage_is_an_error_or_an_answer(seed: str) -> None:
    rng = random.Random(seed)
    refused = 0
    for _ in range(3000):
        value, metadata = bytearray(VALUE), bytearray(METADATA)
        for target in (value, metadata):
            for _ in range(rng.randint(0, 3)):
                target[rng.randrange(min(len(target), 40))] = rng.randrange(256)
        try:
            fields = object_fields(
                bytes(value[: rng.choice([len(value), rng.randrange(len(value))])]),
                Dictionary.parse(bytes(metadata)),
            )
        except MalformedVariant:
            refused += 1
        else:
            assert sum(map(len, fields.values())) <= len(value) * len(fields)
    assert refused > 500
