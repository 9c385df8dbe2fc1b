"""The constants of the deletion vector format (PROTOCOL.md, "Deletion Vector Format").

Reader and encoder share them. The constants of containers belong to the Roaring format, to which the protocol
refers for 32-bit bitmaps.
"""

from __future__ import annotations

from typing import Final

MAGIC: Final = 1681511377
"""The first four bytes of a serialised deletion vector, little-endian."""

FILE_VERSION: Final = 1
"""The first byte of a file of deletion vectors."""

FRAME_BYTES: Final = 8
"""The bytes around a deletion vector in a file: its size before and its checksum after, both big-endian."""

MAX_DELETION_VECTOR_BYTES: Final = 1 << 31
"""The limit of `sizeInBytes` and `offset`, which are signed 32-bit integers; both must be less."""

UUID_CHARACTERS: Final = 20
"""The length of an encoded UUID, which ends the name in a descriptor of the type `u`."""

NO_RUNS: Final = 12346
"""The cookie of a 32-bit bitmap without run containers."""

WITH_RUNS: Final = 12347
"""The low 16 bits of the cookie of a 32-bit bitmap that may have run containers."""

NO_OFFSETS_BELOW: Final = 4
"""A bitmap with run containers has a list of offsets only if it has at least this number of containers."""

BITSET_BYTES: Final = 8192
LARGEST_ARRAY: Final = 4096
"""The maximum number of values of an array container. For more values a bitset is smaller."""

VALUES_PER_CONTAINER: Final = 1 << 16
