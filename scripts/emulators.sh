#!/usr/bin/env bash
# Installs the object stores and databases that tests start, each below .tools/emulators/NAME.
#
# Usage: scripts/emulators.sh NAME... (versitygw, fake-gcs-server, azurite, dynalite, s3rver, minidfs; or all)
#
# Does nothing for a server that is installed at its pinned version. Go, Node.js, Maven and Java must be on the
# PATH. If one is missing, a message names it and the exit code is 3.
set -euo pipefail
cd "$(dirname "$0")/.."

readonly KNOWN="versitygw fake-gcs-server azurite dynalite s3rver minidfs"
readonly HOME_OF_ALL="$PWD/.tools/emulators"

missing() { printf 'deltaward: %s\n' "$1" >&2; exit 3; }

program_of() { # NAME: the program that installs it
  case $1 in
    versitygw | fake-gcs-server) echo go ;;
    azurite | dynalite | s3rver) echo npm ;;
    minidfs) echo mvn ;;
    *) return 1 ;;
  esac
}

version_of() { # NAME: its pin
  case $1 in
    versitygw) echo v1.8.0 ;;
    fake-gcs-server) echo v1.56.1 ;;
    azurite) echo 3.37.0 ;;
    dynalite) echo 4.0.0 ;;
    s3rver) echo 3.7.1 ;;
    minidfs) echo 3.4.1 ;;
  esac
}

require() { # NAME: the programs that it is installed with and runs on
  local program
  program=$(program_of "$1")
  case $program in
    go) command -v go >/dev/null 2>&1 || missing "$1 is built by Go: install it (Debian: golang) and put go on the PATH." ;;
    npm)
      for program in node npm; do
        command -v "$program" >/dev/null 2>&1 ||
          missing "$1 runs on Node.js: install it with npm (Debian: nodejs npm) and put both on the PATH."
      done
      ;;
    mvn)
      command -v mvn >/dev/null 2>&1 || missing "$1 comes from Maven: install it (Debian: maven) and put mvn on the PATH."
      [ -n "${JAVA_HOME:-}" ] || command -v java >/dev/null 2>&1 ||
        missing "$1 runs on Java: install it (Debian: openjdk-17-jre-headless) and put java on the PATH."
      ;;
  esac
}

go_install() { # FOLDER PACKAGE@VERSION
  # Without optimisation the compiler takes a third less CPU time, which tests do not win back from such a server.
  GOBIN="$1/bin" go install -gcflags='all=-N -l' "$2"
}

npm_install() { # FOLDER NAME@VERSION; no install script of a package runs
  mkdir -p "$1"
  echo '{"private": true}' >"$1/package.json"
  npm install --prefix "$1" --ignore-scripts --no-audit --no-fund --loglevel=error --save-exact "$2"
}

# The shaded minicluster answers WebHDFS with 404. Therefore this installs the plain minicluster and the test
# libraries that it does not include. Its jackson-core is too old for its jackson-databind.
maven_install() { # FOLDER VERSION
  mkdir -p "$1/lib"
  {
    printf '<project><modelVersion>4.0.0</modelVersion><groupId>local</groupId><artifactId>minidfs</artifactId>'
    printf '<version>1</version><packaging>pom</packaging><dependencies>'
    local group artifact version
    while read -r group artifact version; do
      printf '<dependency><groupId>%s</groupId><artifactId>%s</artifactId><version>%s</version></dependency>' \
        "$group" "$artifact" "$version"
    done <<DEPENDENCIES
org.apache.hadoop hadoop-minicluster $2
org.mockito mockito-core 2.28.2
junit junit 4.13.2
org.hamcrest hamcrest-core 1.3
org.junit.jupiter junit-jupiter-api 5.8.2
com.fasterxml.jackson.core jackson-core 2.12.7
DEPENDENCIES
    printf '</dependencies></project>\n'
  } >"$1/pom.xml"
  # A repository of its own: in the user's, descriptions would be left whose files were never fetched, and Ivy,
  # by which Spark finds its packages, takes the one for the other.
  mvn --batch-mode --quiet --file "$1/pom.xml" -Dmaven.repo.local="$1/repository" \
    org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy-dependencies \
    -DincludeScope=runtime -DoutputDirectory="$1/lib"
  rm -rf "$1/repository"
}

install() { # NAME: into NAME.part, which is renamed to NAME once it is complete
  local name=$1 version folder part
  version=$(version_of "$name")
  folder="$HOME_OF_ALL/$name"
  if [ "$(cat "$folder/version" 2>/dev/null || true)" = "$version" ]; then
    return 0
  fi
  require "$name"
  echo "deltaward: installing $name $version into .tools/emulators/ (some minutes the first time)" >&2
  part="$folder.part"
  rm -rf "$part"
  mkdir -p "$part"
  case $name in
    versitygw) go_install "$part" "github.com/versity/versitygw/cmd/versitygw@$version" ;;
    fake-gcs-server) go_install "$part" "github.com/fsouza/fake-gcs-server@$version" ;;
    minidfs) maven_install "$part" "$version" ;;
    *) npm_install "$part" "$name@$version" ;;
  esac >&2
  echo "$version" >"$part/version"
  rm -rf "$folder"
  mv "$part" "$folder"
}

[ $# -gt 0 ] || { printf 'usage: %s NAME... (all, or some of: %s)\n' "$0" "$KNOWN" >&2; exit 2; }
[ "$*" != all ] || read -ra names <<<"$KNOWN"
[ "$*" = all ] || names=("$@")
for name in "${names[@]}"; do
  program_of "$name" >/dev/null || { printf 'deltaward: there is no server %s (%s)\n' "$name" "$KNOWN" >&2; exit 2; }
done
# Go, npm and Maven install at the same time. One build of Go uses every core, so Go builds one server after
# the other.
jobs=()
for program in go npm mvn; do
  (
    parts=()
    for name in "${names[@]}"; do
      [ "$(program_of "$name")" = "$program" ] || continue
      install "$name" &
      if [ "$program" = npm ]; then parts+=($!); else wait $!; fi
    done
    for part in "${parts[@]}"; do wait "$part"; done
  ) &
  jobs+=($!)
done
code=0
for job in "${jobs[@]}"; do
  wait "$job" || code=$?
done
exit "$code"
