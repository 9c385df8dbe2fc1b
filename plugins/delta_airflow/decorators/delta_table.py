"""`@task.delta_table`: a task function that receives an open table."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from airflow.providers.standard.decorators.python import _PythonDecoratedOperator
from airflow.sdk.bases.decorator import task_decorator_factory
from airflow.sdk.exceptions import AirflowFailException

from delta_airflow.hooks.deltaward import DeltawardHook
from delta_airflow.operators.rendered import as_bool, as_locations, as_optional_int, as_string
from delta_airflow.tables import open_table, open_table_if_there
from delta_core.errors import ConfigurationError, DeltaError

if TYPE_CHECKING:
    from airflow.sdk import Context
    from airflow.sdk.bases.decorator import TaskDecorator

    from delta_core import DeltaTable


class DeltaTableDecoratedOperator(_PythonDecoratedOperator):
    """Calls a function with a table as its first argument, followed by the arguments of the TaskFlow call.

    Args:
        python_callable: the function.
        table_uri: absolute path or URI of the table (templated).
        conn_id: connection of type `deltaward`, with the allowed roots and the credentials (templated).
        version: the version to open; None opens the newest (templated).
        required: False calls the function with None if the table does not exist (templated).
        allowed_root_uris: locations outside the table's root where files of a shallow clone may be; a list,
            or a template that renders to a list (templated).
        kwargs: those of Airflow's `@task`.
    """

    template_fields: Sequence[str] = (
        *_PythonDecoratedOperator.template_fields,
        "table_uri",
        "conn_id",
        "version",
        "required",
        "allowed_root_uris",
    )
    shallow_copy_attrs: Sequence[str] = (*_PythonDecoratedOperator.shallow_copy_attrs, "function")
    custom_operator_name: str = "@task.delta_table"

    def __init__(
        self,
        *,
        python_callable: Callable[..., Any],
        table_uri: str,
        conn_id: str = DeltawardHook.default_conn_name,
        version: int | str | None = None,
        required: bool | str = True,
        allowed_root_uris: Sequence[str] | str | None = None,
        **kwargs: Any,
    ) -> None:
        # Airflow checks the TaskFlow call against the signature, which must not contain the table.
        super().__init__(python_callable=_with_table(python_callable, None), **kwargs)
        self.function = python_callable
        self.table_uri = table_uri
        self.conn_id = conn_id
        self.version = version
        self.required = required
        self.allowed_root_uris = allowed_root_uris

    def execute(self, context: Context) -> Any:
        """Open the table and call the function.

        Raises:
            AirflowFailException: the table cannot be opened, or the function raised a DeltaError, and the
                error is permanent.
            DeltaError: the same with a retryable error.
        """
        try:
            self.python_callable = _with_table(self.function, self._open())
            return super().execute(context)
        except DeltaError as error:
            if error.retryable:
                raise
            raise AirflowFailException(f"{error.code}: {error}") from error

    def _open(self) -> DeltaTable | None:
        hook = DeltawardHook(as_string("conn_id", self.conn_id))
        open_it = open_table if as_bool("required", self.required) else open_table_if_there
        return open_it(
            hook,
            as_string("table_uri", self.table_uri),
            version=as_optional_int("version", self.version, minimum=0),
            allowed_root_uris=as_locations("allowed_root_uris", self.allowed_root_uris),
        )


def delta_table_task(
    python_callable: Callable[..., Any] | None = None,
    multiple_outputs: bool | None = None,
    **kwargs: Any,
) -> TaskDecorator:
    """Make a function a task that receives an open `delta_core.DeltaTable` as its first argument.

    Args:
        python_callable: the function.
        multiple_outputs: True pushes each key of a returned mapping as a separate XCom.
        kwargs: those of `DeltaTableDecoratedOperator`.
    """
    return task_decorator_factory(
        python_callable=python_callable,
        multiple_outputs=multiple_outputs,
        decorated_operator_class=DeltaTableDecoratedOperator,
        **kwargs,
    )


def _with_table(function: Callable[..., Any], table: DeltaTable | None) -> Callable[..., Any]:
    """The function with its first argument bound to the table."""
    signature = inspect.signature(function)
    parameters = list(signature.parameters.values())
    positional = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    if not parameters or parameters[0].kind not in positional:
        raise ConfigurationError(
            f"The function {function.__name__} takes no table as its first argument.",
            cause="@task.delta_table passes the table as the first positional argument.",
            fix=f"Declare it as {function.__name__}(table, ...).",
        )

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        return function(table, *args, **kwargs)

    call.__signature__ = signature.replace(parameters=parameters[1:])  # type: ignore[attr-defined]
    return call
