// Plan: exec/internal/starting.hpp: tells a completion inside start() from one outside and from one
// on another thread.
#include <coppice/exec/internal/starting.hpp>

#include <coppice/exec/as_awaitable.hpp>

#include <gtest/gtest.h>

#include <coroutine>
#include <cstddef>
#include <exception>
#include <new>
#include <thread>
#include <utility>

namespace {

namespace ex = coppice::execution;
using ex::internal::starting;

TEST(starting, notes_only_a_completion_of_that_operation_inside_start) {
    const int outer = 0, inner = 0, other = 0;
    const starting *outer_mark, *inner_mark;
    starting first(&outer, outer_mark);
    {
        starting second(&inner, inner_mark);
        EXPECT_FALSE(starting::takes_completion_of(&other, inner_mark));
        EXPECT_TRUE(starting::takes_completion_of(&outer, outer_mark));
        EXPECT_FALSE(second.has_completed());
        EXPECT_TRUE(starting::takes_completion_of(&inner, inner_mark));
        EXPECT_TRUE(second.has_completed());
    }
    EXPECT_FALSE(starting::takes_completion_of(&inner, inner_mark));
    EXPECT_TRUE(first.has_completed());
}

TEST(starting, does_not_note_a_completion_on_another_thread) {
    const int operation = 0;
    const starting* mark;
    starting start(&operation, mark);
    std::thread([&] { EXPECT_FALSE(starting::takes_completion_of(&operation, mark)); }).join();
    EXPECT_FALSE(start.has_completed());
}

TEST(starting, tells_the_next_operation_at_the_same_address_apart) {
    const int place = 0;
    const starting *first_mark, *second_mark;
    starting first(&place, first_mark);
    std::thread([&] { const starting second(&place, second_mark); }).join();
    EXPECT_FALSE(starting::takes_completion_of(&place, second_mark));
    EXPECT_FALSE(first.has_completed());
}

// Two coroutines run one after the other. Their frames are at one address and differ only in what
// they note. The first is completed on another thread inside its start, the second on the first's
// thread.
alignas(64) std::byte frame_memory[4096];
struct both_starts {
    void (*complete)(void*) = nullptr;
    void* operation = nullptr;
    int started = 0;
    int ended[2] = {0, 0};
    std::thread::id ended_on[2];
};

class in_the_same_frame {
public:
    struct promise_type : ex::with_awaitable_senders<promise_type> {
        static void* operator new(std::size_t bytes) {
            if (bytes > sizeof(frame_memory)) throw std::bad_alloc();
            return frame_memory;
        }
        static void operator delete(void*, std::size_t) noexcept {}
        in_the_same_frame get_return_object() noexcept { return {}; }
        std::suspend_never initial_suspend() noexcept { return {}; }
        std::suspend_never final_suspend() noexcept { return {}; }
        void unhandled_exception() noexcept { std::terminate(); }
        void return_void() noexcept {}
    };
};
in_the_same_frame start_second(both_starts& both);

// An awaitable that is completed through `both`. The start of the first completes it on another
// thread, which starts the second there, and then completes the second.
struct completed_by_hand {
    using sender_concept = ex::sender_tag;
    using completion_signatures = ex::completion_signatures<ex::set_value_t()>;
    template <class Rcvr>
    struct operation {
        using operation_state_concept = ex::operation_state_tag;
        static void complete(void* op) {
            ex::set_value(std::move(static_cast<operation*>(op)->rcvr));
        }
        void start() & noexcept {
            both->complete = &complete;
            void* const before = std::exchange(both->operation, this);
            if (++both->started == 2) {
                EXPECT_EQ(before, this) << "the test needs frames that are alike";
                return;
            }
            both_starts& kept = *both;
            std::thread([&] {
                kept.complete(kept.operation);
                start_second(kept);
            }).join();
            kept.complete(kept.operation);
        }
        both_starts* both;
        Rcvr rcvr;
    };
    template <class Rcvr>
    operation<Rcvr> connect(Rcvr rcvr) const noexcept {
        return {both, std::move(rcvr)};
    }
    both_starts* both;
};
template <int N>
in_the_same_frame await_by_hand(both_starts& both) {
    co_await completed_by_hand{&both};
    ++both.ended[N];
    both.ended_on[N] = std::this_thread::get_id();
}
in_the_same_frame start_second(both_starts& both) {
    return await_by_hand<1>(both);
}

TEST(starting, does_not_resume_an_await_twice_when_its_frame_is_reused_inside_start) {
    both_starts both;
    await_by_hand<0>(both);
    EXPECT_EQ(both.ended[0], 1);
    EXPECT_EQ(both.ended[1], 1);
    EXPECT_NE(both.ended_on[0], std::this_thread::get_id());
    EXPECT_EQ(both.ended_on[1], std::this_thread::get_id());
}

}  // namespace
