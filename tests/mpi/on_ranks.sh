#!/usr/bin/env bash
# Runs a program as the processes of one job, more than there are cores if need be. All run on this
# machine, over shared memory or the loopback device.
#
#   [MPIEXEC_FLAGS="FLAG..."] on_ranks.sh MPIEXEC COUNT PROGRAM [ARGUMENT...]
set -euo pipefail

mpiexec=$1 count=$2
shift 2
command -v "$mpiexec" >/dev/null || {
    echo "mpi: skipped: there is no mpiexec"
    exit 77
}
flags=()
says=$("$mpiexec" --version 2>&1)
if grep -qi 'open mpi\|open-mpi\|openrte' <<<"$says"; then
    # Open MPI refuses to start as root, and more processes than cores, unless it is told.
    export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
    # Containers forbid that a process reads another one's memory, with a message.
    : "${OMPI_MCA_btl_vader_single_copy_mechanism:=none}"
    export OMPI_MCA_btl_vader_single_copy_mechanism
    # MPI_TRANSPORT=tcp: by sockets, as between machines.
    flags=(--oversubscribe --mca btl "self,${MPI_TRANSPORT:-vader}" --mca btl_tcp_if_include lo
        --bind-to none)
    # With fault tolerance. At its end Open MPI 5.0 may wait for processes that have died, unless it
    # waits for none.
    if grep -q 'Open MPI) 5' <<<"$says"; then
        flags+=(--with-ft ulfm --mca async_mpi_finalize 1)
    fi
fi
read -ra more <<<"${MPIEXEC_FLAGS:-}"
exec "$mpiexec" "${flags[@]}" "${more[@]}" -n "$count" "$@"
