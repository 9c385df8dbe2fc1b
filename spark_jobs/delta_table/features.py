"""Changes of a table's protocol, with delta-spark's errors."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from delta_core.errors import ConfigurationError
from delta_core.table_features.enablement import MIN_READER_VERSION, MIN_WRITER_VERSION
from delta_core.table_features.feature import FEATURES
from delta_core.table_features.removal_rules import RULES
from delta_core.table_features.upgrade import supported_features
from spark_jobs.delta_table.arguments import needs
from spark_jobs.spark_errors import (
    ArgumentValueError,
    FeatureNotPresentError,
    HistoryTruncationError,
    NonRemovableFeatureError,
    UnknownFeatureDropError,
    UnknownFeatureError,
)

if TYPE_CHECKING:
    from spark_jobs.delta_table.handle import Handle


def upgrade_protocol(handle: Handle, reader_version: Any, writer_version: Any) -> None:
    """Raise the table's protocol. Raises as `DeltaTable.upgradeTableProtocol`."""
    for name, value in (("readerVersion", reader_version), ("writerVersion", writer_version)):
        if isinstance(value, bool) or not isinstance(value, int):
            raise ArgumentValueError(
                f"The {name} needs to be an integer but got '{type(value)}'.", fix="Pass an int."
            )
    core = handle.core()
    protocol = core.protocol()
    if reader_version <= protocol.min_reader_version and writer_version <= protocol.min_writer_version:
        return
    core.alter.set_properties(
        {MIN_READER_VERSION: str(reader_version), MIN_WRITER_VERSION: str(writer_version)}
    )
    handle.record(core)


def add_feature(handle: Handle, name: Any) -> None:
    """Add a feature. Raises as `DeltaTable.addFeatureSupport`."""
    needs(name, str, name="featureName")
    if not _is_known(name):
        raise UnknownFeatureError(
            f"The table feature {name!r} is not known.", fix="Pass the name of a feature of the protocol."
        )
    core = handle.core()
    core.alter.add_feature(name)
    handle.record(core)


def drop_feature(handle: Handle, name: Any, truncate_history: Any) -> None:
    """Drop a feature. Raises as `DeltaTable.dropFeatureSupport`."""
    needs(name, str, name="featureName")
    if truncate_history is not None:
        needs(truncate_history, bool, name="truncateHistory")
    core = handle.core()
    supported = {one.lower() for one in supported_features(core.protocol())}
    if not _is_known(name) and name.lower() not in supported:
        raise UnknownFeatureDropError(
            f"Cannot drop {name} because it is not supported by this version.",
            fix="Check the name of the feature.",
        )
    if name.lower() not in supported:
        raise FeatureNotPresentError(
            f"Cannot drop {name} from this table because it is not currently present in the table's "
            "protocol.",
            cause=f"The table supports {', '.join(sorted(supported)) or 'no features'}.",
            fix="Name a feature that the table supports.",
        )
    if name.lower() not in {one.lower() for one in RULES}:
        raise NonRemovableFeatureError(
            f"Cannot drop {name} because dropping this feature is not supported.",
            cause="The log cannot prove that no file needs it.",
            fix="Keep the feature: one that is not in use does not affect clients that support it.",
        )
    try:
        core.alter.drop_feature(name, truncate_history=bool(truncate_history), executor=handle.executor())
    except ConfigurationError as error:
        if not truncate_history:
            raise
        raise HistoryTruncationError(error.problem, cause=error.cause, fix=error.fix) from error
    handle.record(core)


def _is_known(name: str) -> bool:
    return name.lower() in {one.lower() for one in FEATURES}
