// Every asynchronous function, stopped in every way; for the tests every_operation_*_test.cpp.
#pragma once
// Each operation waits for an event that never comes, so only the stop can end it. It waits under a
// timeout, in when_any, in a scope that is stopped (on its loop, and on another thread), and under
// a deadline: as a sender whose type is erased, and awaited by a task. Then the same object repeats
// the operation, which now ends by itself.
//
// The list is complete: tests/tidy/operations.hpp finds the functions, and demands the name of
// each, for example "stream::receive", in one of these files, as a check or as an excuse below.

#include <coppice/execution.hpp>
#include <coppice/io.hpp>
#include <coppice/task.hpp>

#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <functional>
#include <iostream>
#include <optional>
#include <string>
#include <system_error>
#include <thread>
#include <utility>

namespace coppice::test {

using namespace coppice::internal;

namespace ex = coppice::execution;

struct excuse {
    const char* name;
    const char* reason;
};
// Functions that no stop ends while they wait, or that do not wait.
inline constexpr excuse excuses[] = {
    {"socket::send_to", "a datagram is handed to the kernel, which does not wait for its receiver"},
    {"file::read_at", "begins at once; what the disk has begun is waited for, io/file_test.cpp"},
    {"file::write_at", "as file::read_at"},
    {"file::sync", "as file::read_at"},
    {"file::read_all",
     "as file::read_at; a stop ends it between two reads, io/whole_file_simulated_test.cpp"},
    {"file::write_all", "as file::read_all"},
    {"read_file", "as file::read_all"},
    {"write_file", "as file::read_all"},
    {"scheduler::schedule", "waits for its turn; a stop before it ends it there, in its place"},
    {"inline_scheduler::schedule", "completes at once"},
    {"any_scheduler::schedule", "as the scheduler that it holds"},
    {"any_scheduler::schedule_after", "as the scheduler that it holds"},
    {"any_scheduler::schedule_at", "as the scheduler that it holds"},
    {"parallel_scheduler::schedule", "as scheduler::schedule"},
    {"contract_scheduler::schedule", "as scheduler::schedule"},
    {"nearest_scheduler::schedule", "as scheduler::schedule"},
    {"loop_scheduler::schedule", "as scheduler::schedule"},
    {"loop_scheduler::schedule_after", "is scheduler::schedule_after of a context"},
    {"loop_scheduler::schedule_at", "is scheduler::schedule_at of a context"},
    {"simple_counting_scope::join", "what it waits for uses the scope; stop that"},
    {"counting_scope::join", "as for the other; its request_stop() ends what it waits for"},
    {"receive", "of the optional component mpi: mpi/operations_test.cpp"},
    {"receive_all", "as receive"},
    {"probe", "as receive"},
    {"send", "of mpi, which cannot cancel it: it has no set_stopped"},
    {"send_receive", "as send"},
    {"barrier", "as send"},
    {"broadcast", "as send"},
    {"reduce", "as send"},
    {"all_reduce", "as send"},
    {"gather", "as send"},
    {"scatter", "as send"},
    {"all_to_all", "as send"},
    {"call", "as send"},
    {"all_gather", "as send"},
    {"scan", "as send"},
    {"exclusive_scan", "as send"},
    {"reduce_scatter", "as send"},
    {"gather_v", "as send"},
    {"scatter_v", "as send"},
    {"all_gather_v", "as send"},
    {"all_to_all_v", "as send"},
    {"put", "as send"},
    {"get", "as send"},
    {"accumulate", "as send"},
    {"fetch_accumulate", "as send"},
    {"compare_exchange", "as send"},
    {"flush", "as send"},
    {"fence", "as send"},
    {"run_bulk", "of mpi::bulk, which no stop reaches: the other processes would wait"},
    {"run_map_reduce", "as run_bulk"},
    {"run_sort", "as run_bulk"},
    {"agree", "as run_bulk"},
    {"run_remote", "of mpi::remote: mpi/distributed_test.cpp"},
    {"remote", "as run_remote"},
    {"remote_service::call", "as run_remote"},
    {"run_send_object", "as send"},
    {"run_receive_object", "as receive: mpi/objects_test.cpp"},
    {"receive_object", "as run_receive_object"},
    {"run_broadcast_object", "as run_bulk"},
    {"run_gather_objects", "as run_bulk"},
    {"run_scatter_objects", "as run_bulk"},
    {"run_reduce_object", "as run_bulk"},
    {"run_work", "of mpi::work_sharing: mpi/work_sharing_test.cpp"},
    {"work_service::make_run", "as run_work"},
    {"work_sharing::run", "as run_work"},
    {"stream::handshake", "of the optional component tls: tls/stop_test.cpp"},
    {"stream::handshake_on", "as stream::handshake, and tls/stream_test.cpp"},
    {"stream::shutdown_send", "as stream::handshake"},
    {"stream::shutdown", "as stream::handshake"},
    {"handler::start", "the handler's own task"},
    {"answerer::start", "as handler::start"},
    {"answerer_of::start", "as handler::start"},
    {"filtered_answerer::start", "as handler::start"},
    {"get_once", "is async_once::get"},
    {"call_for_next_items", "one of the tasks of for_each_bounded"},
    {"follow_shared", "the await of shared_task by a coroutine that is no task"},
    {"filter_task::run", "the filter's own task"},
    {"filter_task_of::run", "the filter's own task"},
    {"concurrency_limit::operator", "next_handler, and a turn: http/admission_test.cpp"},
    {"load_shedding::operator", "next_handler, which it awaits alone"},
    {"next_handler::operator", "the next filter's own task, or the handler's"},
    {"body_source::write_to", "the producer's own task"},
    {"produced_body::write_to", "the producer's own task"},
    {"websocket::send", "waits for a client that reads: http/websocket_test.cpp"},
    {"websocket::send_binary", "as websocket::send"},
    {"websocket::close", "does not wait"},
    {"websocket_source::write_to", "no connection calls it"},
    {"websocket_source::run", "the handler's own task"},
    {"websocket_source_of::run", "the handler's own task"},
    {"event_writer::send", "what waits in it is body_writer::flush"},
    {"event_producer::run", "the producer's own task"},
    {"event_producer_of::run", "the producer's own task"},
    {"read_whole", "as body_reader::read"},
    {"read_json", "as body_reader::read"},
    {"client_tasks::send", "as client::send, which is nothing else"},
    {"client_tasks::open", "as client::open, which is nothing else"},
    {"client_call::read", "as client_answer::read, which is nothing else"},
    {"just", "completes at once"},
    {"just_error", "completes at once"},
    {"just_stopped", "completes at once"},
    {"read_env", "completes at once"},
    {"spawn", "waits for nothing"},
    {"let_async_scope_token::wrap_spawned", "the sender's own"},
    {"call_for_body", "the body's own"},
    {"unstoppable", "hides every stop, by name; give what is in it a limit of its own"},
    {"upon_stopped", "makes a value of the stop, which the operation in it has heard"},
    {"let_stopped", "as upon_stopped"},
    {"stopped_as_optional", "as upon_stopped"},
    {"stopped_as_error", "as upon_stopped, an error"},
    {"bulk", "as then, before its function is called"},
    {"bulk_chunked", "as bulk"},
    {"bulk_unchunked", "as bulk"},
    {"sync_wait", "blocks a thread; the sender is given its limit"},
    {"sync_wait_with_variant", "as sync_wait"},
    {"schedule", "the scheduler's"},
    {"schedule_after", "the scheduler's"},
    {"schedule_at", "the scheduler's"},
    {"try_schedule", "as schedule; it waits for nothing else"},
    {"scheduler::try_schedule", "as scheduler::schedule"},
    {"contract_scheduler::try_schedule", "as scheduler::schedule"},
    {"inline_scheduler::try_schedule", "completes at once"},
    {"loop_scheduler::try_schedule", "as scheduler::schedule"},
    {"schedule_from", "as continues_on"},
};

using any_operation = ex::any_sender<
    ex::completion_signatures<ex::set_value_t(), ex::set_error_t(std::error_code),
                              ex::set_error_t(std::exception_ptr), ex::set_stopped_t()>>;

// One function, and how to make it wait.
struct waiting_operation {
    std::string name;
    std::function<any_operation()> as_sender;  // waits for an event that never comes
    std::function<any_operation()> in_a_task;  // that sender, awaited by a task
    std::function<any_operation()> again;      // the same object, once it can end
    std::function<task<>()> satisfied;         // runs beside `again`; it may be empty
    bool has_clock = true;                     // it observes its deadline itself
};

// `make` returns the operation.
template <class Make>
std::function<any_operation()> sender_of(Make make) {
    // Errors are copied: a shared error is sent as const.
    const auto copied = [](const auto& error) noexcept { return ex::just_error(error); };
    return [make, copied] {
        return any_operation(make() | ex::then([](auto&&...) noexcept {}) | ex::let_error(copied));
    };
}
template <class Make>
std::function<any_operation()> task_of(Make make) {
    const auto awaiting = [](Make made) -> task<> { (void)co_await made(); };
    return [make, awaiting] { return any_operation(awaiting(make)); };
}
template <class Make>
waiting_operation waits(std::string name, Make make, std::function<task<>()> satisfied = {}) {
    return {std::move(name), sender_of(make), task_of(make), sender_of(make), std::move(satisfied)};
}
template <class Make, class Again>
waiting_operation waits_never_again(std::string name, Make make, Again again) {
    return {std::move(name), sender_of(make), task_of(make), sender_of(again), {}};
}
// An operation that waits for others and has no clock of its own: only a timeout limits it.
inline waiting_operation without_clock(waiting_operation op) {
    op.has_clock = false;
    return op;
}

inline task<bool> times_out(any_operation op) {
    bool late = false;
    try {
        co_await ex::timeout(std::move(op), std::chrono::milliseconds(1));
    } catch (const std::system_error& error) {
        late = error.code() == std::errc::timed_out;
    }
    co_return late;
}
inline task<bool> loses_to_a_timer(io::context& loop, any_operation op) {
    co_return co_await ex::when_any(
        ex::then(loop.get_scheduler().schedule_after(std::chrono::milliseconds(1)),
                 []() noexcept { return true; }),
        ex::then(std::move(op), []() noexcept { return false; }));
}
inline task<bool> ends_with_its_scope(io::context& loop, any_operation op, bool elsewhere) {
    ex::counting_scope scope;
    bool stopped = false;
    auto noted = std::move(op) | ex::upon_error([](auto&&) noexcept {}) |
                 ex::upon_stopped([&stopped]() noexcept { stopped = true; });
    ex::spawn(std::move(noted), scope.get_token(),
              ex::prop(ex::get_scheduler, loop.get_scheduler()));
    co_await loop.get_scheduler().schedule_after(std::chrono::milliseconds(1));
    const bool waited = !stopped;
    std::thread other;
    if (elsewhere) {
        other = std::thread([&scope] { scope.request_stop(); });
    } else {
        scope.request_stop();
    }
    co_await scope.join();
    // A handler has no scheduler to return to.
    co_await loop.get_scheduler().schedule();
    if (other.joinable()) other.join();
    co_return waited&& stopped;
}
inline task<bool> ends_at_its_deadline(io::context& loop, any_operation op) {
    const ex::instant when(loop.now() + std::chrono::milliseconds(1));
    const std::optional<int> value = co_await ex::stopped_as_optional(ex::write_env(
        ex::then(std::move(op), []() noexcept { return 0; }), ex::prop(ex::get_deadline, when)));
    co_return !value && ex::instant(loop.now()) >= when;
}
inline task<bool> ends_by_itself(io::context& loop, const waiting_operation& op) {
    ex::counting_scope helpers;
    if (op.satisfied) {
        ex::spawn(op.satisfied() | ex::upon_error([](auto&&) noexcept {}), helpers.get_token(),
                  ex::prop(ex::get_scheduler, loop.get_scheduler()));
    }
    bool good = true;
    try {
        co_await op.again();
    } catch (const std::exception& error) {
        ADD_FAILURE() << op.name << ": " << error.what();
        good = false;
    }
    helpers.request_stop();
    co_await helpers.join();
    co_return good;
}

// Runs in a task on the loop. If `threads`, time is real, and another thread requests the stop.
inline task<> stop_in_every_way(io::context& loop, waiting_operation op, bool threads) {
    const time_point began = loop.now();
    for (int how = 0; how != 2; ++how) {
        const std::string which = op.name + (how == 0 ? ", a sender" : ", in a task");
        const std::function<any_operation()>& make = how == 0 ? op.as_sender : op.in_a_task;
        const bool timeout = co_await times_out(make());
        EXPECT_TRUE(timeout) << which << ", timeout";
        const bool when_any = co_await loses_to_a_timer(loop, make());
        EXPECT_TRUE(when_any) << which << ", when_any";
        const bool scope = co_await ends_with_its_scope(loop, make(), false);
        EXPECT_TRUE(scope) << which << ", scope";
        if (op.has_clock) {
            const bool deadline = co_await ends_at_its_deadline(loop, make());
            EXPECT_TRUE(deadline) << which << ", deadline";
        }
        if (threads) {
            const bool elsewhere = co_await ends_with_its_scope(loop, make(), true);
            EXPECT_TRUE(elsewhere) << which << ", scope stopped on another thread";
        }
        // A simulation's time is exact: each stop has taken effect at once.
        if (!threads) {
            EXPECT_LT(loop.now() - began, std::chrono::milliseconds(15)) << which;
        }
    }
    const bool again = co_await ends_by_itself(loop, op);
    EXPECT_TRUE(again) << op.name << " again";
}

// Runs a task on a loop to its end.
class on_loop {
public:
    explicit on_loop(io::context& loop) noexcept : loop_(&loop) {}
    void operator()(task<> work) const {
        bool done = false;
        io::context& loop = *loop_;
        const auto until_done = [](io::context& l, task<> w, bool& d) -> task<> {
            co_await std::move(w);
            d = true;
            l.stop();
        };
        ex::counting_scope scope;
        ex::spawn(ex::upon_error(
                      ex::starts_on(loop.get_scheduler(), until_done(loop, std::move(work), done)),
                      [](auto&&) noexcept { std::abort(); }),
                  scope.get_token());
        const io::context::work_guard guard(loop);
        loop.run_for(std::chrono::minutes(1));
        if (!done) {
            std::cerr << "an operation does not end\n";
            std::abort();  // what it uses must not be destroyed
        }
        loop.restart();
        this_thread::sync_wait(scope.join());
    }

private:
    io::context* loop_;
};

}  // namespace coppice::test
