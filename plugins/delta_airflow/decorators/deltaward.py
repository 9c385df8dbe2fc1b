"""`@task.deltaward`: a task function that returns the parameters of a job."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from airflow.sdk.bases.decorator import DecoratedOperator, determine_kwargs, task_decorator_factory
from airflow.sdk.definitions.context import context_merge
from airflow.sdk.exceptions import AirflowFailException, AirflowSkipException

from delta_airflow.operators.job import DeltaJobOperator

if TYPE_CHECKING:
    from airflow.sdk import Context
    from airflow.sdk.bases.decorator import TaskDecorator


class DeltawardDecoratedOperator(DecoratedOperator, DeltaJobOperator):
    """Runs a job whose parameters a function returns. A function that returns None skips the task.

    Args:
        python_callable: the function; it returns a mapping of JSON values, or None.
        op_args: the positional arguments of the function (templated).
        op_kwargs: the keyword arguments of the function (templated).
        kwargs: `kind`, `table_uri` and the other arguments of `DeltaTableOperator`, and those of Airflow's
            BaseOperator.
    """

    template_fields: Sequence[str] = (
        *DecoratedOperator.template_fields,
        *(name for name in DeltaJobOperator.template_fields if name != "job_parameters"),
    )
    template_fields_renderers: ClassVar[dict[str, str]] = {
        **DeltaJobOperator.template_fields_renderers,
        **DecoratedOperator.template_fields_renderers,
    }
    custom_operator_name: ClassVar[str] = "@task.deltaward"

    def __init__(
        self,
        *,
        python_callable: Callable[..., Any],
        op_args: Collection[Any] | None = None,
        op_kwargs: Mapping[str, Any] | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(python_callable=python_callable, op_args=op_args, op_kwargs=op_kwargs, **kwargs)

    def execute(self, context: Context) -> Any:
        """Call the function for the job's parameters, and run the job.

        Raises:
            AirflowSkipException: the function returned None.
            AirflowFailException: the function returned something other than a mapping, or the job failed
                with a permanent error.
            DeltaError: the job failed with a retryable error.
        """
        context_merge(context, self.op_kwargs)
        keywords = determine_kwargs(self.python_callable, self.op_args, context)
        given = self.python_callable(*self.op_args, **keywords)
        if given is None:
            raise AirflowSkipException("The function returned no parameters, so there is nothing to do.")
        if not isinstance(given, Mapping):
            raise AirflowFailException(
                f"The function returned a {type(given).__name__}. Fix: Return the job's parameters as a "
                "mapping, or None to skip the task."
            )
        self.job_parameters = given
        return super().execute(context)


def deltaward_task(
    python_callable: Callable[..., Any] | None = None,
    multiple_outputs: bool | None = None,
    **kwargs: Any,
) -> TaskDecorator:
    """Make a function a task that runs a job with the parameters that the function returns.

    Args:
        python_callable: the function.
        multiple_outputs: True pushes each key of the job's summary as a separate XCom.
        kwargs: those of `DeltawardDecoratedOperator`.
    """
    return task_decorator_factory(
        python_callable=python_callable,
        multiple_outputs=multiple_outputs,
        decorated_operator_class=DeltawardDecoratedOperator,
        **kwargs,
    )
