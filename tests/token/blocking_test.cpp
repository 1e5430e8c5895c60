// token/block.hpp and token/use_future.hpp: outcomes for threads that wait.
#include <coppice/execution.hpp>
#include <coppice/stop_token.hpp>
#include <coppice/token/block.hpp>
#include <coppice/token/transform.hpp>
#include <coppice/token/use_future.hpp>

#include "allocations.hpp"
#include "system.hpp"

#include <gtest/gtest.h>

#include <cerrno>
#include <cstddef>
#include <memory>
#include <new>
#include <string>
#include <system_error>
#include <thread>

namespace {

using namespace coppice;
using namespace coppice::test;
namespace ex = coppice::execution;

static_assert(std::is_same_v<decltype(failing(use_future)), std::future<void>>);
static_assert(std::is_same_v<decltype(at_once(1, use_future)), std::future<int>>);
static_assert(std::is_void_v<decltype(failing(block))>);

TEST(block, returns_the_result_of_another_thread_or_of_the_initiation) {
    for (int i = 0; i != 200; ++i) EXPECT_EQ(elsewhere(i, block), i);
    EXPECT_EQ(at_once(5, block), 5);
}

TEST(block, throws_the_error_or_stores_it_in_the_code) {
    EXPECT_THROW(failing(block), std::system_error);
    std::error_code ec;
    failing(block[ec]);
    EXPECT_EQ(ec, std::errc::io_error);
    EXPECT_EQ(elsewhere(3, block[ec]), 3);
    EXPECT_FALSE(ec);
}

TEST(block, returns_a_move_only_result) {
    const auto results =
        completion_token_transform<void(std::error_code, std::unique_ptr<int>, std::string)>(
            block, [](completion<std::unique_ptr<int>, std::string> done) noexcept {
                std::thread([done]() mutable {
                    std::move(done)(std::error_code(), std::make_unique<int>(7), "seven");
                }).detach();
            });
    EXPECT_EQ(*std::get<0>(results), 7);
}

TEST(block, a_stop_is_an_error) {
    stop_source source;
    std::thread stopper([&] { source.request_stop(); });
    std::error_code ec;
    const auto env = ex::prop(get_stop_token, source.get_token());
    until_stopped(bind_env(env, block[ec]));
    stopper.join();
    EXPECT_EQ(ec, std::errc::operation_canceled);
    EXPECT_THROW(until_stopped(bind_env(env, block)), std::system_error);
}

// Completes when it is driven.
struct driven {
    completion<int> done;
    int turns = 0;
    void operator()(completion<int> c) noexcept { done = c; }
    void drive(block_latch& latch) noexcept {
        while (!latch.is_set()) {
            if (++turns == 3) std::move(done)(std::error_code(), turns);
        }
    }
};

TEST(block, lets_the_initiation_drive_the_operation) {
    EXPECT_EQ((completion_token_transform<void(std::error_code, int)>(block, driven())), 3);
}

// Is asked first. Counts the calls in a struct that outlives it.
struct tried {
    struct calls {
        int ready = 0;
        int begun = 0;
    };
    static constexpr const char* name = "test::tried";
    calls* count;
    bool is_ready;
    std::errc failure{};
    bool throws = false;
    int tag = 0;  // what the initiation keeps of a failed try

    bool ready() noexcept {
        ++count->ready;
        tag = 1;
        return is_ready;
    }
    std::error_code error() noexcept {
        return failure == std::errc() ? std::error_code() : std::make_error_code(failure);
    }
    int take() {
        if (throws) throw std::bad_alloc();
        return 5;
    }
    int nothing() noexcept { return -1; }
    void operator()(completion<int> done) noexcept {
        ++count->begun;
        std::move(done)(std::error_code(), 10 + tag);
    }
    template <class Token>
    int run(Token&& token) && {
        return completion_token_transform<void(std::error_code, int)>(std::forward<Token>(token),
                                                                      std::move(*this));
    }
};

TEST(block, begins_only_an_operation_that_was_tried_without_success) {
    tried::calls count;
    std::error_code ec = std::make_error_code(std::errc::io_error);
    EXPECT_EQ((tried{&count, true}.run(block)), 5);
    EXPECT_EQ((tried{&count, true}.run(block[ec])), 5);
    EXPECT_FALSE(ec);
    EXPECT_EQ(count.ready, 2);
    EXPECT_EQ(count.begun, 0);
    EXPECT_EQ((tried{&count, false}.run(block)), 11);
    EXPECT_EQ((tried{&count, false}.run(block[ec])), 11);
    EXPECT_EQ(count.ready, 4);
    EXPECT_EQ(count.begun, 2);
}

TEST(block, throws_the_error_of_a_try_under_its_name_or_stores_it) {
    tried::calls count;
    try {
        tried{&count, true, std::errc::broken_pipe}.run(block);
        FAIL();
    } catch (const std::system_error& e) {
        EXPECT_EQ(e.code(), std::errc::broken_pipe);
        EXPECT_EQ(std::string(e.what()).find("test::tried: "), 0u);
    }
    std::error_code ec;
    EXPECT_EQ((tried{&count, true, std::errc::broken_pipe}.run(block[ec])), -1);
    EXPECT_EQ(ec, std::errc::broken_pipe);
    EXPECT_THROW((tried{&count, true, std::errc(), true}.run(block)), std::bad_alloc);
    EXPECT_EQ((tried{&count, true, std::errc(), true}.run(block[ec])), -1);
    EXPECT_EQ(ec, std::errc::not_enough_memory);
    EXPECT_EQ(count.begun, 0);
}

TEST(block, tries_no_operation_that_has_an_environment_or_that_its_caller_keeps) {
    tried::calls count;
    inplace_stop_source source;
    source.request_stop();
    const auto env = ex::prop(get_stop_token, source.get_token());
    std::error_code ec;
    EXPECT_EQ((tried{&count, true}.run(bind_env(env, block))), 10);
    EXPECT_EQ((tried{&count, true}.run(bind_env(env, block[ec]))), 10);
    tried kept{&count, true};
    EXPECT_EQ((completion_token_transform<void(std::error_code, int)>(block, kept)), 10);
    EXPECT_EQ(count.ready, 0);
}

TEST(use_future, the_future_gets_the_result_later) {
    test::system os;
    std::future<int> first = os.echo(1, use_future);
    std::future<int> second = os.echo(2, use_future);
    EXPECT_EQ(first.wait_for(std::chrono::seconds(0)), std::future_status::timeout);
    os.run();
    EXPECT_EQ(first.get() + second.get(), 3);
    EXPECT_EQ(elsewhere(4, use_future).get(), 4);
    EXPECT_EQ(at_once(4, use_future).get(), 4);
}

TEST(use_future, the_future_throws_the_error) {
    // On one thread, because ThreadSanitizer does not see the reference count of exceptions, which
    // is inside libstdc++.
    test::system os;
    std::future<int> f = os.echo(-EIO, use_future);
    os.run();
    try {
        f.get();
        FAIL();
    } catch (const std::system_error& e) {
        EXPECT_EQ(e.code(), std::errc::io_error);
    }
}

TEST(use_future, a_future_may_be_dropped_before_the_operation_completes) {
    test::system os;
    {
        const std::future<int> dropped = os.echo(1, use_future);
    }
    EXPECT_EQ(os.pending(), 1);
    os.run();
}

TEST(use_future, a_stop_is_an_error) {
    inplace_stop_source source;
    std::future<void> f =
        until_stopped(bind_env(ex::prop(get_stop_token, source.get_token()), use_future));
    EXPECT_EQ(f.wait_for(std::chrono::seconds(0)), std::future_status::timeout);
    source.request_stop();
    EXPECT_THROW(f.get(), std::system_error);
}

// A user's token: counts completions in an int that outlives the operation.
struct counting {
    int* count;
    template <class... R, class Initiation>
    void initiate(signature<R...>, Initiation&& initiation) const {
        struct state : completion_state<R...> {
            state(int* c, Initiation&& i)
                : completion_state<R...>(&counted), count(c), kept(std::move(i)) {}
            static void counted(completion_state<R...>& self, std::error_code, R...) noexcept {
                state* const s = static_cast<state*>(&self);
                ++*s->count;
                delete s;
            }
            int* count;
            std::remove_cvref_t<Initiation> kept;
        };
        state* const s = new state(count, std::move(initiation));
        s->kept(completion<R...>(*s));
    }
};

TEST(completion_token_transform, accepts_a_user_defined_token) {
    test::system os;
    int count = 0;
    os.echo(1, counting{&count});
    os.echo(2, counting{&count});
    os.run();
    EXPECT_EQ(count, 2);
}

TEST(an_error, that_finds_no_memory_for_its_text_is_bad_alloc) {
    if (!fail_allocation(0)) GTEST_SKIP() << "operator new is the sanitizer's";
    const auto expect_bad_alloc = [](auto run) {
        int without_memory = 0;
        bool failed = true;
        for (std::size_t n = 1; failed; ++n) {
            ASSERT_LT(n, 50u);
            fail_allocation(n);
            std::thread([&] {
                try {
                    run();
                } catch (const std::bad_alloc&) {
                    ++without_memory;
                } catch (const std::system_error&) {
                }
            }).join();
            failed = allocation_has_failed();
        }
        EXPECT_GT(without_memory, 0);
    };
    const auto fail = [](auto token) {
        return completion_token_transform<void(std::error_code)>(
            token, [](completion<> done) noexcept {
                std::move(done)(std::make_error_code(std::errc::io_error));
            });
    };
    expect_bad_alloc([&] { fail(block); });
    expect_bad_alloc([&] { fail(use_future).get(); });
}

}  // namespace
