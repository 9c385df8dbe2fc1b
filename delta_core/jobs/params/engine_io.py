"""The parameter `engine_io` of jobs in which Spark reads or writes rows."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Any, Final


class EngineIO(StrEnum):
    """How Spark reads and writes data files. `auto` is native where Spark has the connector, else Arrow."""

    AUTO = "auto"
    NATIVE = "native"
    ARROW = "arrow"


ENGINE_IO_SCHEMA: Final[Mapping[str, Any]] = {
    "enum": [engine_io.value for engine_io in EngineIO],
    "description": "how Spark reaches the table: with a connector of its own, or through Arrow",
}
