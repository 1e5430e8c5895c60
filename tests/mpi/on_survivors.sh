#!/usr/bin/env bash
# Runs each case of a program as a job of its own, in which a process dies and mpiexec is told to
# let the others live. Every survivor must say so.
#
#   on_survivors.sh MPIEXEC COUNT PROGRAM [FILTER]
set -euo pipefail

mpiexec=$1 count=$2 program=$3 filter=${4:-*}
command -v "$mpiexec" >/dev/null || {
    echo "mpi: skipped: there is no mpiexec"
    exit 77
}
as_child=()
if grep -qi 'open mpi\|open-mpi\|openrte' <<<"$("$mpiexec" --version 2>&1)"; then
    export OMPI_MCA_orte_enable_recovery=1 OMPI_MCA_orte_abort_on_non_zero_status=0
else
    # Nevertheless it ends the job if a process dies by a signal, and sends survivors SIGUSR1. So
    # each is the child of a process that ignores that, and does not tell how the child has ended.
    export MPIEXEC_FLAGS=-disable-auto-cleanup
    export UCX_TLS=^cma,tcp # see docs/distributed.md
    as_child=(bash -c 'trap "" USR1; "$@"; exit 0' process)
fi
here=$(dirname "$0")
suite='' failed=0 ran=0
while IFS= read -r line; do
    case $line in
        ' '*) case=${line%%#*} case=$suite${case//[[:space:]]/} ;;
        *) suite=${line%%#*} suite=${suite//[[:space:]]/} && continue ;;
    esac
    most=$count
    case $suite in
        mpi_all_survive.) expected=$count ;;
        mpi_none_survives.) expected=0 most=0 ;;
        mpi_last_survives.) expected=1 ;;
        *) expected=$((count - 1)) ;;
    esac
    # Open MPI 5.0 may crash in a process that makes a communicator while another one dies.
    for _ in 1 2 3; do
        status=0
        output=$(timeout -k 5 100 "$here/on_ranks.sh" "$mpiexec" "$count" "${as_child[@]}" \
            "$program" --gtest_filter="$case" 2>&1 </dev/null) || status=$?
        [[ $output == *ompi_comm_set_rank_failed* ]] || break
        echo "$case: Open MPI has crashed"
    done
    # Not at the beginning of a line: mpiexec may put it behind half a line of another process.
    survivors=$(grep -o 'survived' <<<"$output" | wc -l || true)
    ran=$((ran + 1))
    if ((survivors < expected || survivors > most || status == 124 || status == 137)); then
        printf '%s\n%s: %s of %s processes survived, status %s\n' "$output" "$case" "$survivors" \
            "$expected" "$status"
        failed=$((failed + 1))
    else
        echo "$case: $survivors of $count processes survived"
    fi
done < <("$program" --gtest_list_tests --gtest_filter="$filter" | grep -v '^Running main')
echo "$ran jobs, of which $failed failed"
((ran > 0 && failed == 0))
