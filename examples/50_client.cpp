// A hundred requests, each of which can be stopped at any moment without a further allocation. The
// program of the pull request that made .NET's cancellation allocation-free.
#include <coppice/coppice.hpp>

#include <cstdio>
#include <cstdlib>
#include <new>
#include <thread>

using namespace coppice;

namespace {

thread_local std::size_t allocations = 0;

}  // namespace

// Counts what this thread allocates.
void* operator new(std::size_t bytes) {
    ++allocations;
    if (void* const memory = std::malloc(bytes)) return memory;
    throw std::bad_alloc();
}
void operator delete(void* memory) noexcept {
    std::free(memory);
}
void operator delete(void* memory, std::size_t) noexcept {
    std::free(memory);
}

namespace {

// [requests]
// Sends a hundred requests. Returns how many answers came.
template <class Token>
task<int> ask(http::client& client, io::endpoint server, Token token) {
    int answers = 0;
    for (int i = 0; i != 100; ++i) {
        const http::client_response answer = co_await client.get(server, "/get", token);
        if (answer.status() == 200) ++answers;
    }
    co_return answers;
}
// [/requests]

task<> compare(io::context& loop, http::server& server) {
    const io::endpoint where = server.local();
    http::client client(loop);
    const never_stop_token never;
    stop_source source;
    const stop_token token = source.get_token();
    co_await ask(client, where, never);  // makes the allocations that happen only once
    co_await ask(client, where, token);

    std::size_t before = allocations;
    (void)co_await ask(client, where, never);
    const std::size_t unstoppable = allocations - before;
    before = allocations;
    const int answers = co_await ask(client, where, token);
    const std::size_t stoppable = allocations - before;
    std::printf("%d answers to stoppable requests\n", answers);
    std::printf("allocations for being stoppable: %zu\n", stoppable - unstoppable);

    // The server holds this request for an hour. The stop comes from another thread.
    std::thread stopper([&] { source.request_stop(); });
    const auto late = co_await execution::stopped_as_optional(client.get(where, "/wait", token));
    stopper.join();
    std::printf("the last one was %s\n", late ? "answered" : "stopped");
    server.drain();
}

}  // namespace

int main() {
    http::router routes;
    routes.get("/get", [](http::request&) { return http::response::text("hello"); })
        .get("/wait", [](http::request& r) -> task<http::response> {
            co_await http::pause(r, std::chrono::hours(1));
            co_return http::response::text("late");
        });
    http::server_options options;
    options.endpoint = io::loopback(0);
    options.model = http::model::single;
    http::server server(options, std::move(routes));
    std::thread serving([&] { server.run(); });

    io::context loop;
    std::thread network;
    {
        const io::context::work_guard guard(loop);
        network = std::thread([&] { loop.run(); });
        this_thread::sync_wait(execution::starts_on(loop.get_scheduler(), compare(loop, server)));
    }
    network.join();
    serving.join();
}
