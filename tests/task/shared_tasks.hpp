// Shared tasks and what waits for them: what the tests of task/shared_task.hpp share.
#pragma once

#include <coppice/exec/connect.hpp>
#include <coppice/exec/sync_wait.hpp>
#include <coppice/task/shared_task.hpp>
#include <coppice/task/task.hpp>

#include "turnstile.hpp"
#include "witness.hpp"

#include <string>
#include <tuple>
#include <type_traits>
#include <utility>

namespace coppice::test {

template <class T>
T run(task<T> t) {
    auto result = this_thread::sync_wait(std::move(t));
    if constexpr (!std::is_void_v<T>) return std::get<0>(*std::move(result));
}

inline shared_task<std::string> counted(int& runs) {
    ++runs;
    co_return "result";
}
inline shared_task<int> gated(turnstile& gate, int& alive) {
    const witness local(alive);
    co_await gate.wait();
    co_return 7;
}
// A waiter of its own, with its own stop source.
struct waiter {
    explicit waiter(const shared_task<int>& s)
        : op(execution::connect(s, counting_receiver(seen))) {}
    counts seen;
    execution::connect_result_t<const shared_task<int>&, counting_receiver> op;
};

}  // namespace coppice::test
