#!/usr/bin/env bash
# Prints the JAVA_HOME of a Java 17 or later. Installs Java when the machine has no such Java.
#
# Tries in this order: JAVA_HOME, the PATH, .tools/jdk, Debian's package (as root on a Debian-like system), the
# PyPI package install-jdk (into .tools/jdk); otherwise a message explains what to do.
set -euo pipefail
cd "$(dirname "$0")/.."

home_of() { # JAVA: its home, when it runs and is new enough
  local settings version home
  settings=$("$1" -XshowSettings:properties -version 2>&1) || return 1
  version=$(sed -n 's/^ *java\.specification\.version = //p' <<<"$settings")
  home=$(sed -n 's/^ *java\.home = //p' <<<"$settings")
  [ "${version%%.*}" -ge 17 ] 2>/dev/null && [ -n "$home" ] && printf '%s\n' "$home"
}

find_java() {
  local candidate
  for candidate in "${JAVA_HOME:+$JAVA_HOME/bin/java}" "$(command -v java || true)" \
    .tools/jdk/*/bin/java .tools/jdk/*/Contents/Home/bin/java; do
    [ -n "$candidate" ] && [ -x "$candidate" ] && home_of "$candidate" && return 0
  done
  return 1
}

find_java && exit 0

if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then
  echo "deltaward: installing openjdk-17-jre-headless" >&2
  export DEBIAN_FRONTEND=noninteractive
  for package in openjdk-17-jre-headless default-jre-headless; do
    { apt-get install -y -q --no-install-recommends "$package" ||
      { apt-get update -q && apt-get install -y -q --no-install-recommends "$package"; }; } >&2 || continue
    hash -r
    find_java && exit 0
  done
fi

if [ -x .venv/bin/python ]; then
  echo "deltaward: fetching a Java 17 runtime into .tools/jdk" >&2
  .venv/bin/python -c 'import jdk; jdk.install("17", jre=True, path=".tools/jdk")' >&2 2>/dev/null || true
  find_java && exit 0
fi

echo "deltaward: Spark needs Java 17 or later: install one (for example OpenJDK 17) and set JAVA_HOME." >&2
exit 1
