"""Detection of directories on shares, which other machines change without this machine knowing at once.

A client of NFS or CIFS answers from its cache for some seconds: another machine's new file may not be listed
yet, and a name that was missing before may still seem to be missing.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from pathlib import Path

_MOUNTS = "/proc/self/mountinfo"
# FUSE may serve anything, such as buckets. Only the layers of containers are excluded.
_SHARED = re.compile(r"nfs\d?|cifs|smb\d?|smbfs|afs|davfs|fuse(\.(?!fuse-overlayfs$).*)?")
_SOME_SHARED = re.compile(r" - (nfs|cifs|smb|afs|davfs|fuse)")
_ESCAPED = re.compile(r"\\([0-7]{3})")


def is_shared(path: str | os.PathLike[str]) -> bool:
    """Whether the path is on a share, whose files this machine caches. The path need not exist.

    False when the system does not provide mount information, as outside of Linux. Reads one small file.
    """
    try:
        with open(_MOUNTS, encoding="utf-8", errors="surrogateescape") as file:
            mounts = file.read()
    except OSError:
        return False
    # Most machines have no such mount. Then no path needs to be compared with the mounts.
    if not _SOME_SHARED.search(mounts):
        return False
    kind = filesystem_of(Path(os.path.realpath(path)), mounts.split("\n"))
    return kind is not None and _SHARED.fullmatch(kind) is not None


def filesystem_of(path: Path, mounts: Iterable[str]) -> str | None:
    """The type of the file system of a resolved path, from lines of Linux's `mountinfo` (proc(5))."""
    deepest: tuple[int, str | None] = (-1, None)
    for line in mounts:
        left, _, right = line.partition(" - ")
        words = left.split(" ")
        if len(words) < 5 or not right:
            continue
        point = Path(_ESCAPED.sub(lambda match: chr(int(match[1], 8)), words[4]))
        depth = len(point.parts)
        # A later mount at the same point covers an earlier one.
        if depth >= deepest[0] and path.is_relative_to(point):
            deepest = (depth, right.split(" ")[0])
    return deepest[1]
