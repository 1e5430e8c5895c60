// Plan: into_variant sends a variant of tuples.
#include <coppice/exec/connect.hpp>
#include <coppice/exec/into_variant.hpp>
#include <coppice/exec/just.hpp>
#include <coppice/exec/then.hpp>
#include <coppice/exec/when_all.hpp>

#include "probes.hpp"

#include <gtest/gtest.h>

#include <optional>

namespace {

namespace ex = coppice::execution;
using probes::outcome;

// Destroys the operation that completes it.
template <class Op>
class destroying_receiver {
public:
    using receiver_concept = ex::receiver_tag;
    destroying_receiver(std::optional<Op>& op, coppice::inplace_stop_source& source) noexcept
        : op_(&op), source_(&source) {}
    template <class... Args>
    void set_value(Args&&...) && noexcept {
        op_->reset();
    }
    void set_stopped() && noexcept { op_->reset(); }
    auto get_env() const noexcept { return probes::stop_env(*source_); }

private:
    std::optional<Op>* op_;
    coppice::inplace_stop_source* source_;
};
// An operation that can be constructed in an optional, and names its own receiver.
class self_destroying {
public:
    using sender = decltype(ex::when_all(probes::until_stopped(), probes::until_stopped(),
                                         probes::until_stopped()));
    using receiver = destroying_receiver<self_destroying>;
    self_destroying(std::optional<self_destroying>& self, coppice::inplace_stop_source& source)
        : op_(ex::connect(ex::when_all(probes::until_stopped(), probes::until_stopped(),
                                       probes::until_stopped()),
                          receiver(self, source))) {}
    void start() noexcept { ex::start(op_); }

private:
    ex::connect_result_t<sender, receiver> op_;
};

struct two_values {
    using sender_concept = ex::sender_tag;
    using completion_signatures =
        ex::completion_signatures<ex::set_value_t(int), ex::set_value_t(std::string)>;
    explicit two_values(bool first) noexcept : first_(first) {}
    template <class Rcvr>
    struct operation {
        using operation_state_concept = ex::operation_state_tag;
        operation(bool f, Rcvr r) noexcept : first(f), rcvr(std::move(r)) {}
        void start() & noexcept {
            if (first) {
                ex::set_value(std::move(rcvr), 1);
            } else {
                ex::set_value(std::move(rcvr), std::string("two"));
            }
        }
        bool first;
        Rcvr rcvr;
    };
    template <class Rcvr>
    auto connect(Rcvr rcvr) const noexcept {
        return operation<Rcvr>(first_, std::move(rcvr));
    }

private:
    bool first_;
};

TEST(exec_into_variant, sends_a_variant_of_tuples) {
    const auto index = [](auto v) { return static_cast<int>(v.index()); };
    EXPECT_EQ(outcome(ex::into_variant(two_values(true)) | ex::then(index)), "value(0)");
    EXPECT_EQ(outcome(two_values(false) | ex::into_variant() | ex::then(index)), "value(1)");
    using sndr = decltype(ex::into_variant(two_values(true)));
    using variant = std::variant<std::tuple<int>, std::tuple<std::string>>;
    using sigs = ex::completion_signatures_of_t<sndr, ex::env<>>;
    static_assert(std::is_same_v<sigs, ex::completion_signatures<ex::set_value_t(variant)>>);
    EXPECT_EQ(outcome(ex::into_variant(ex::just_error(1))), "error(1)");
    EXPECT_EQ(outcome(ex::into_variant(ex::just_stopped())), "stopped");
}

}  // namespace
