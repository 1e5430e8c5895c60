#!/usr/bin/env bash
# Runs test_notes over a PostgreSQL server that is made for it, listens on a socket in a temporary
# directory only, and is gone afterwards. Skips, with status 0 and a word, where there is none.
#
#   with_postgresql.sh TEST_NOTES
set -euo pipefail

tests=$1
programs=$(ls -d /usr/lib/postgresql/*/bin 2>/dev/null | sort -V | tail -1)
if [ -z "$programs" ] || [ ! -x "$programs/initdb" ]; then
    echo "skipped: no PostgreSQL server is installed (scripts/packages.sh postgresql)"
    exit 0
fi

directory=$(mktemp -d /tmp/coppice-notes.XXXXXX)
as_user=()
if [ "$(id -u)" -eq 0 ]; then # PostgreSQL refuses to run as root
    chown postgres "$directory"
    as_user=(setpriv --reuid=postgres --regid=postgres --clear-groups)
fi
cleanup() {
    "${as_user[@]}" "$programs/pg_ctl" -D "$directory/data" -m immediate stop >/dev/null || true
    rm -rf "$directory"
}
trap cleanup EXIT
cd "$directory"
"${as_user[@]}" "$programs/initdb" -D "$directory/data" -U notes --auth=trust --no-sync >/dev/null
"${as_user[@]}" "$programs/pg_ctl" -D "$directory/data" -w -t 60 -l "$directory/log" \
    -o "-c listen_addresses='' -c unix_socket_directories=$directory -c fsync=off" start >/dev/null
export COPPICE_NOTES_DATABASE="postgresql:///postgres?host=$directory&user=notes"
"$tests" --gtest_filter='notes.*'
