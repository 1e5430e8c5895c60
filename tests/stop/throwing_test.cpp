// Subscribed functions that throw: each exception goes to the handler of the request that runs the
// function, however many links lie between, and all functions run.
#include <coppice/stop_token.hpp>

#include "emulated.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <exception>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace {

using namespace coppice;
using messages = std::vector<std::string>;

// A handler that records what the exceptions say.
auto noting(messages& said) {
    return [&said](std::exception_ptr thrown) {
        try {
            std::rethrow_exception(std::move(thrown));
        } catch (const std::runtime_error& e) {
            said.push_back(e.what());
        }
    };
}

// Subscribes a function that throws `what`.
void throws_on_stop(const stop_token& token, std::string what) {
    token.subscribe([what = std::move(what)] { throw std::runtime_error(what); });
}
void throws_on_stop(const stop_source& source, std::string what) {
    throws_on_stop(source.get_token(), std::move(what));
}

messages sorted(messages said) {
    std::sort(said.begin(), said.end());
    return said;
}

TEST(stop_throwing, exceptions_of_a_linked_source_go_to_the_requester_of_its_parent) {
    stop_source server;
    const stop_source request = stop_source::linked_to(server.get_token());
    int runs = 0;
    request.get_token().subscribe([&] { ++runs; });
    throws_on_stop(request, "request");
    throws_on_stop(server, "server");
    messages said;
    EXPECT_TRUE(server.request_stop({1, "shutdown"}, noting(said)));
    EXPECT_EQ(sorted(said), (messages{"request", "server"}));
    EXPECT_EQ(runs, 1);
}

TEST(stop_throwing, in_a_chain_each_source_reports_once) {
    for (const int links : {2, 3, 1'000}) {
        const stop_source first;
        std::vector<stop_source> all{first};
        for (int i = 0; i != links; ++i) {
            all.push_back(stop_source::linked_to(all.back().get_token()));
        }
        for (const stop_source& source : all) {
            throws_on_stop(source, "one");
            throws_on_stop(source, "two");
        }
        messages said;
        EXPECT_TRUE(stop_source(first).request_stop({}, noting(said)));
        EXPECT_EQ(said.size(), 2 * all.size());
    }
}

// The middle of the chain has no subscription and no handle, and the last state dies in the
// throwing function.
TEST(stop_throwing, a_chain_whose_last_handle_is_dropped_meanwhile_still_reports) {
    stop_source first;
    std::optional<stop_source> last = first;
    for (int i = 0; i != 5; ++i) last = stop_source::linked_to(last->get_token());
    throws_on_stop(*last, "before");
    last->get_token().subscribe([&] {
        last.reset();
        throw std::runtime_error("the last handle is gone");
    });
    throws_on_stop(*last, "after");
    messages said;
    EXPECT_TRUE(first.request_stop({}, noting(said)));
    EXPECT_EQ(said, (messages{"after", "the last handle is gone", "before"}));
}

TEST(stop_throwing, a_diamond_reports_each_function_once) {
    stop_source top;
    const stop_source left = stop_source::linked_to(top.get_token());
    const stop_source right = stop_source::linked_to(top.get_token());
    const stop_source bottom = stop_source::linked_to(left.get_token(), right.get_token());
    const stop_source below = stop_source::linked_to(bottom.get_token(), top.get_token());
    throws_on_stop(left, "left");
    throws_on_stop(right, "right");
    throws_on_stop(bottom, "bottom");
    throws_on_stop(below, "below");
    messages said;
    EXPECT_TRUE(top.request_stop({}, noting(said)));
    EXPECT_EQ(sorted(said), (messages{"below", "bottom", "left", "right"}));
}

// A link that is made inside a callback of the stop is stopped from the beginning.
TEST(stop_throwing, a_function_subscribed_through_a_stopped_link_throws_to_its_subscriber) {
    stop_source server;
    int thrown = 0;
    stop_callback callback(server.get_token(), [&] {
        const stop_source late = stop_source::linked_to(server.get_token());
        EXPECT_TRUE(late.stop_requested());
        try {
            throws_on_stop(late, "late");
        } catch (const std::runtime_error&) {
            ++thrown;
        }
    });
    const stop_source request = stop_source::linked_to(server.get_token());
    throws_on_stop(request, "request");
    messages said;
    EXPECT_TRUE(server.request_stop({}, noting(said)));
    EXPECT_EQ(said, messages{"request"});
    EXPECT_EQ(thrown, 1);
}

// Linked to a source that is being stopped, and to one that is stopped next, which finds it
// stopped.
TEST(stop_throwing, a_request_inside_a_callback_uses_its_own_handler) {
    stop_source outer;
    stop_source inner;
    const stop_source of_outer = stop_source::linked_to(outer.get_token());
    const stop_source of_inner = stop_source::linked_to(inner.get_token());
    const stop_source of_both = stop_source::linked_to(inner.get_token(), outer.get_token());
    throws_on_stop(of_inner, "of inner");
    throws_on_stop(of_both, "of both");
    messages inner_said;
    of_outer.get_token().subscribe([&] {
        inner.request_stop({}, noting(inner_said));
        throw std::runtime_error("of outer");
    });
    messages outer_said;
    EXPECT_TRUE(outer.request_stop({}, noting(outer_said)));
    // The order of outer's callbacks decides which request stops `of_both`; its function throws
    // once.
    messages both = inner_said;
    both.insert(both.end(), outer_said.begin(), outer_said.end());
    EXPECT_EQ(sorted(both), (messages{"of both", "of inner", "of outer"}));
    EXPECT_EQ(std::count(inner_said.begin(), inner_said.end(), "of inner"), 1);
    EXPECT_EQ(std::count(outer_said.begin(), outer_said.end(), "of outer"), 1);
}

TEST(stop_throwing, the_request_that_wins_a_linked_source_receives_its_exceptions) {
    stop_source server;
    stop_source request = stop_source::linked_to(server.get_token());
    throws_on_stop(request, "request");
    throws_on_stop(server, "server");
    messages first;
    messages second;
    EXPECT_TRUE(request.request_stop({}, noting(first)));
    EXPECT_TRUE(server.request_stop({}, noting(second)));
    EXPECT_EQ(first, messages{"request"});
    EXPECT_EQ(second, messages{"server"});
}

TEST(stop_throwing, two_concurrent_requests_share_the_functions_of_a_chain) {
    for (int round = 0; round != test::repeated(200); ++round) {
        stop_source top;
        stop_source middle = stop_source::linked_to(top.get_token());
        const stop_source bottom = stop_source::linked_to(middle.get_token());
        throws_on_stop(top, "top");
        throws_on_stop(middle, "middle");
        throws_on_stop(bottom, "bottom");
        messages of_top;
        messages of_middle;
        std::thread other([&] { middle.request_stop({}, noting(of_middle)); });
        top.request_stop({}, noting(of_top));
        other.join();
        of_top.insert(of_top.end(), of_middle.begin(), of_middle.end());
        EXPECT_EQ(sorted(of_top), (messages{"bottom", "middle", "top"}));
    }
}

TEST(stop_throwing_death, a_handler_that_throws_terminates) {
    stop_source server;
    const stop_source request = stop_source::linked_to(server.get_token());
    throws_on_stop(request, "request");
    EXPECT_DEATH(
        server.request_stop(
            {}, [](std::exception_ptr thrown) { std::rethrow_exception(std::move(thrown)); }),
        "");
}

TEST(stop_throwing_death, a_requester_without_a_handler_terminates) {
    stop_source server;
    inplace_stop_source in_place;
    const stop_source request = stop_source::linked_to(server.get_token(), in_place.get_token());
    internal::atomic<bool> over{false};
    request.get_token().subscribe([&] { over.store(true, internal::relaxed); });  // runs last
    throws_on_stop(request, "request");
    EXPECT_DEATH(server.request_stop(), "");
    EXPECT_DEATH(in_place.request_stop(), "");
    EXPECT_DEATH(
        {
            server.request_stop_after(std::chrono::nanoseconds(1));
            while (!over.load(internal::relaxed)) std::this_thread::yield();
        },
        "");
}

// Inside a request with a handler, the inner request does not use that handler.
TEST(stop_throwing_death, a_request_without_a_handler_inside_another_request_terminates) {
    stop_source server;
    inplace_stop_source in_place;
    const stop_source request = stop_source::linked_to(in_place.get_token());
    throws_on_stop(request, "request");
    stop_callback callback(server.get_token(), [&] { in_place.request_stop(); });
    messages said;
    EXPECT_DEATH(server.request_stop({}, noting(said)), "");
}

}  // namespace
