# Tests left out under an emulator, because they give the same result on every processor and take
# minutes to build: tests of types, signatures, queries and errors, of how arguments are stored and
# moved, and of the number of allocations. Tests that involve threads, stacks, clocks, bits or
# memory orders stay.
list(APPEND coppice_tests_left_out
    exec/adaptors exec/alternatives exec/allocation exec/allocator_aware exec/closure
    exec/completion_signatures exec/domain exec/env exec/into_variant exec/attrs exec/misuse
    exec/own_channel exec/queries exec/read_env exec/scheduled_sender exec/scheduler exec/sender
    exec/spawn exec/stopped_as exec/strict_adaptors exec/strict_joins exec/strict_moves
    exec/strict_shared exec/synopsis exec/throwing_errors exec/write_env
    pool/ranges task/strict_source task/task_connect)
