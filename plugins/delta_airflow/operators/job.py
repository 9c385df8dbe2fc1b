"""The operator that runs a job of any kind."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from delta_airflow.operators.base import DeltaTableOperator
from delta_airflow.operators.rendered import as_json_object, as_string


class DeltaJobOperator(DeltaTableOperator):
    """Runs a job of any kind in the job registry, built in or registered by an installed package.

    Args:
        kind: the name of the job kind in the registry (templated).
        job_parameters: the parameters of the job kind, as JSON values (templated).
        kwargs: those of `DeltaTableOperator` and of Airflow's BaseOperator.
    """

    template_fields: Sequence[str] = (*DeltaTableOperator.template_fields, "kind", "job_parameters")
    template_fields_renderers: ClassVar[dict[str, str]] = {
        **DeltaTableOperator.template_fields_renderers,
        "job_parameters": "json",
    }

    def __init__(
        self, *, kind: str, job_parameters: Mapping[str, Any] | str | None = None, **kwargs: Any
    ) -> None:
        super().__init__(**kwargs)
        self.kind = kind
        self.job_parameters = job_parameters

    def job_kind(self) -> str:
        return as_string("kind", self.kind)

    def job_params(self) -> Mapping[str, Any]:
        return as_json_object("job_parameters", self.job_parameters or {})

    def commits(self) -> bool:
        # Job kinds that never commit ignore the idempotency key.
        return self.job_params().get("dry_run") is not True
