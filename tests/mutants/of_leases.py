"""Mutants of leases: who has one, who no longer does, and what pins keep."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

LEASE = "delta_core.storage.lease:Lease"
FILES = "delta_core.storage.lease_files"
JOBS = "delta_core.jobs.lease"

LEASE_TESTS = "tests/unit/storage/test_lease.py"
JOB_TESTS = "tests/unit/jobs/test_job_lease.py"
PIN_TESTS = "tests/unit/maintenance/test_pins.py"

MUTANTS = [
    Mutant(
        name="a lease ends by the clock of whoever wants it",
        target="delta_core.storage.lease:acquire_lease",
        edits=(("files.store_time_ms()", "clock.now_ms()"),),
        killer=f"{LEASE_TESTS}::test_the_clocks_of_the_machines_do_not_matter",
    ),
    Mutant(
        name="a holder's time begins with the answer",
        target=f"{LEASE}._begin",
        edits=(("= began_at_seconds + self", "= self._clock.monotonic_seconds() + self"),),
        killer=f"{LEASE_TESTS}::test_the_holder_s_time_begins_before_its_request",
    ),
    Mutant(
        name="a number that could be created makes a holder",
        target=f"{LEASE}._begin",
        edits=(("newest.record.token != self._record.token", "False"),),
        killer=f"{LEASE_TESTS}::test_a_number_that_was_deleted_long_ago_makes_nobody_the_holder_again",
    ),
    Mutant(
        name="an older renewal passes for the new one",
        target=f"{LEASE}._begin",
        edits=(("nonce=uuid.uuid4().hex", 'nonce=""'),),
        killer=f"{LEASE_TESTS}::test_a_renewal_of_which_nobody_knew_does_not_pass_for_a_later_one",
    ),
    Mutant(
        name="nobody asks whether the lease was taken over",
        target=f"{LEASE}.check",
        edits=(("        self._own_newest()\n", ""),),
        killer=f"{LEASE_TESTS}::test_the_clocks_of_the_machines_do_not_matter",
    ),
    Mutant(
        name="a job under a lease commits unchecked",
        target=f"{JOBS}:LeaseObserver.on_phase",
        edits=(("            self._check(version)\n", "            pass\n"),),
        killer=f"{JOB_TESTS}::test_a_zombie_that_wakes_up_before_its_commit_is_refused",
    ),
    Mutant(
        name="a takeover is not fenced",
        target=f"{JOBS}:_take_over",
        edits=(("_commit_fence(lease, context, context.snapshot, who)", "0"),),
        killer=f"{JOB_TESTS}::test_a_zombie_is_refused_while_the_next_holder_still_works",
    ),
    Mutant(
        name="a lost lease says of an unclear write that it did not happen",
        target=f"{JOBS}:LeaseObserver._check",
        edits=(("if self._unclear != version:", "if True:"),),
        killer=f"{JOB_TESTS}::test_an_unclear_write_whose_lease_is_lost_is_unknown",
    ),
    Mutant(
        name="a job releases its lease whatever became of it",
        target=f"{JOBS}:run_under_lease",
        edits=(("is_over = not isinstance(error, CommitStateUnknownError)", "is_over = True"),),
        killer=f"{JOB_TESTS}::test_a_late_write_of_a_job_that_was_given_up_cannot_come_after_the_fence",
    ),
    Mutant(
        name="vacuum does not look at pins again",
        target="delta_core.maintenance.vacuum.apply:_Deletion.run",
        edits=(("self._pinned(latest, group) | ", ""),),
        killer=f"{PIN_TESTS}::test_a_pin_that_comes_after_the_plan_counts",
    ),
    Mutant(
        name="log cleanup does not look at pins",
        target="delta_core.checkpoint.log_cleanup:cleanup_expired_logs",
        edits=(("    cutoff_version = min((cutoff_version, *(pin.version for pin in holding)))\n", ""),),
        killer=f"{PIN_TESTS}::test_log_cleanup_keeps_what_a_pinned_version_is_read_from",
    ),
]
