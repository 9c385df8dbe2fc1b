#!/usr/bin/env bash
# Makes the secrets of the deployment as files: docker/secrets.sh [FOLDER], by default docker/secrets/.
#
# A file that is there already stays, so running it again changes nothing; to change a secret, remove its
# file first (and read docs/deployment.md on what else has to change). Only the folder's owner can reach
# the files; the files themselves are readable, since a container's user opens them under another number.
set -euo pipefail
cd "$(dirname "$0")"
folder=${1:-secrets}

umask 077
mkdir -p "$folder"
chmod 700 "$folder"

random() { # BYTES: so many random bytes as text that fits into a URL
  head -c "$1" /dev/urandom | base64 | tr '+/' '-_' | tr -d '=\n'
}

put() { # NAME: what stands in the file NAME, unless it exists, is this function's input
  local scratch=$folder/.$1.new
  if [ -e "$folder/$1" ]; then
    cat >/dev/null
    return
  fi
  cat >"$scratch"
  chmod 444 "$scratch"
  mv -f "$scratch" "$folder/$1"
  echo "made $folder/$1"
}

random 24 | put postgres-password
password=$(cat "$folder/postgres-password")
printf 'postgresql+psycopg2://airflow:%s@postgres:5432/airflow' "$password" | put airflow-database-url
# Fernet wants exactly 32 bytes, in base64 with its padding.
head -c 32 /dev/urandom | base64 | tr '+/' '-_' | tr -d '\n' | put airflow-fernet-key
random 64 | put airflow-jwt-secret
random 32 | put airflow-api-secret-key
login=$(random 18)
printf '{"admin": "%s"}\n' "$login" | put airflow-passwords.json
random 32 | put spark-secret
access=$(random 15)
key=$(random 30)
printf '{"identities": [{"name": "airflow", "credentials": [{"accessKey": "%s", "secretKey": "%s"}], "actions": ["Admin"]}]}\n' \
  "$access" "$key" | put object-store.json
