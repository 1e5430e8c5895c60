// expect: to schedule on Env's start_scheduler_type can fail
// errors: 1
#include <coppice/task/task.hpp>

namespace ex = coppice::execution;

struct failing_scheduler {
    using scheduler_concept = ex::scheduler_tag;
    struct attrs {
        template <class Tag>
        failing_scheduler query(ex::get_completion_scheduler_t<Tag>) const noexcept;
    };
    struct sender {
        using sender_concept = ex::sender_tag;
        using completion_signatures =
            ex::completion_signatures<ex::set_value_t(), ex::set_error_t(int)>;
        template <class Rcvr>
        struct operation {
            using operation_state_concept = ex::operation_state_tag;
            void start() & noexcept;
        };
        template <class Rcvr>
        operation<Rcvr> connect(Rcvr) const;
        attrs get_env() const noexcept;
    };
    sender schedule() const;
    bool operator==(const failing_scheduler&) const = default;
};
struct on_a_failing_scheduler {
    using start_scheduler_type = failing_scheduler;
};
struct event {
    event(event&&) = delete;
    event();
    bool await_ready();
    void await_suspend(std::coroutine_handle<>);
    void await_resume();
};
coppice::task<void, on_a_failing_scheduler> wrong() {
    co_await event();
}
