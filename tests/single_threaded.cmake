# Tests left out under the thread sanitizer, because they start no thread and so cannot race. The
# other stages run them, the address sanitizer's among them. tests/tidy/house.hpp rejects a file
# listed here that names anything that starts a thread.
list(APPEND coppice_tests_left_out
    base/check base/clock base/file_name base/fork_deque base/internal base/intrusive base/lifetime
    base/memory_limit base/options base/result base/saturating base/timer_wheel base/version
    compose/algorithms_adaptors compose/algorithms_joins compose/algorithms_loops
    compose/algorithms_states compose/await compose/callback
    compose/every_operation_http
    compose/every_operation_io compose/every_operation_sync compose/future compose/sender
    contract/api contract/extremes contract/group contract/group_execute
    contract/group_work
    exec/adaptors exec/affine exec/allocator_aware exec/any_scheduler exec/any_sender exec/bulk
    exec/closure exec/completion_signatures exec/connect exec/continues_on exec/deadline
    exec/domain exec/env exec/inline_scheduler exec/into_variant exec/just exec/let exec/on
    exec/own_channel exec/queries exec/read_env exec/scheduled_sender exec/scheduler exec/sender
    exec/spawn exec/starts_on exec/stop_when exec/stopped_as exec/strict_adaptors exec/strict_joins
    exec/strict_moves exec/strict_shared exec/sync_wait exec/then exec/throwing_errors
    exec/timer_heap exec/when_all_range exec/when_any exec/write_env
    http/chunk http/cookie http/date http/file_names http/form http/handler http/message http/parse
    http/parse_fields
    http/request_values http/router http/scan http/simulation http/uri http/url
    http/websocket_every_byte http2/client_continuation http2/continuation http2/every_byte
    io/batch io/broken_pipe io/early_end io/endpoint io/initiate io/simulated_host
    io/simulated_failures io/simulation io/timers_end
    pool/topology
    stop/concepts
    sync/channel_extremes sync/event sync/latch sync/mutex sync/reentry
    sync/select_cost sync/select_fairness sync/select_locks sync/select_looks sync/select_range
    sync/semaphore sync/waiting_edges
    task/aligned_result task/change_scheduler task/generator task/generator_cost task/generator_uses
    task/shared_task task/shared_task_cost task/shared_task_waiters task/task_stop
    task/wait_for_tasks
    tls/certificates tls/end tls/engine tls/hostile tls/key_messages tls/memory tls/pieces tls/stop
    token/async_generator token/async_generator_cost token/async_generator_next
    token/async_generator_stops
    trace/event_log trace/histogram)
