// Plan: properties of every join (when_all, when_any, when_all_range, timeout): where it completes;
// another thread may destroy the operation as soon as it has completed; misuse.
#include <coppice/exec/connect.hpp>
#include <coppice/exec/internal/join.hpp>
#include <coppice/exec/just.hpp>
#include <coppice/exec/stop_when.hpp>
#include <coppice/exec/timeout.hpp>
#include <coppice/exec/when_all.hpp>
#include <coppice/exec/when_all_range.hpp>
#include <coppice/exec/when_any.hpp>
#include <coppice/exec/write_env.hpp>

#include "probes.hpp"

#include <gtest/gtest.h>

#include <functional>
#include <memory_resource>
#include <optional>
#include <thread>
#include <vector>

#include "until_stopped.hpp"

namespace {

namespace ex = coppice::execution;
using coppice::test::endless_timers;
using coppice::test::until_stopped;

template <class Sndr>
auto limited(Sndr sndr) {
    return ex::write_env(ex::timeout(std::move(sndr), ex::time_span(1)),
                         ex::prop(ex::get_timed_scheduler, endless_timers()));
}
struct all {
    static auto of(auto a, auto b) { return ex::when_all(a, b); }
};
struct any {
    static auto of(auto a, auto b) { return ex::when_any(a, b); }
};
struct range {
    static auto of(auto a, decltype(a) b) { return ex::when_all_range(std::vector{a, b}); }
};
struct limit {
    static auto of(auto a, auto) { return limited(a); }
};
struct nested {
    static auto of(auto a, auto b) {
        return ex::when_all(ex::when_any(limited(a), b),
                            ex::when_all_range(std::vector(2, ex::when_any(a, b))));
    }
};

// A receiver that calls a function for any completion.
class calling_receiver {
public:
    using receiver_concept = ex::receiver_tag;
    calling_receiver(const std::function<void()>& f, coppice::inplace_stop_source& source) noexcept
        : f_(&f), source_(&source) {}
    template <class... Args>
    void set_value(Args&&...) && noexcept {
        (*f_)();
    }
    template <class Error>
    void set_error(Error&&) && noexcept {
        (*f_)();
    }
    void set_stopped() && noexcept { (*f_)(); }
    auto get_env() const noexcept { return probes::stop_env(*source_); }

private:
    const std::function<void()>* f_;
    coppice::inplace_stop_source* source_;
};

template <class Algorithm>
class join : public testing::Test {
protected:
    template <class Sndr>
    using operation_of = ex::connect_result_t<Sndr, calling_receiver>;
};
using algorithms = testing::Types<all, any, range, limit, nested>;
class algorithm_names {
public:
    template <class Algorithm>
    static std::string GetName(int) {
        if (std::is_same_v<Algorithm, all>) return "when_all";
        if (std::is_same_v<Algorithm, any>) return "when_any";
        if (std::is_same_v<Algorithm, range>) return "when_all_range";
        if (std::is_same_v<Algorithm, limit>) return "timeout";
        return "nested";
    }
};
TYPED_TEST_SUITE(join, algorithms, algorithm_names);

// The requester is still inside the request when the other thread destroys the operation.
TYPED_TEST(join, may_be_destroyed_by_another_thread_while_a_stop_ends_its_children) {
    using sndr = decltype(TypeParam::of(until_stopped(), until_stopped()));
    coppice::inplace_stop_source source;
    std::unique_ptr<coppice::manual_lifetime<ex::connect_result_t<sndr, calling_receiver>>> op;
    op = std::make_unique<typename decltype(op)::element_type>();
    int completions = 0;
    const std::function<void()> destroy = [&] {
        ++completions;
        std::thread([&] {
            op->destroy();
            op.reset();
        }).join();
    };
    op->construct_with([&] {
        return ex::connect(TypeParam::of(until_stopped(), until_stopped()),
                           calling_receiver(destroy, source));
    });
    ex::start(op->get());
    EXPECT_EQ(completions, 0);
    source.request_stop();
    EXPECT_EQ(completions, 1);
}

// Two threads request a stop of a fused token at once; the first request passes the stop on.
TYPED_TEST(join, completes_once_under_two_concurrent_stops) {
    for (int round = 0; round != 100; ++round) {
        coppice::inplace_stop_source sources[2];
        coppice::inplace_stop_source none;
        const auto make = [&] {
            return ex::stop_when(ex::stop_when(TypeParam::of(until_stopped(), until_stopped()),
                                               sources[0].get_token()),
                                 sources[1].get_token());
        };
        std::optional<
            coppice::manual_lifetime<ex::connect_result_t<decltype(make()), calling_receiver>>>
            op(std::in_place);
        coppice::internal::atomic<int> completions{0};
        const std::function<void()> count = [&] {
            completions.fetch_add(1, coppice::internal::release);
        };
        op->construct_with([&] { return ex::connect(make(), calling_receiver(count, none)); });
        ex::start(op->get());
        std::thread first([&] { sources[0].request_stop(); });
        std::thread second([&] { sources[1].request_stop(); });
        while (completions.load(coppice::internal::acquire) == 0) std::this_thread::yield();
        op->destroy();
        op.reset();
        first.join();
        second.join();
        EXPECT_EQ(completions.load(coppice::internal::acquire), 1);
    }
}

TYPED_TEST(join, completes_inside_its_start_if_it_was_stopped_before) {
    coppice::inplace_stop_source source;
    source.request_stop();
    int completions = 0;
    const std::function<void()> count = [&] { ++completions; };
    auto op = ex::connect(TypeParam::of(until_stopped(), until_stopped()),
                          calling_receiver(count, source));
    ex::start(op);
    EXPECT_EQ(completions, 1);
}

TYPED_TEST(join, names_itself_in_messages_about_misuse) {
    if (std::is_same_v<TypeParam, nested>) return;
    const std::string name =
        testing::UnitTest::GetInstance()->current_test_suite()->name() + std::string();
    const std::string algorithm = name.substr(name.find('/') + 1);
    const auto misuse = [](bool twice) {
        coppice::inplace_stop_source source;
        const std::function<void()> nothing = [] {};
        auto op = ex::connect(TypeParam::of(until_stopped(), until_stopped()),
                              calling_receiver(nothing, source));
        ex::start(op);
        if (twice) ex::start(op);
    };
    EXPECT_DEATH(misuse(true), "an operation of " + algorithm + " was started twice");
    EXPECT_DEATH(misuse(false),
                 "an operation of " + algorithm + " was destroyed while it was running");
}

// A receiver without an environment once it has been moved from.
class moved_receiver {
public:
    using receiver_concept = ex::receiver_tag;
    moved_receiver(std::pmr::memory_resource& memory, int& completions) noexcept
        : memory_(&memory), completions_(&completions) {}
    moved_receiver(moved_receiver&& other) noexcept
        : memory_(std::exchange(other.memory_, nullptr)), completions_(other.completions_) {}
    template <class... Args>
    void set_value(Args&&...) && noexcept {
        const moved_receiver taken(std::move(*this));
        ++*completions_;
    }
    template <class Error>
    void set_error(Error&&) && noexcept {}
    void set_stopped() && noexcept {}
    auto get_env() const noexcept {
        if (memory_ == nullptr) std::abort();
        return ex::prop(coppice::get_allocator, std::pmr::polymorphic_allocator<>(memory_));
    }

private:
    std::pmr::memory_resource* memory_;
    int* completions_;
};

TEST(when_all_range, frees_its_children_without_using_the_completed_receiver) {
    std::pmr::unsynchronized_pool_resource memory;
    int completions = 0;
    {
        auto op = ex::connect(ex::when_all_range(std::vector(3, ex::just(1))),
                              moved_receiver(memory, completions));
        ex::start(op);
    }
    EXPECT_EQ(completions, 1);
}

}  // namespace
