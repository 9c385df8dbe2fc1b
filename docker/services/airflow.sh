#!/usr/bin/env bash
# Runs one Airflow service in the foreground: init, api-server, scheduler, dag-processor or triggerer.
#
# `init` prepares the database and ends. Settings are in the environment (docker/airflow.env).
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source-path=SCRIPTDIR source=common.sh
. "$here/common.sh"

service=${1:?init, api-server, scheduler, dag-processor or triggerer}
started "airflow-$service"

case $service in
  init)
    exec python "$here/prepare.py"
    ;;
  api-server)
    # Airflow opens this file for writing, which a secret is not.
    (umask 077 && secret airflow-passwords.json >"$AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_PASSWORDS_FILE")
    exec airflow api-server
    ;;
  scheduler)
    # Tasks are its children, and their drivers must be let into the cluster.
    spark_settings "$here"
    # All services share one folder of task logs; a log server would listen on every interface.
    exec airflow scheduler --skip-serve-logs
    ;;
  triggerer)
    exec airflow triggerer --skip-serve-logs
    ;;
  dag-processor)
    exec airflow dag-processor
    ;;
  *)
    echo "airflow.sh: there is no Airflow service '$service'" >&2
    exit 2
    ;;
esac
