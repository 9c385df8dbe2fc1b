"""Whether a directory is this machine's own, or one that others change without this machine knowing at once.

A client of NFS or CIFS answers from what it has cached for some seconds: another machine's new file may not
be listed yet, and a name that was not there still seems not to be.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from pathlib import Path

_MOUNTS = "/proc/self/mountinfo"
# Anything may be behind FUSE, buckets among it, but not behind a container's own layers.
_SHARED = re.compile(r"nfs\d?|cifs|smb\d?|smbfs|afs|davfs|fuse(\.(?!fuse-overlayfs$).*)?")
_SOME_SHARED = re.compile(r" - (nfs|cifs|smb|afs|davfs|fuse)")
_ESCAPED = re.compile(r"\\([0-7]{3})")


def is_shared(path: str | os.PathLike[str]) -> bool:
    """Whether the file system of a path, which need not exist, is cached by this machine alone.

    False where the system does not tell, as elsewhere than on Linux. Reads one small file.
    """
    try:
        with open(_MOUNTS, encoding="utf-8", errors="surrogateescape") as file:
            mounts = file.read()
    except OSError:
        return False
    # Most machines have no such mount, and then no path needs to be compared with any.
    if not _SOME_SHARED.search(mounts):
        return False
    kind = filesystem_of(Path(os.path.realpath(path)), mounts.split("\n"))
    return kind is not None and _SHARED.fullmatch(kind) is not None


def filesystem_of(path: Path, mounts: Iterable[str]) -> str | None:
    """The kind of file system of a resolved path, from lines of Linux's `mountinfo` (proc(5))."""
    found: tuple[int, str | None] = (-1, None)
    for line in mounts:
        left, _, right = line.partition(" - ")
        words = left.split(" ")
        if len(words) < 5 or not right:
            continue
        point = Path(_ESCAPED.sub(lambda match: chr(int(match[1], 8)), words[4]))
        depth = len(point.parts)
        # Of two at one place the later one covers the other.
        if depth >= found[0] and path.is_relative_to(point):
            found = (depth, right.split(" ")[0])
    return found[1]
