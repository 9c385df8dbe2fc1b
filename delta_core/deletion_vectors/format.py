"""The fixed numbers of deletion vectors (PROTOCOL.md, "Deletion Vector Format").

Reader and encoder share them. Those of the containers are of the Roaring format, to which the protocol
refers for 32-bit bitmaps.
"""

from __future__ import annotations

from typing import Final

MAGIC: Final = 1681511377
"""The first four bytes of a serialised vector, little-endian."""

FILE_VERSION: Final = 1
"""The first byte of a file of vectors."""

FRAME_BYTES: Final = 8
"""What a file has around each vector: its size before it, its checksum after it, both big-endian."""

MAX_DELETION_VECTOR_BYTES: Final = 1 << 31
"""`sizeInBytes` and `offset` are signed 32-bit integers: both stay below this."""

UUID_CHARACTERS: Final = 20
"""Length of an encoded UUID, the end of a `u` descriptor's name."""

NO_RUNS: Final = 12346
"""The cookie of a 32-bit bitmap none of whose containers is of runs."""

WITH_RUNS: Final = 12347
"""The cookie, in its low 16 bits, of one that may have such containers."""

NO_OFFSETS_BELOW: Final = 4
"""A bitmap with runs says where its containers begin when it has at least so many."""

BITSET_BYTES: Final = 8192
LARGEST_ARRAY: Final = 4096
"""More values than this are no array: a bitset is as small."""

VALUES_PER_CONTAINER: Final = 1 << 16
