"""The approval of a `fleet_dag`: a person decides on the verbs whose policy wants an approval."""

from __future__ import annotations

import importlib
from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any, Final

from airflow.sdk.exceptions import AirflowSkipException

from delta_airflow.operators.approval import DeltaApprovalOperator

if TYPE_CHECKING:
    from airflow.sdk import Context

_TASKS: Final = "delta_airflow.fleet_tasks"


class FleetApprovalOperator(DeltaApprovalOperator):
    """Asks a person about the verbs of the run's plan that need an approval. Without any, it is skipped.

    The answer holds for this plan alone: the tasks behind it run the verbs that the question listed.

    Args:
        shared: the arguments of every step of the DAG.
        kwargs: those of `DeltaApprovalOperator`, without `subject` and `body`.
    """

    template_fields: Collection[str] = (*DeltaApprovalOperator.template_fields, "shared")

    def __init__(self, *, shared: Mapping[str, Any], **kwargs: Any) -> None:
        super().__init__(subject="Approve the maintenance of a fleet", **kwargs)
        self.shared = dict(shared)

    def execute(self, context: Context) -> Any:
        """Ask, and wait without holding a worker slot.

        Raises:
            AirflowSkipException: no verb needs an approval, or the run was started with `approve`.
        """
        tasks = importlib.import_module(_TASKS)
        question = tasks.question(context, **self.shared)
        if question is None:
            raise AirflowSkipException("No verb of the plan waits for an approval.")
        self.subject, self.body = question
        return super().execute(context)
