#!/usr/bin/env bash
# Runs one Spark service in the foreground: master, worker or connect.
#
# Hosts, ports and sizes are in the environment (docker/spark.env), everything else in spark-defaults.conf.
# DELTAWARD_SPARK_HOST is the name that others reach this service by; the host's own when it is left out.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source-path=SCRIPTDIR source=common.sh
. "$here/common.sh"

service=${1:?master, worker or connect}
host=${DELTAWARD_SPARK_HOST:-$(hostname)}
started "spark-$service"
spark_settings "$here"

find_spark='import importlib.util; print(importlib.util.find_spec("pyspark").submodule_search_locations[0])'
SPARK_HOME=$("${PYSPARK_PYTHON:?}" -c "$find_spark")
export SPARK_HOME
# A server that took these for its own would try to be its own client.
unset SPARK_REMOTE SPARK_CONNECT_MODE_ENABLED

case $service in
  master)
    exec "$SPARK_HOME/bin/spark-class" org.apache.spark.deploy.master.Master \
      --host "$SPARK_MASTER_HOST" --port "$SPARK_MASTER_PORT" --webui-port "$SPARK_MASTER_WEBUI_PORT"
    ;;
  worker)
    exec "$SPARK_HOME/bin/spark-class" org.apache.spark.deploy.worker.Worker \
      --host "$host" --webui-port "$SPARK_WORKER_WEBUI_PORT" "$DELTAWARD_SPARK_MASTER"
    ;;
  connect)
    # Spark takes the memory of this server from the variable of the daemons.
    export SPARK_DAEMON_MEMORY=$DELTAWARD_CONNECT_MEMORY
    exec "$SPARK_HOME/bin/spark-submit" --master "$DELTAWARD_SPARK_MASTER" --name deltaward-connect \
      --class org.apache.spark.sql.connect.service.SparkConnectServer \
      --conf "spark.driver.host=$host" \
      --conf "spark.connect.grpc.binding.address=$DELTAWARD_CONNECT_BIND" \
      --conf "spark.connect.grpc.binding.port=$DELTAWARD_CONNECT_PORT" \
      spark-internal
    ;;
  *)
    echo "spark.sh: there is no Spark service '$service'; known are master, worker and connect" >&2
    exit 2
    ;;
esac
