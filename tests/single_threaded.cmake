# What the thread sanitizer need not run, because no test of it starts a thread: it finds races, and
# has nothing to look for there. The other stages run these, the address sanitizer among them.
# tests/tidy/house.hpp refuses a file here that names what starts threads.
list(APPEND coppice_tests_left_out
    base/check base/clock base/file_name base/fork_deque base/internal base/intrusive base/lifetime
    base/memory_limit base/options base/result base/saturating base/timer_wheel base/version
    contract/api contract/extremes contract/group contract/group_execute
    contract/group_work
    exec/adaptors exec/affine exec/allocator_aware exec/any_scheduler exec/any_sender exec/bulk
    exec/closure exec/completion_signatures exec/connect exec/continues_on exec/deadline
    exec/domain exec/env exec/inline_scheduler exec/into_variant exec/just exec/let exec/on
    exec/own_channel exec/queries exec/read_env exec/scheduled_sender exec/scheduler exec/sender
    exec/spawn exec/starts_on exec/stop_when exec/stopped_as exec/strict_adaptors exec/strict_joins
    exec/strict_moves exec/strict_shared exec/sync_wait exec/then exec/throwing_errors
    exec/timer_heap exec/when_all_range exec/when_any exec/write_env
    http/chunk http/date http/file_names http/handler http/message http/parse
    http/parse_fields
    http/router http/scan http/simulation http/uri
    io/batch io/broken_pipe io/early_end io/endpoint io/initiate io/simulated_host
    io/simulated_failures io/simulation io/timers_end
    pool/topology
    stop/concepts
    task/task_stop task/wait_for_tasks
    tls/certificates tls/end tls/engine tls/hostile tls/key_messages tls/memory tls/pieces tls/stop
    trace/event_log trace/histogram)
