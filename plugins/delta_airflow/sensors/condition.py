"""The base class of the sensors: poking in the worker, or waiting in the triggerer."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from airflow.sdk import BaseSensorOperator, PokeReturnValue
from airflow.sdk.exceptions import AirflowFailException

from delta_airflow.conditions.base import TableCondition
from delta_airflow.errors import TransientJobFailedError
from delta_airflow.hooks.deltaward import DeltawardHook
from delta_airflow.operators.rendered import as_string
from delta_airflow.triggers.condition import DeltaConditionTrigger
from delta_core.errors import DeltaError

if TYPE_CHECKING:
    from airflow.sdk import Context


class DeltaConditionSensor(BaseSensorOperator):
    """Waits until a condition on a table holds. While the table does not exist, the sensor waits for it.

    Args:
        table_uri: absolute path or URI of the table (templated).
        conn_id: connection of type `deltaward` (templated).
        deferrable: True waits in the triggerer and holds no worker slot.
        kwargs: those of Airflow's BaseSensorOperator.
    """

    template_fields: Sequence[str] = ("table_uri", "conn_id")
    ui_color = "#e4ecd5"

    def __init__(
        self,
        *,
        table_uri: str,
        conn_id: str = DeltawardHook.default_conn_name,
        deferrable: bool = False,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.table_uri = table_uri
        self.conn_id = conn_id
        self.deferrable = deferrable
        self._condition: TableCondition | None = None

    @abstractmethod
    def trigger(self, *, table_uri: str, conn_id: str, poll_seconds: float) -> DeltaConditionTrigger:
        """The trigger that waits for the condition of the rendered arguments.

        Raises:
            ConfigurationError: an argument is not valid.
        """

    def return_value(self, found: Mapping[str, Any]) -> Any:
        """The sensor's return value, from the condition's result."""
        return dict(found)

    def poke(self, context: Context) -> PokeReturnValue:
        """Check the condition once."""
        try:
            if self._condition is None:
                hook = self._hook()
                trigger = self._trigger(hook)
                self._condition = trigger.open_condition(hook, trigger.table_uri)
            found = self._condition.check()
        except DeltaError as error:
            self._condition = None
            if error.retryable:
                raise
            raise AirflowFailException(f"{error.code}: {error}") from error
        return PokeReturnValue(
            is_done=found is not None, xcom_value=None if found is None else self.return_value(found)
        )

    def execute(self, context: Context) -> Any:
        """Wait in the worker, or in the triggerer when `deferrable`."""
        if not self.deferrable:
            return super().execute(context)
        first = self.poke(context)
        if first.is_done:
            return first.xcom_value
        self.defer(
            trigger=self._trigger(self._hook()),
            method_name="execute_complete",
            timeout=timedelta(seconds=self.timeout),
        )

    def execute_complete(self, context: Context, event: Mapping[str, Any]) -> Any:
        """Handle the trigger's event.

        Raises:
            AirflowFailException: the trigger reports a permanent error.
            TransientJobFailedError: the trigger reports a transient error.
        """
        error = event.get("error")
        if error is None:
            return self.return_value(event)
        message = f"{error['code']}: {error['message']}"
        if error.get("retryable"):
            raise TransientJobFailedError("The wait for the table ended early.", cause=message)
        raise AirflowFailException(message)

    def _hook(self) -> DeltawardHook:
        return DeltawardHook(as_string("conn_id", self.conn_id))

    def _trigger(self, hook: DeltawardHook) -> DeltaConditionTrigger:
        return self.trigger(
            table_uri=hook.table_uri(as_string("table_uri", self.table_uri)),
            conn_id=hook.conn_id,
            poll_seconds=max(self.poke_interval, 0.1),
        )
