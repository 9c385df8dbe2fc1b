"""Table properties that a caller may set.

An unknown name would have no effect, so it is refused, as in delta-spark. Properties that a table already has
are kept.
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
"""Prefixes of properties whose names the user chooses. Other code checks them."""

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
"""Properties that other engines or other parts of the library read. They are stored unchanged. A property
that needs an unsupported table feature was refused before."""

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
"""Properties whose values are checked although this library does not read them. Delta-spark refuses other
values, and parses some at every commit: with `delta.enableIcebergCompatV2` set to `x` its next append fails.
"""

_SPELLINGS = {name.lower(): name for name in {*(item.key for item in ALL_PROPERTIES), *OF_OTHER_WRITERS}}


def refuse_unknown_properties(keys: Iterable[str]) -> None:
    """Refuse names in `delta.` that no engine knows, and known names in a wrong case.

    Raises:
        InvalidTablePropertyError: a name is unknown. The error suggests similar names.
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
        f"The table property {', '.join(unknown)} does not exist."
        if len(unknown) == 1
        else f"The table properties {', '.join(unknown)} do not exist.",
        cause="Names that begin with delta. are reserved for the protocol and the engines. An unknown one "
        "would have no effect.",
        fix=(f"Use {', '.join(sorted(near))} if that was meant. " if near else "")
        + "For your own property choose a name that does not begin with delta.",
    )


def require_valid_values(properties: Mapping[str, str]) -> None:
    """Refuse invalid values of properties that `TableProperties.validate` does not check.

    Such values of this library's properties would have no effect after each commit. Such values of other
    engines' properties would make these engines fail.

    Raises:
        InvalidTablePropertyError: a value is invalid. The error names the property and the valid values.
    """
    VERSION_CHECKSUM.of(properties)
    LOG_COMPACTION_INTERVAL.of(properties)
    for known in _STORED_VALUES:
        known.of(properties)
