"""Selects the live files that a job may open: files in the table and files below allowed roots."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from delta_core.errors import PathEscapeError
from delta_core.storage.data_access import DataAccess
from delta_core.storage.log_store import LogStore

_ABSOLUTE = r"^([A-Za-z][A-Za-z0-9+.-]*:|/)"


def reachable(paths: pa.ChunkedArray, store: LogStore, access: DataAccess) -> npt.NDArray[np.bool_]:
    """For each path: True when its file is in the table or below an allowed root.

    Args:
        paths: as in the log.
        store: the table's store.
        access: the allowed roots.

    Cost: no request.
    """
    allowed: npt.NDArray[np.bool_] = np.ones(len(paths), dtype=np.bool_)
    absolute: Any = pc.match_substring_regex(paths, _ABSOLUTE)
    for index in np.flatnonzero(absolute.to_numpy()):
        try:
            access.locate(paths[int(index)].as_py(), store=store)
        except PathEscapeError:
            allowed[index] = False
    return allowed
