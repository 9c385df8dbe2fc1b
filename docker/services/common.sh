# shellcheck shell=bash
# What the entry scripts share; sourced, not run.

# secret NAME: the content of one secret's file.
secret() {
  cat -- "${DELTAWARD_SECRETS:?}/$1"
}

# started SERVICE: makes the service's private folder and leaves its name there for the health check.
started() {
  (umask 077 && mkdir -p "${DELTAWARD_RUNTIME:?}")
  printf '%s\n' "$1" >"$DELTAWARD_RUNTIME/service"
}

# spark_settings FOLDER: spark-defaults.conf of FOLDER with the shared secret, where Spark looks for it.
# Only this user can read it, and the secret is in no argument. Where drivers are started, they tell the
# executors the name DELTAWARD_DRIVER_HOST: their machine may be in networks that the executors are not in.
spark_settings() {
  local key
  key=$(secret spark-secret)
  (
    umask 077
    mkdir -p "${SPARK_CONF_DIR:?}"
    {
      cat "$1/spark-defaults.conf"
      printf 'spark.authenticate.secret %s\n' "$key"
      if [ -n "${DELTAWARD_DRIVER_HOST:-}" ]; then
        printf 'spark.driver.host %s\n' "$DELTAWARD_DRIVER_HOST"
        printf 'spark.driver.bindAddress %s\n' "$DELTAWARD_DRIVER_BIND"
      fi
    } >"$SPARK_CONF_DIR/spark-defaults.conf"
  )
}
