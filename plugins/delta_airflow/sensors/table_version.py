"""Waiting for a table's version."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from airflow.sdk import BaseSensorOperator, PokeReturnValue
from airflow.sdk.exceptions import AirflowFailException

from delta_airflow.errors import TransientJobFailedError
from delta_airflow.hooks.deltaward import DeltawardHook
from delta_airflow.operators.rendered import as_optional_int, as_text
from delta_airflow.table_versions import latest_version_from
from delta_airflow.triggers.table_version import DeltaTableVersionTrigger
from delta_core.errors import ConfigurationError, DeltaError

if TYPE_CHECKING:
    from airflow.sdk import Context


class DeltaTableVersionSensor(BaseSensorOperator):
    """Waits until a table has a version. A table that does not exist yet is waited for, too.

    Returns the table's latest version. Costs one listing of the log's tail per poke.

    Args:
        table_uri: absolute path or URI of the table (templated).
        version: wait for this version or a later one; this or `newer_than` (templated).
        newer_than: wait for a version later than this one (templated).
        conn_id: connection of type `deltaward` (templated).
        deferrable: wait in the triggerer, without a worker slot.
        kwargs: those of Airflow's BaseSensorOperator.
    """

    template_fields: Sequence[str] = ("table_uri", "version", "newer_than", "conn_id")
    ui_color = "#e4ecd5"

    def __init__(
        self,
        *,
        table_uri: str,
        version: int | str | None = None,
        newer_than: int | str | None = None,
        conn_id: str = DeltawardHook.default_conn_name,
        deferrable: bool = False,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.table_uri = table_uri
        self.version = version
        self.newer_than = newer_than
        self.conn_id = conn_id
        self.deferrable = deferrable

    def poke(self, context: Context) -> PokeReturnValue:
        """List the log once."""
        try:
            hook = DeltawardHook(as_text("conn_id", self.conn_id))
            found = latest_version_from(
                hook.table_uri(as_text("table_uri", self.table_uri)),
                self.minimum_version(),
                storage_options=hook.settings.storage_options,
            )
        except DeltaError as error:
            if error.retryable:
                raise
            raise AirflowFailException(f"{error.code}: {error}") from error
        return PokeReturnValue(is_done=found is not None, xcom_value=found)

    def execute(self, context: Context) -> Any:
        """Wait here, or in the triggerer when `deferrable`."""
        if not self.deferrable:
            return super().execute(context)
        first = self.poke(context)
        if first.is_done:
            return first.xcom_value
        hook = DeltawardHook(as_text("conn_id", self.conn_id))
        trigger = DeltaTableVersionTrigger(
            table_uri=hook.table_uri(as_text("table_uri", self.table_uri)),
            minimum_version=self.minimum_version(),
            conn_id=hook.conn_id,
            poll_seconds=max(self.poke_interval, 0.1),
        )
        self.defer(trigger=trigger, method_name="execute_complete", timeout=timedelta(seconds=self.timeout))

    def execute_complete(self, context: Context, event: Mapping[str, Any]) -> int:
        """Take the trigger's event.

        Raises:
            AirflowFailException: the trigger met an error that waiting cannot help.
            TransientJobFailedError: it met one that can pass.
        """
        error = event.get("error")
        if error is None:
            return int(event["version"])
        text = f"{error['code']}: {error['message']}"
        if error.get("retryable"):
            raise TransientJobFailedError("The wait for the table's version ended early", cause=text)
        raise AirflowFailException(text)

    def minimum_version(self) -> int:
        """The lowest version that ends the wait, from the rendered arguments.

        Raises:
            ConfigurationError: not exactly one of `version` and `newer_than` is given, or it is no version.
        """
        version = as_optional_int("version", self.version, minimum=0)
        newer_than = as_optional_int("newer_than", self.newer_than, minimum=-1)
        if version is not None and newer_than is None:
            return version
        if newer_than is not None and version is None:
            return newer_than + 1
        raise ConfigurationError("The sensor needs either version or newer_than")
