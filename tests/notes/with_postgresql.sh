#!/usr/bin/env bash
# Starts a PostgreSQL server that listens only on a socket in a temporary directory, and runs
# test_notes over it. The server ends with this script, however the script ends. Skips (77) if
# PostgreSQL is not installed.
#
#   with_postgresql.sh TEST_NOTES BUILT      BUILT: 1 if coppice-notes was built with libpq
set -euo pipefail

tests=$(readlink -f -- "$1")
skip() {
    echo "skipped: $* (scripts/packages.sh postgresql)"
    exit 77
}
[ "$2" = 1 ] || skip "coppice-notes was built without libpq, see the option COPPICE_POSTGRESQL"
programs=$(ls -d /usr/lib/postgresql/*/bin 2>/dev/null | sort -V | tail -1)
[ -x "${programs:-/none}/initdb" ] || skip "no PostgreSQL server is installed"

directory=$(mktemp -d /tmp/coppice-notes.XXXXXX)
server=
cleanup() {
    if [ -n "$server" ]; then
        kill -QUIT "$server" 2>/dev/null || true # PostgreSQL's word for: at once
        wait "$server" || true
    fi
    rm -rf "$directory"
}
trap cleanup EXIT
as_user=(setpriv)
if [ "$(id -u)" -eq 0 ]; then # PostgreSQL refuses to run as root
    chown postgres "$directory"
    as_user+=(--reuid=postgres --regid=postgres --clear-groups)
fi
cd "$directory"
"${as_user[@]}" "$programs/initdb" -D "$directory/data" -U notes --auth=trust \
    --no-sync >/dev/null
"${as_user[@]}" --pdeathsig QUIT "$programs/postgres" -D "$directory/data" \
    -c listen_addresses= -c unix_socket_directories="$directory" -c fsync=off \
    2>"$directory/log" &
server=$!
until "$programs/pg_isready" -q -h "$directory" -U notes; do
    if ! kill -0 "$server" 2>/dev/null; then
        cat "$directory/log"
        exit 1
    fi
    sleep 0.1
done
export COPPICE_NOTES_DATABASE="postgresql:///postgres?host=$directory&user=notes"
COPPICE_NOTES_POSTGRESQL_PID=$server "$tests" --gtest_filter='notes.*:notes_halted.*'
