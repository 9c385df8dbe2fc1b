"""Damage to deletion vectors that gets past their checksum: it is made right again afterwards."""

from __future__ import annotations

import json
import random
import zlib

from tests.support.fuzz.z85 import z85_decode, z85_encode

_WORDS = (0, 1, 0x303A, 0x303B, 0xFFFF, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF, 0xFFFF303B, 0x0000303B)


def mutate_deletion_vector_file(data: bytes, rng: random.Random) -> tuple[str, bytes]:
    """Change one vector of a file and its checksum; gives the change's name and the new bytes."""
    starts, at = [], 1
    while at + 8 <= len(data):
        starts.append(at)
        at += 8 + int.from_bytes(data[at : at + 4], "big")
    start = rng.choice(starts)
    size = int.from_bytes(data[start : start + 4], "big")
    name, changed = mutate_bitmap(data[start + 4 : start + 4 + size], rng)
    # A descriptor names the size, so most changes keep it.
    if len(changed) != size and rng.random() < 0.5:
        changed = changed[:size].ljust(size, b"\0")
    framed = len(changed).to_bytes(4, "big") + changed + zlib.crc32(changed).to_bytes(4, "big")
    return name, data[:start] + framed + data[start + 8 + size :]


def mutate_inline_deletion_vector(data: bytes, rng: random.Random) -> tuple[str, bytes] | None:
    """Change a vector that a line of the log holds; None when no line holds one."""
    lines = data.split(b"\n")
    for number, line in enumerate(lines):
        if b'"storageType":"i"' not in line:
            continue
        document = json.loads(line)
        dv = document["add"]["deletionVector"]
        name, changed = mutate_bitmap(z85_decode(dv["pathOrInlineDv"])[: dv["sizeInBytes"]], rng)
        dv["pathOrInlineDv"] = z85_encode(changed)
        if rng.random() < 0.8:
            dv["sizeInBytes"] = len(changed)
        if rng.random() < 0.3:
            dv["cardinality"] = rng.choice((0, 1, 2, 3, 2**31, 2**63 - 1))
        lines[number] = json.dumps(document, separators=(",", ":")).encode()
        return f"inline {name}", b"\n".join(lines)
    return None


def mutate_bitmap(data: bytes, rng: random.Random) -> tuple[str, bytes]:
    """Change the magic number, the counts, a cookie, a header or a container."""
    changed = bytearray(data)
    what = rng.choice(("magic", "buckets", "key", "cookie", "count", "header", "body", "cut", "grow"))
    word = rng.choice(_WORDS)
    if what == "magic":
        changed[0:4] = rng.choice((1681511376, 1681511378, word)).to_bytes(4, "little")
    elif what == "buckets":
        changed[4:12] = rng.choice((0, 2, 2**31, 2**63, 2**64 - 1)).to_bytes(8, "little")
    elif what == "key":
        changed[12:16] = word.to_bytes(4, "little")
    elif what == "cookie":
        changed[16:20] = word.to_bytes(4, "little")
    elif what == "count":
        changed[20:24] = rng.choice((0, 1, 2, 65_535, 65_536, 65_537, word)).to_bytes(4, "little")
    elif what == "header":
        at = rng.randrange(20, min(len(changed), 40))
        changed[at] = rng.choice((0, 1, 0x7F, 0xFF, rng.randrange(256)))
    elif what == "body":
        for _ in range(rng.choice((1, 4))):
            changed[rng.randrange(20, len(changed))] = rng.randrange(256)
    elif what == "cut":
        del changed[rng.randrange(len(changed)) :]
    else:
        changed += rng.randbytes(rng.randint(1, 16))
    return what, bytes(changed)
