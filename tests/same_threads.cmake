# Tests left out under the thread sanitizer although they start threads, because other files of
# their room run the same threads: these are about what is computed, written, or refused. The
# address sanitizer's stage runs them. Without them that stage takes two thirds of the time.
foreach(name
        compose/algorithms_moves compose/block compose/every_operation_exec
        compose/every_operation_graph
        exec/allocation exec/alternatives exec/attrs exec/misuse exec/spawn_slot exec/synopsis
        graph/cost graph/memory graph/picture
        http/access_log http/answer_framing http/body http/budget
        http/client_early_answer http/client_hostile http/client_open http/client_redirect
        http/client_reuse http/client_total http/client_url http/conformance http/early_answer
        http/events http/file_options http/file_tree http/files http/filters http/forwarding
        http/group http/json http/json_errors http/lingering http/multipart http/operations
        http/proxied http/route_group http/secure_client http/simulation_tls http/slow_body
        http/websocket_codec
        http2/client_hostile
        io/copy io/datagram io/file io/memory io/proxy io/record_memory io/service_manager
        io/unseen_end io/whole_file io/whole_file_simulated io/without_pwait2
        parallel/braces parallel/find parallel/memory parallel/numbers parallel/partition
        parallel/reduce parallel/sort_errors parallel/spellings parallel/transform parallel/views
        pool/callables pool/ranges
        stop/throwing stop/wording
        sync/channel sync/failing_copies sync/select sync/select_kinds
        task/generator_ends task/strict_source task/task_connect
        token/callback token/direct)
    list(APPEND coppice_tests_left_out ${name})
endforeach()
