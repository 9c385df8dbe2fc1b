#!/usr/bin/env bash
# Prepares the files that the areas of .ci/run share: the archive of Spark's classes, the jars of delta-spark, the
# object stores and databases that tests start, and the bytecode of all tests.
#
# Usage: scripts/prepare.sh
#
# Most of these steps wait for a registry or use one core, so all of them run at the same time.
set -euo pipefail
cd "$(dirname "$0")/.."

# One session fetches the jars before several sessions need them. It retries, because a registry may fail once.
fetch_jars() {
  for _ in 1 2 3; do
    .venv/bin/python -m tests.support.delta_spark_reader && return
    sleep 5
  done
  echo "deltaward: delta-spark's jars cannot be fetched" >&2
  return 1
}

scripts/emulators.sh all &
servers=$!
fetch_jars &
jars=$!
make classes &
classes=$!
trap 'kill "$servers" "$jars" "$classes" 2>/dev/null || true' EXIT

# Compiles the tests once. Otherwise each worker of pytest would compile every test.
.venv/bin/python -m pytest --collect-only -q -p no:cacheprovider | tail -n 3
wait "$classes"
wait "$jars"
trap - EXIT
wait "$servers"
