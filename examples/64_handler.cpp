// A request handler that asks a database, forks its computation on the pool, has a deadline, and
// stops when its client disconnects.
#include <coppice/coppice.hpp>

#include <sqlite3.h>
#include <atomic>
#include <cstdio>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>

using namespace coppice;
using namespace std::chrono_literals;
namespace ex = coppice::execution;

namespace {

bool is_prime(std::uint64_t n) {
    for (std::uint64_t d = 2; d * d <= n; ++d) {
        if (n % d == 0) return false;
    }
    return n > 1;
}

// Counts what the handlers of this program did. main() prints it.
struct diary {
    std::atomic<int> begun{0};
    std::atomic<int> stopped{0};
};

// [database]
// Numbers by name, in SQLite, whose calls block. They are made on a thread of their own.
class numbers {
public:
    numbers() {
        check(::sqlite3_open(":memory:", &database_));
        check(::sqlite3_exec(database_,
                             "CREATE TABLE numbers (name TEXT PRIMARY KEY, value INTEGER);"
                             "INSERT INTO numbers VALUES ('thousand', 1000), ('trillion', 1e12)",
                             nullptr, nullptr, nullptr));
        check(::sqlite3_prepare_v2(database_, "SELECT value FROM numbers WHERE name = ?", -1,
                                   &find_, nullptr));
    }
    numbers(const numbers&) = delete;
    ~numbers() {
        ::sqlite3_finalize(find_);
        ::sqlite3_close(database_);
    }

    // Returns nothing if there is no such name. A stop of the caller also ends a long query.
    task<std::optional<std::uint64_t>> find(std::string name) {
        inplace_stop_token stop = co_await ex::read_env(get_stop_token);
        co_await worker_.get_scheduler().schedule();
        ::sqlite3_progress_handler(database_, 1000, asked_to_stop, &stop);
        ::sqlite3_bind_text(find_, 1, name.c_str(), -1, SQLITE_STATIC);
        const int status = ::sqlite3_step(find_);
        std::optional<std::uint64_t> value;
        if (status == SQLITE_ROW) value = ::sqlite3_column_int64(find_, 0);
        ::sqlite3_reset(find_);
        if (status == SQLITE_INTERRUPT) co_await ex::just_stopped();
        if (status != SQLITE_ROW && status != SQLITE_DONE) check(status);
        co_return value;
    }

private:
    static int asked_to_stop(void* token) {
        return static_cast<inplace_stop_token*>(token)->stop_requested();
    }
    void check(int status) const {
        if (status != SQLITE_OK) throw std::runtime_error(::sqlite3_errstr(status));
    }

    sqlite3* database_ = nullptr;
    sqlite3_stmt* find_ = nullptr;
    thread_pool worker_{1};
};
// [/database]

// [work]
// Counts the primes below a number of the database, in parallel on the pool. When the task is
// stopped, for whatever reason, the loop ends after a few more numbers.
task<std::optional<std::uint64_t>> count_primes(numbers& of, std::string name, thread_pool& pool,
                                                diary& notes) {
    const std::optional<std::uint64_t> below = co_await of.find(std::move(name));
    if (!below) co_return std::nullopt;
    const inplace_stop_token stop = co_await ex::read_env(get_stop_token);
    co_await pool.get_scheduler().schedule();
    ++notes.begun;
    std::atomic<std::uint64_t> count{0};
    const auto [all] = fork_join(stop, [&] {
        return parallel_for(std::uint64_t{0}, *below, [&](std::uint64_t i) {
            if (is_prime(i)) count.fetch_add(1, std::memory_order_relaxed);
        });
    });
    if (!all) {
        ++notes.stopped;
        co_await ex::just_stopped();
    }
    co_return count.load();
}
// [/work]

// [handler]
// The connection's loop serves other connections meanwhile. The work is stopped when its time limit
// has passed, which the client may set (?ms=20), when the client resets its connection, and when
// the server closes its connections.
task<http::response> primes(http::request& r, numbers& of, thread_pool& pool, diary& notes) {
    const std::chrono::milliseconds limit(r.query<unsigned>("ms").value_or(10'000));
    std::string name(r.parameter("name").value_or(""));
    try {
        const std::optional<std::uint64_t> count =
            co_await ex::timeout(count_primes(of, std::move(name), pool, notes), limit);
        if (!count) co_return http::response::status(404, "no such number");
        co_return http::response::text(std::to_string(*count));
    } catch (const std::system_error& error) {
        if (error.code() != std::errc::timed_out) throw;
        co_return http::response::status(503, "out of time");
    }
}
// [/handler]

// Asks, and resets the connection once the handler computes. Returns how many handlers it stopped.
task<int> leave(io::context& loop, io::endpoint server, diary& notes) {
    const int begun = notes.begun, stopped = notes.stopped;
    io::tcp::socket socket(loop);
    co_await socket.connect(server);
    const std::string_view request = "GET /primes/trillion HTTP/1.1\r\nHost: x\r\n\r\n";
    co_await socket.send_all(std::as_bytes(std::span(request)));
    io::timer timer(loop);
    while (notes.begun == begun) co_await timer.wait_for(1ms);
    socket.set(io::linger(0s));  // closing is a reset
    socket.close();
    while (notes.stopped == stopped) co_await timer.wait_for(1ms);
    co_return notes.stopped - stopped;
}

task<> visit(io::context& loop, http::server& server, diary& notes) {
    http::client client(loop);
    http::client_response answer = co_await client.get(server.local(), "/primes/thousand");
    std::printf("below a thousand: %s primes\n", std::string(answer.body()).c_str());
    http::client_response late = co_await client.get(server.local(), "/primes/trillion?ms=20");
    std::printf("below a trillion, in 20 ms: %d\n", late.status());
    const int stopped = co_await leave(loop, server.local(), notes);
    std::printf("stopped by its client: %d\n", stopped);
    server.drain();
}

}  // namespace

int main() {
    thread_pool pool(2);
    numbers known;
    diary notes;
    http::router routes;
    routes.get("/primes/{name}", [&](http::request& r) -> task<http::response> {
        return primes(r, known, pool, notes);
    });
    http::server server({.endpoint = io::loopback(0), .threads = 1}, std::move(routes));
    std::thread visitor([&] {
        io::context loop;
        std::optional<io::context::work_guard> guard(loop);
        std::thread network([&] { loop.run(); });
        this_thread::sync_wait(ex::starts_on(loop.get_scheduler(), visit(loop, server, notes)));
        guard.reset();
        network.join();
    });
    server.run();
    visitor.join();
}
