// Plan: allocator-aware-forward of [exec.snd.expos]: what an operation stores of its sender's data
// uses the allocator of the receiver's environment, if its type uses allocators.
#include <coppice/exec/connect.hpp>
#include <coppice/exec/internal/allocator_aware.hpp>
#include <coppice/exec/just.hpp>
#include <coppice/exec/then.hpp>

#include "probes.hpp"

#include <gtest/gtest.h>

#include <memory_resource>
#include <string>
#include <vector>

namespace {

namespace ex = coppice::execution;

// Says whose memory a value is in.
struct who {
    std::pmr::memory_resource* expected;
    std::string operator()(const auto&... values) const {
        std::string all;
        ((all += values.get_allocator().resource() == expected ? "ours " : "other "), ...);
        return all;
    }
};
class arena {
public:
    auto env() {
        return ex::prop(coppice::get_allocator, std::pmr::polymorphic_allocator<>(&memory));
    }
    std::pmr::monotonic_buffer_resource memory;
};

TEST(exec_snd_expos, the_values_of_just_use_the_environments_allocator) {
    arena a;
    const auto sndr = ex::just(std::pmr::string("a string that is longer than the small ones"),
                               std::pmr::vector<int>{1, 2, 3});
    EXPECT_EQ(probes::outcome(sndr | ex::then(who{&a.memory}), a.env()), "value(ours ours )");
    EXPECT_EQ(probes::outcome(sndr | ex::then(who{&a.memory})), "value(other other )");
}

TEST(exec_snd_expos, the_parts_of_a_pair_use_the_environments_allocator) {
    arena a;
    const auto sndr = ex::just(std::pair(1, std::pair(std::pmr::string("second"), 2)));
    const auto second = [&](const std::pair<int, std::pair<std::pmr::string, int>>& p) {
        return who{&a.memory}(p.second.first);
    };
    EXPECT_EQ(probes::outcome(sndr | ex::then(second), a.env()), "value(ours )");
}

// A function with memory of its own; its constructor takes the allocator first, or last.
struct first {
    using allocator_type = std::pmr::polymorphic_allocator<>;
    first() = default;
    first(const first&) = default;
    first(std::allocator_arg_t, const allocator_type& a, const first& other)
        : text(other.text, a) {}
    std::string operator()() const {
        return who{text.get_allocator().resource()}(text) + *text.data();
    }
    std::pmr::string text{"f"};
};
struct last {
    using allocator_type = std::pmr::polymorphic_allocator<>;
    explicit last(std::pmr::memory_resource* m) : expected(m) {}
    last(const last&) = default;
    last(const last& other, const allocator_type& a)
        : expected(other.expected), text(other.text, a) {}
    std::string operator()() const { return who{expected}(text); }
    std::pmr::memory_resource* expected;
    std::pmr::string text{"l"};
};

TEST(exec_snd_expos, the_function_of_then_uses_the_environments_allocator) {
    arena a;
    EXPECT_EQ(probes::outcome(ex::just() | ex::then(last(&a.memory)), a.env()), "value(ours )");
    EXPECT_EQ(probes::outcome(ex::just() | ex::then(last(&a.memory))), "value(other )");
    EXPECT_EQ(probes::outcome(ex::just() | ex::then(first()), a.env()), "value(ours f)");
}

TEST(exec_snd_expos,
     a_value_without_an_allocator_is_stored_as_it_is_and_connects_without_throwing) {
    arena a;
    using env = decltype(a.env());
    using receiver = probes::receiver<env>;
    static_assert(ex::nothrow_connectable<decltype(ex::just(1)), receiver>);
    static_assert(!ex::nothrow_connectable<decltype(ex::just(std::pmr::string())), receiver>);
    static_assert(
        ex::nothrow_connectable<decltype(ex::just(std::pmr::string())), probes::receiver<>>);
    static_assert(!ex::internal::uses_allocator_of<int, env> &&
                  ex::internal::uses_allocator_of<std::pmr::string, env>);
}

}  // namespace
