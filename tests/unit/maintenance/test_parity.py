"""The parity of a file does not depend on the pieces it is written in, and no changed byte keeps it."""

from __future__ import annotations

import random

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from delta_core.maintenance.rewriting.parity import Parity, ParityOutput, parity_of, recorded_parity


def whole(data: bytes) -> str:
    """By the definition: the words of the file, the last one filled up with zeros."""
    padded = data + bytes(-len(data) % 8)
    found = 0
    for start in range(0, len(padded), 8):
        found ^= int.from_bytes(padded[start : start + 8], "little")
    return f"{found:016x}"


@given(st.lists(st.binary(max_size=40), max_size=12))
def test_pieces_make_no_difference(pieces: list[bytes]) -> None:
    parity = Parity()
    for piece in pieces:
        parity.update(piece)
    data = b"".join(pieces)
    assert (parity.hex(), parity.size_bytes) == (whole(data), len(data))
    assert parity_of(pa.BufferReader(data)) == whole(data)


def test_every_changed_byte_changes_it() -> None:
    data = random.Random(1).randbytes(333)
    for place in range(len(data)):
        changed = bytearray(data)
        changed[place] ^= 1 << place % 8
        assert whole(bytes(changed)) != whole(data)


def test_what_is_written_is_passed_on() -> None:
    sink = pa.BufferOutputStream()
    kept = ParityOutput(sink)
    with pa.PythonFile(kept, mode="w") as output:
        for piece in (b"abc", b"", b"0123456789", b"x" * 1000):
            output.write(piece)
        assert output.tell() == 1013
    data = sink.getvalue().to_pybytes()
    assert data == b"abc0123456789" + b"x" * 1000
    assert kept.parity.hex() == whole(data)


def test_a_file_without_the_tag_has_none() -> None:
    assert recorded_parity(None) is None
    assert recorded_parity({"ZCUBE_ID": "a"}) is None
    assert recorded_parity([("deltaward.parity64", "00")]) == "00"
