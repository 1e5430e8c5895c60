// Stopping work: which source fits which owner, and what stop_source adds to the standard's.
// [top]
#include <coppice/stop_token.hpp>

#include <chrono>
#include <cstdio>
#include <exception>
#include <stdexcept>

using namespace std::chrono_literals;
// [/top]

namespace {

// [single]
// An operation with one child: 8 bytes, one callback at a time, no allocation.
void one_child() {
    coppice::single_inplace_stop_source source;
    {
        coppice::single_inplace_stop_callback cancel(source.get_token(),
                                                     [] { std::puts("child: cancelled"); });
        source.request_stop();  // runs the callback here, before it returns
    }
    coppice::single_inplace_stop_callback late(source.get_token(),
                                               [] { std::puts("child: too late, at once"); });
}
// [/single]

// [finite]
// Three children, known at compile time: a slot for each, and one flag for all.
void three_children() {
    coppice::finite_inplace_stop_source<3> source;
    coppice::finite_inplace_stop_callback first(source.get_token<0>(),
                                                [] { std::puts("first: cancelled"); });
    coppice::finite_inplace_stop_callback third(source.get_token<2>(),
                                                [] { std::puts("third: cancelled"); });
    const bool first_request = source.request_stop();
    const bool second_request = source.request_stop();
    std::printf("the first request: %d, the second: %d\n", first_request, second_request);
}
// [/finite]

// [any]
// For any token. Registers one callback at a time, because some tokens accept only one.
template <coppice::stoppable_token Token>
bool stopped_while(Token token, auto work) {
    bool stopped = false;
    auto note = [&stopped] { stopped = true; };
    const coppice::stop_callback_for_t<Token, decltype(note)> callback(token, note);
    work();
    return stopped;
}
// [/any]

// [beyond]
void beyond_the_standard() {
    coppice::stop_source server;
    coppice::stop_source request = coppice::stop_source::linked_to(server.get_token());
    request.request_stop_after(1h);  // or when the server stops

    // A subscription is a value. Dropping it leaves the function subscribed.
    const coppice::stop_token token = request.get_token();
    coppice::stop_subscription log = token.subscribe(
        [token] { std::printf("stopped: %s (%d)\n", token.cause().text, token.cause().code); });
    coppice::stop_subscription removed = token.subscribe([] { std::puts("never"); });
    if (removed.unsubscribe() == coppice::unsubscribed::removed) std::puts("will not run");

    server.request_stop({3, "the server drains"});
    if (log.unsubscribe() == coppice::unsubscribed::ran) std::puts("has run");
}
// [/beyond]

// [reset]
// One source for many turns of one owner, as long as no turn was stopped.
void turns() {
    coppice::stop_source source;
    int used = 0;
    while (source.try_reset()) {
        source.request_stop_after(1h);
        const bool last = stopped_while(source.get_token(), [&] {
            if (++used == 3) source.request_stop();
        });
        if (last) std::printf("stopped in turn %d\n", used);
    }
}
// [/reset]

// [throwing]
// All functions run even if some throw. The requester's handler receives what they throw.
void throwing() {
    coppice::stop_source source;
    const coppice::stop_token token = source.get_token();
    token.subscribe([] { std::puts("subscribed first, runs last"); });
    token.subscribe([] { throw std::runtime_error("no"); });
    source.request_stop({1, "shutdown"}, [](std::exception_ptr thrown) {
        try {
            std::rethrow_exception(thrown);
        } catch (const std::exception& e) {
            std::printf("threw: %s\n", e.what());
        }
    });
}
// [/throwing]

}  // namespace

int main() {
    one_child();
    three_children();
    beyond_the_standard();
    turns();
    throwing();
}
