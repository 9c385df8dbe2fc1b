"""Table properties that a caller may set.

A name that nobody knows would do nothing, so it is refused, as delta-spark does. What a table has already
stays, whoever set it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from typing import Any

from delta_core.checkpoint.auxiliary_files import LOG_COMPACTION_INTERVAL, VERSION_CHECKSUM
from delta_core.errors import InvalidTablePropertyError
from delta_core.table_features.removal import TRUNCATION_RETENTION
from delta_core.table_features.table_properties import (
    ALL_PROPERTIES,
    TableProperty,
    parse_bool,
    parse_interval_ms,
)

_RESERVED = "delta."
_OPEN_ENDED = ("delta.constraints.",)
"""Names end in ones of the user's own; they have checks of theirs."""

OF_OTHER_WRITERS = frozenset(
    {
        "delta.autoOptimize",
        "delta.autoOptimize.autoCompact",
        "delta.autoOptimize.optimizeWrite",
        "delta.checkpointRetentionDuration",
        "delta.compatibility.symlinkFormatManifest.enabled",
        "delta.dropFeatureTruncateHistory.retentionDuration",
        "delta.enableChangeDataCapture",
        "delta.enableFullRetentionRollback",
        "delta.enableIcebergCompatV1",
        "delta.enableIcebergCompatV2",
        "delta.enableIcebergCompatV3",
        "delta.enableMaterializePartitionColumnsFeature",
        "delta.enableVariantShredding",
        "delta.sampleRetentionDuration",
        "delta.tuneFileSizesForRewrites",
    }
)
"""Properties that other engines act on, or parts of the library by themselves; stored as they are. Those that
need a table feature are refused by its name before."""

_STORED_FLAGS = (
    "delta.autoOptimize",
    "delta.autoOptimize.optimizeWrite",
    "delta.compatibility.symlinkFormatManifest.enabled",
    "delta.enableFullRetentionRollback",
    "delta.enableIcebergCompatV1",
    "delta.enableIcebergCompatV2",
    "delta.tuneFileSizesForRewrites",
)
_STORED_INTERVALS = (
    "delta.checkpointRetentionDuration",
    "delta.sampleRetentionDuration",
)
_PARSED_ELSEWHERE = "Other engines read it, some at each of their commits."
_STORED_VALUES: tuple[TableProperty[Any], ...] = (
    TRUNCATION_RETENTION,
    *(
        TableProperty(key=key, default=False, parse=parse_bool, help=_PARSED_ELSEWHERE)
        for key in _STORED_FLAGS
    ),
    *(
        TableProperty(key=key, default=0, parse=parse_interval_ms, help=_PARSED_ELSEWHERE)
        for key in _STORED_INTERVALS
    ),
)
"""Delta-spark sets none of these to another text, and parses some of them at every commit: with
`delta.enableIcebergCompatV2` set to `x` its next append fails."""

_SPELLINGS = {name.lower(): name for name in {*(item.key for item in ALL_PROPERTIES), *OF_OTHER_WRITERS}}


def refuse_unknown_properties(keys: Iterable[str]) -> None:
    """Refuse names below `delta.` that no engine knows, and those that are spelled otherwise.

    Raises:
        InvalidTablePropertyError: names them, and what may have been meant.
    """
    unknown = [
        key
        for key in sorted(keys)
        if key.lower().startswith(_RESERVED)
        and not key.lower().startswith(_OPEN_ENDED)
        and _SPELLINGS.get(key.lower()) != key
    ]
    if not unknown:
        return
    near = {_SPELLINGS[name] for key in unknown for name in get_close_matches(key.lower(), _SPELLINGS, n=1)}
    raise InvalidTablePropertyError(
        f"There is no table property {', '.join(unknown)}.",
        cause="Names that begin with delta. are the protocol's and its engines'; others would do nothing.",
        fix=(f"Did you mean {', '.join(sorted(near))}? " if near else "")
        + "A property of your own has a name without that beginning.",
    )


def require_own_values(properties: Mapping[str, str]) -> None:
    """Refuse values that properties cannot take which a table's own check passes over.

    Those of this library would do nothing after each commit, and those of other engines would stop them.

    Raises:
        InvalidTablePropertyError: names the property, and what may stand there.
    """
    VERSION_CHECKSUM.of(properties)
    LOG_COMPACTION_INTERVAL.of(properties)
    for known in _STORED_VALUES:
        known.of(properties)
