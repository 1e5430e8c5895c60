// A broadcast receive whose item cannot be copied: each token gets the error, and nothing is taken.
#include <coppice/channel.hpp>
#include <coppice/execution.hpp>
#include <coppice/task.hpp>
#include <coppice/token.hpp>

#include "detached.hpp"

#include <gtest/gtest.h>

#include <exception>
#include <future>
#include <new>
#include <optional>
#include <stdexcept>
#include <system_error>
#include <tuple>
#include <utility>
#include <variant>
#include <vector>

namespace {

using namespace coppice;
using namespace coppice::test;
namespace ex = coppice::execution;

enum class failure { none, memory, system, other };

struct fragile {
    static inline failure next = failure::none;  // of the next copy

    explicit fragile(int n) noexcept : number(n) {}
    fragile(fragile&&) noexcept = default;
    fragile(const fragile& other) : number(other.number) {
        switch (std::exchange(next, failure::none)) {
            case failure::none:
                break;
            case failure::memory:
                throw std::bad_alloc();
            case failure::system:
                throw std::system_error(std::make_error_code(std::errc::io_error));
            case failure::other:
                throw std::runtime_error("no copy");
        }
    }
    ~fragile() = default;
    int number;
};
using item = std::optional<fragile>;

// A receiver, of which each receive may find the item there, or wait for it.
class failing_copies : public testing::TestWithParam<bool> {
protected:
    // Runs begin(), so that its copy fails, and sends the item before or after.
    template <class Begin>
    void receive_after(failure f, Begin begin) {
        if (!GetParam()) c.send(fragile(++sent));
        fragile::next = f;
        begin();
        if (GetParam()) c.send(fragile(++sent));
        EXPECT_EQ(fragile::next, failure::none) << "nothing was copied";
    }
    // The item whose copy failed is still the next one.
    void expect_nothing_taken() {
        const item got = from.try_receive();
        EXPECT_TRUE(got && got->number == sent);
        EXPECT_EQ(from.missed(), 0u);
    }

    broadcast_channel<fragile> c{2};
    broadcast_channel<fragile>::receiver from = c.subscribe();
    int sent = 0;
};
INSTANTIATE_TEST_SUITE_P(waits, failing_copies, testing::Bool());

TEST_P(failing_copies, a_callback_is_given_the_code_of_the_exception) {
    for (const auto& [thrown, expected] :
         {std::pair{failure::memory, std::errc::not_enough_memory},
          std::pair{failure::system, std::errc::io_error},
          std::pair{failure::other, std::errc::state_not_recoverable}}) {
        std::error_code error;
        int calls = 0;
        receive_after(thrown, [&] {
            from.receive([&](std::error_code ec, item got) {
                error = ec;
                ++calls;
                EXPECT_FALSE(got);
            });
        });
        EXPECT_EQ(error, expected);
        EXPECT_EQ(calls, 1);
        expect_nothing_taken();
    }
}

TEST_P(failing_copies, a_future_has_the_exception) {
    std::future<item> got;
    receive_after(failure::other, [&] { got = from.receive(use_future); });
    EXPECT_THROW(got.get(), std::runtime_error);
    expect_nothing_taken();
}

TEST(a_failing_copy, a_blocked_thread_gets_the_exception_or_its_code) {
    broadcast_channel<fragile> c(2);
    auto from = c.subscribe();
    c.send(fragile(1));
    fragile::next = failure::other;
    EXPECT_THROW(std::ignore = from.receive(block), std::runtime_error);
    fragile::next = failure::memory;
    std::error_code error;
    EXPECT_FALSE(from.receive(block[error]));
    EXPECT_EQ(error, std::errc::not_enough_memory);
    EXPECT_EQ(from.receive(block[error])->number, 1);
    EXPECT_FALSE(error);
}

TEST_P(failing_copies, a_coroutine_without_an_environment_gets_the_exception) {
    bool caught = false;
    auto await = [](broadcast_channel<fragile>::receiver& r, bool& told) -> detached {
        try {
            co_await r.receive();
        } catch (const std::runtime_error&) {
            told = true;
        }
    };
    receive_after(failure::other, [&] { await(from, caught); });
    EXPECT_TRUE(caught);
    expect_nothing_taken();
}

TEST_P(failing_copies, a_task_that_stores_errors_gets_the_code) {
    std::error_code error;
    bool empty = false;
    auto await = [](broadcast_channel<fragile>::receiver& r, std::error_code& code,
                    bool& nothing) -> task<> { nothing = !co_await r.receive(use_await[code]); };
    auto choose = [](broadcast_channel<fragile>::receiver& r, std::error_code& code,
                     bool& nothing) -> task<> {
        const auto got = co_await select(r.receive(use_await[code]));
        nothing = !std::get<0>(got);
    };
    ex::counting_scope scope;
    const ex::prop in_place(ex::get_scheduler, ex::inline_scheduler());
    const auto run = [&](task<> work) {
        receive_after(failure::memory, [&] {
            ex::spawn(std::move(work) | ex::upon_error([](auto&&) noexcept { ADD_FAILURE(); }),
                      scope.get_token(), in_place);
        });
        EXPECT_EQ(error, std::errc::not_enough_memory);
        EXPECT_TRUE(empty);
        expect_nothing_taken();
        error.clear();
        empty = false;
    };
    run(await(from, error, empty));
    run(choose(from, error, empty));
    coppice::this_thread::sync_wait(scope.join());
}

// Keeps the error that it is sent.
struct keeper {
    using receiver_concept = ex::receiver_tag;
    std::error_code* code;
    std::exception_ptr* exception;
    template <class... Values>
    void set_value(Values&&...) && noexcept {
        ADD_FAILURE() << "it was copied";
    }
    void set_error(std::error_code error) && noexcept { *code = error; }
    void set_error(std::exception_ptr error) && noexcept { *exception = std::move(error); }
    void set_stopped() && noexcept {}
};

TEST_P(failing_copies, a_sender_sends_the_code) {
    std::error_code code;
    auto s = ex::connect(from.receive(), keeper{&code, nullptr});
    receive_after(failure::memory, [&] { ex::start(s); });
    EXPECT_EQ(code, std::errc::not_enough_memory);
    expect_nothing_taken();
}

TEST_P(failing_copies, a_select_that_is_a_sender_sends_the_exception) {
    std::error_code code;
    std::exception_ptr exception;
    channel<int> other(1);
    auto s = ex::connect(select(other.receive(), from.receive()), keeper{&code, &exception});
    receive_after(failure::other, [&] { ex::start(s); });
    ASSERT_TRUE(exception);
    EXPECT_THROW(std::rethrow_exception(exception), std::runtime_error);
    expect_nothing_taken();
    EXPECT_TRUE(other.try_send(1));  // and no waiter was left there
    EXPECT_EQ(other.size(), 1u);
}

TEST_P(failing_copies, a_select_of_a_range_that_is_a_sender_sends_the_exception) {
    std::error_code code;
    std::exception_ptr exception;
    std::vector<decltype(from.receive())> ops;
    ops.push_back(from.receive());
    auto s = ex::connect(select_range(std::move(ops)), keeper{&code, &exception});
    receive_after(failure::other, [&] { ex::start(s); });
    EXPECT_TRUE(exception);
    expect_nothing_taken();
}

}  // namespace
