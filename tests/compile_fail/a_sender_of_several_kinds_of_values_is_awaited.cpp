// expect: write co_await into_variant\(sender\)
// errors: 1
#include <coppice/task/task.hpp>

namespace ex = coppice::execution;

struct number_or_nothing {
    using sender_concept = ex::sender_tag;
    using completion_signatures =
        ex::completion_signatures<ex::set_value_t(int), ex::set_value_t()>;
    template <class Rcvr>
    struct operation {
        using operation_state_concept = ex::operation_state_tag;
        void start() & noexcept;
    };
    template <class Rcvr>
    operation<Rcvr> connect(Rcvr) const;
};
coppice::task<> wrong() {
    co_await number_or_nothing();
}
