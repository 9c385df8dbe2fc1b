"""The gate between staging and publishing: write, audit, publish.

The rows lie in the table's directory, in files that no version names, so validating them shows nothing to
anyone. What the suite finds decides what the one publishing commit will name: all of them, the good rows,
or nothing.
"""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from delta_core.actions import SetTransaction
from delta_core.clock import SYSTEM_CLOCK, Clock
from delta_core.errors import ConcurrentTransactionError, DeltaError, QualityGateError, TableNotFoundError
from delta_core.execution.reporter import SILENT, ProgressReporter
from delta_core.schema.types import StructType
from delta_core.snapshot.snapshot import Snapshot
from delta_core.storage.log_store import LogStore
from delta_core.storage.open import open_store, options_for
from delta_core.transaction.idempotency import already_applied
from spark_jobs.quality.driver_engine import DriverEngine
from spark_jobs.quality.evaluation import evaluate
from spark_jobs.quality.outcome import ExpectationOutcome
from spark_jobs.quality.params import QualityEngine, QualityParams
from spark_jobs.quality.quarantine import BadRows, Quarantine, names_by_row
from spark_jobs.quality.rejected import MistypedRows, RejectedRows
from spark_jobs.quality.report import ReportUris, build_report, uris_of, write_report
from spark_jobs.quality.spark_engine import SparkEngine
from spark_jobs.quality.staged import StagedFiles
from spark_jobs.quality.suite import PlannedExpectation, plan_suite, require_evaluated
from spark_jobs.quality.verdict import GateOutcome, Verdict, decide

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_log = logging.getLogger(__name__)

QUARANTINE_PATH = "_deltaward/quarantine"
REPORT_PATH = "_deltaward/quality"
DRIVER_ROWS: Final = 1_000_000
"""Fewer rows than these are judged in the driver, by the engine `auto`; more by Spark's tasks."""

_NAMED_FAILURES = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class GateContext:
    """Whose batch it is.

    Attributes:
        store: the loaded table's.
        job_id: names the reports.
        txn: the load's idempotency key; it names the batch, else the job does.
        source: where the rows came from, for people.
        user_metadata: provenance for the quarantine's commit.
        session: gives the Spark session, when Spark's tasks are to judge.
        storage_options: for the quarantine and the reports.
        replaces_rows: whether the commit takes rows away.
    """

    store: LogStore
    job_id: str
    session: Callable[[], SparkSession]
    txn: SetTransaction | None = None
    source: str = ""
    user_metadata: Mapping[str, Any] = field(default_factory=dict, hash=False)
    storage_options: Mapping[str, str] = field(default_factory=dict, hash=False, repr=False)
    replaces_rows: bool = False
    reporter: ProgressReporter = SILENT
    clock: Clock = SYSTEM_CLOCK

    @property
    def batch(self) -> str:
        """The batch's name in the quarantine: the same for every try of the load."""
        if self.txn is None:
            return self.job_id
        return f"{self.txn.app_id}@{self.txn.version}" if self.txn.version else self.txn.app_id


class QualityGate:
    """Decides about one batch: `prepare`, then `audit`, and `retract` when it certainly is not published.

    Attributes:
        output: the gate's part of the job's output, once there is a decision.
        reports: where the reports are, from then on.
        rejected: takes the rows that break the contract, when they go to quarantine; None when such a
            row fails the load.
    """

    def __init__(
        self,
        params: QualityParams,
        context: GateContext,
        *,
        mistyped: MistypedRows | None = None,
        driver_rows: int = DRIVER_ROWS,
    ) -> None:
        self._params = params
        self._context = context
        self._mistyped = mistyped
        self._driver_rows = driver_rows
        self._planned: tuple[PlannedExpectation, ...] = ()
        self._quarantine: Quarantine | None = None
        self._tries = 0
        self._put_aside = False
        self.output: dict[str, Any] = {}
        self.reports: ReportUris | None = None
        self.rejected = RejectedRows() if params.keeps_rejected else None

    def prepare(self, schema: StructType) -> None:
        """Check the suite and the quarantine table against rows of this schema. Writes nothing.

        Raises:
            QualitySuiteError: an expectation cannot be checked; it is named.
        """
        self._planned = plan_suite(self._params, schema)
        uri = self._params.quarantine_uri or f"{self._context.store.uri}/{QUARANTINE_PATH}"
        self._quarantine = Quarantine(
            uri,
            batch=self._context.batch,
            schema=schema,
            source=self._context.source,
            storage_options=options_for(uri, self._context.storage_options),
            clock=self._context.clock,
        )
        if self.rejected is not None:
            self._quarantine.check()

    def audit(self, staged: StagedFiles) -> StagedFiles | None:
        """Validate the staged rows and do what the policy says, up to the publishing commit.

        Returns:
            The files to publish; None when another try has published the batch in the meantime.

        Raises:
            QualityGateError: the batch must not be published.
            QualitySuiteError: an expectation could not be evaluated.
            DeltaError: Spark or a store failed. The caller deletes the files and calls `retract`.
        """
        assert self._quarantine is not None  # prepare comes first
        reporter = self._context.reporter
        reporter.emit("quality.validating", rows=staged.rows, expectations=len(self._planned))
        if self.rejected is not None and self._mistyped is not None:
            self.rejected.add_mistyped(self._mistyped, staged.schema)
        engine, outcomes = self._evaluate(staged)
        require_evaluated(outcomes, shows_values=self._params.samples > 0)
        verdict = decide(
            self._params,
            outcomes,
            staged_rows=staged.rows,
            rejected_rows=0 if self.rejected is None else self.rejected.rows,
            replaces_rows=self._context.replaces_rows,
        )
        reporter.emit("quality.validated", outcome=verdict.outcome.value, bad_rows=verdict.bad_rows)
        self._tries = self._quarantine.tries()
        if self._is_published():
            return None
        bad: list[BadRows] = []
        if verdict.outcome is GateOutcome.QUARANTINED:
            bad = [] if self.rejected is None else self.rejected.load()
            bad += _bad_rows(staged, verdict, outcomes)
            staged = staged.without(verdict.bad_positions)
        reporter.emit("quarantine.before", rows=sum(part.rows.num_rows for part in bad))
        version = self._quarantine.replace_batch(
            bad, after=self._tries, user_metadata=self._provenance(verdict)
        )
        reporter.emit("quarantine.after", version=version)
        self._tries += version is not None
        self._put_aside = bool(bad)
        self._report(verdict, outcomes, engine, version)
        if verdict.outcome is GateOutcome.FAILED:
            raise self._refusal(verdict, outcomes)
        return staged

    def require_undisturbed(self) -> None:
        """Call right before the publishing commit: the rows that this try put aside must still be there.

        Raises:
            ConcurrentTransactionError: another try of the load has replaced them.
        """
        if self._put_aside and self._quarantine is not None and self._quarantine.tries() != self._tries:
            raise ConcurrentTransactionError(
                f"Another try of this load has replaced its rows in {self._quarantine.uri}.",
                cause=f"It ran at the same time, for the batch {self._context.batch!r}: published now, the "
                "rows that were put aside would be in neither table",
                fix="Run the job again; it then finds what the other try has done",
            )

    def retract(self) -> None:
        """Take the batch's rows out of the quarantine: it was not published and will not be.

        Best effort: a retry of the load replaces them anyway. Does nothing when there are none, or when
        another try of the load has published the batch.
        """
        if self._quarantine is None or not self._put_aside:
            return
        self._put_aside = False
        try:
            if self._is_published():
                return
            self._quarantine.replace_batch([], after=self._tries, user_metadata=None)
        except DeltaError as error:
            _log.warning(
                "rows of a batch that was not published stay in quarantine",
                extra={"batch": self._context.batch, "error": str(error)},
            )

    def _evaluate(self, staged: StagedFiles) -> tuple[QualityEngine, list[ExpectationOutcome]]:
        chosen = self._params.engine
        if chosen is QualityEngine.AUTO:
            chosen = QualityEngine.DRIVER if staged.rows < self._driver_rows else QualityEngine.SPARK
        samples = self._params.samples
        # Spark reads files, and there may be none.
        if chosen is not QualityEngine.SPARK or not staged.adds:
            chosen = QualityEngine.DRIVER if chosen is QualityEngine.SPARK else chosen
            return chosen, evaluate(DriverEngine(staged), staged, self._planned, samples=samples)
        engine = SparkEngine(self._context.session(), staged)
        try:
            return chosen, evaluate(engine, staged, self._planned, samples=samples)
        finally:
            engine.close()

    def _is_published(self) -> bool:
        """Whether another try of the load has committed while this one was at work."""
        if self._context.txn is None:
            return False
        try:
            snapshot = Snapshot.load(self._context.store, clock=self._context.clock)
        except TableNotFoundError:
            return False
        return already_applied(snapshot, self._context.txn) is not None

    def _report(
        self,
        verdict: Verdict,
        outcomes: Sequence[ExpectationOutcome],
        engine: QualityEngine,
        version: int | None,
    ) -> None:
        context, params = self._context, self._params
        uri = params.report_uri or f"{context.store.uri}/{REPORT_PATH}"
        options = options_for(uri, context.storage_options)
        place = open_store(uri, storage_options=options, clock=context.clock)
        name = re.sub(r"[^\w-]", "_", context.job_id)[:128]
        reports = uris_of(place, name)
        quarantined = verdict.bad_rows if verdict.outcome is GateOutcome.QUARANTINED else 0
        published = 0 if verdict.outcome is GateOutcome.FAILED else verdict.rows - quarantined
        assert self._quarantine is not None
        output = {
            "outcome": verdict.outcome.value,
            "suite": params.suite,
            "expectations": len(outcomes),
            "failed_expectations": [outcome.name for outcome in outcomes if not outcome.success],
            "rows": verdict.rows,
            "bad_rows": verdict.bad_rows,
            "published_rows": published,
            "quarantined_rows": quarantined,
            "report_json": reports.json,
            "report_html": reports.html,
            "quarantine_uri": self._quarantine.uri if quarantined else None,
            "quarantine_version": version if quarantined else None,
        }
        document = build_report(
            summary=output,
            outcomes=outcomes,
            samples=params.samples,
            table_uri=context.store.uri,
            job_id=context.job_id,
            engine=engine.value,
            policy={
                "on_failure": params.on_failure.value,
                "max_bad_rows": params.max_bad_rows,
                "max_bad_fraction": params.max_bad_fraction,
            },
            why=verdict.why,
            rejected_rows=0 if self.rejected is None else self.rejected.rows,
            created_ms=context.clock.now_ms(),
        )
        self.output = output
        self.reports = write_report(place, name, document)

    def _refusal(self, verdict: Verdict, outcomes: Sequence[ExpectationOutcome]) -> QualityGateError:
        failed = [outcome.name for outcome in outcomes if outcome.blocks]
        if self.rejected is not None and self.rejected.rows:
            failed.append("the contract")
        named = ", ".join(failed[:_NAMED_FAILURES])
        more = f" and {len(failed) - _NAMED_FAILURES} more" if len(failed) > _NAMED_FAILURES else ""
        least = "" if verdict.exact else "at least "
        what = f": {named}{more}" if failed else ""
        report = self.reports.html if self.reports is not None else ""
        return QualityGateError(
            f"The batch does not meet the suite {self._params.suite!r}{what}.",
            cause=f"{least}{verdict.bad_rows} of {verdict.rows} rows are bad, and {verdict.why}",
            fix=f"Read the report {report}, then correct the source or the suite; nothing was published",
        )

    def _provenance(self, verdict: Verdict) -> str:
        quality = {
            "table": self._context.store.uri,
            "suite": self._params.suite,
            "batch": self._context.batch,
            "outcome": verdict.outcome.value,
        }
        return json.dumps({**self._context.user_metadata, "quality": quality})


def _bad_rows(staged: StagedFiles, verdict: Verdict, outcomes: Sequence[ExpectationOutcome]) -> list[BadRows]:
    positions = verdict.bad_positions
    if not len(positions):
        return []
    found = [(o.name, o.rows) for o in outcomes if o.blocks and o.rows is not None]
    names = names_by_row(positions, found)
    return [
        BadRows(
            rows=staged.take(positions),
            reasons=[f"does not meet {', '.join(row)}" for row in names],
            expectations=names,
        )
    ]
