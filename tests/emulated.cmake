# What an emulator need not run, because it says the same on every processor and takes minutes to
# build: which types, signatures, queries and errors result, how arguments are stored and moved, and
# how much is allocated. What has threads, stacks, clocks, bits or memory orders in it stays.
list(APPEND coppice_tests_left_out
    exec/adaptors exec/alternatives exec/allocation exec/allocator_aware exec/closure
    exec/completion_signatures exec/domain exec/env exec/into_variant exec/attrs exec/misuse
    exec/own_channel exec/queries exec/read_env exec/scheduled_sender exec/scheduler exec/sender
    exec/spawn exec/stopped_as exec/strict_adaptors exec/strict_joins exec/strict_moves
    exec/strict_shared exec/synopsis exec/throwing_errors exec/write_env
    pool/ranges task/strict_source task/task_connect)
