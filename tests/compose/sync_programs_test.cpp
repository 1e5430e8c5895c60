// Locks and channels in programs as users write them: a crawler, a pool of connections, and
// handlers of a server, stopped at any moment.
#include <coppice/base/internal/atomic.hpp>
#include <coppice/coppice.hpp>

#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <mutex>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace {

using namespace coppice;
namespace ex = coppice::execution;
using internal::relaxed;
using std::chrono::microseconds;
using counter = internal::atomic<int>;

// Counts visitors in and out. Returns how many are inside.
class visit_count {
public:
    explicit visit_count(counter& c) noexcept : count_(c), inside(c.fetch_add(1, relaxed) + 1) {}
    visit_count(visit_count&&) = delete;
    ~visit_count() { count_.fetch_sub(1, relaxed); }

private:
    counter& count_;

public:
    const int inside;
};

// A site whose pages link to later ones. Requests are limited by a semaphore, and a channel carries
// the pages to one consumer.
struct crawler {
    crawler(thread_pool& p, int n, std::size_t at_once, std::size_t ahead)
        : pool(p), pages(n), limit_max(at_once), limit(at_once), found(ahead) {}
    thread_pool& pool;
    const int pages;
    const std::size_t limit_max;
    async_semaphore limit;
    channel<std::unique_ptr<int>> found;
    std::mutex mutex;  // guards the member below
    std::set<int> seen{0};
    counter pending{1};
    counter in_flight{0};
    counter sent{0};
    internal::atomic<bool> over_limit{false};
};

template <class Scope>
task<> visit(crawler& c, int page, Scope scope) {
    // acq_rel: the last one closes after all others have sent.
    const scope_exit leave([&c]() noexcept {
        if (c.pending.fetch_sub(1, internal::acq_rel) == 1) c.found.close();
    });
    {
        const auto permit = co_await c.limit.acquire();
        const visit_count here(c.in_flight);
        if (here.inside > static_cast<int>(c.limit_max)) c.over_limit.store(true, relaxed);
        co_await c.pool.get_scheduler().schedule_after(microseconds(page % 7));
    }
    for (const int next : {2 * page + 1, 2 * page + 2, page + 1}) {
        if (next >= c.pages) continue;
        {
            const std::lock_guard lock(c.mutex);
            if (!c.seen.insert(next).second) continue;
        }
        c.pending.fetch_add(1, relaxed);
        ex::spawn(visit(c, next, scope), scope);
    }
    co_await c.found.send(std::make_unique<int>(page));
    c.sent.fetch_add(1, relaxed);
}

task<int> crawl(crawler& c) {
    co_return co_await ex::scoped([&c](auto scope) -> task<int> {
        ex::spawn(visit(c, 0, scope), scope);
        int received = 0;
        while (co_await c.found.receive()) ++received;
        co_return received;
    });
}

void expect_rest(const crawler& c) {
    EXPECT_EQ(c.limit.available(), c.limit_max);
    EXPECT_EQ(c.in_flight.load(relaxed), 0);
    EXPECT_EQ(c.pending.load(relaxed), 0);
    EXPECT_FALSE(c.over_limit.load(relaxed));
}

TEST(sync_programs, a_crawler_finds_each_page_once_and_keeps_its_limit) {
    for (std::size_t round = 0; round != 8; ++round) {
        thread_pool pool(3);
        crawler c(pool, 200, 1 + round, round % 4);
        const auto found =
            this_thread::sync_wait(ex::starts_on(pool.get_scheduler(), crawl(c))).value();
        EXPECT_EQ(std::get<0>(found), 200);
        expect_rest(c);
    }
}

TEST(sync_programs, a_crawler_that_is_stopped_at_any_time_gives_back_its_permits) {
    for (std::size_t round = 0; round != 60; ++round) {
        thread_pool pool(3);
        crawler c(pool, 2000, 1 + round % 8, round % 4);
        try {
            this_thread::sync_wait(ex::starts_on(pool.get_scheduler(),
                                                 ex::timeout(crawl(c), microseconds(41 * round))));
            EXPECT_EQ(c.sent.load(relaxed), 2000);
        } catch (const std::system_error& error) {
            EXPECT_EQ(error.code(), std::errc::timed_out);
        }
        expect_rest(c);
    }
}

// A few connections. Each is used by one task at a time.
struct connection {
    counter users{0};
};

task<> query(thread_pool& pool, connection& c, microseconds takes) {
    const visit_count here(c.users);
    EXPECT_EQ(here.inside, 1);
    co_await pool.get_scheduler().schedule_after(takes);
}

// Tasks wait for a permit. A destructor gives the connection back.
class lent_by_semaphore {
public:
    explicit lent_by_semaphore(std::size_t most) : most_(most), turns_(most) {
        for (std::size_t i = 0; i != most; ++i) idle_.push_back(std::make_unique<connection>());
    }
    task<> use(thread_pool& pool, microseconds takes) {
        auto turn = co_await turns_.acquire();
        auto mine = take();
        const scope_exit give([&]() noexcept {
            const std::lock_guard lock(mutex_);
            idle_.push_back(std::move(mine));
        });
        co_await query(pool, *mine, takes);
    }
    bool is_whole() {
        const std::lock_guard lock(mutex_);
        return idle_.size() == most_ && turns_.available() == most_;
    }

private:
    std::unique_ptr<connection> take() {
        const std::lock_guard lock(mutex_);
        EXPECT_FALSE(idle_.empty());
        auto mine = std::move(idle_.back());
        idle_.pop_back();
        return mine;
    }

    const std::size_t most_;
    async_semaphore turns_;
    std::mutex mutex_;
    std::vector<std::unique_ptr<connection>> idle_;
};

// Tasks wait for a condition. Giving back waits for the mutex, and cannot be stopped.
class lent_by_condition {
public:
    explicit lent_by_condition(std::size_t most) : most_(most) {
        for (std::size_t i = 0; i != most; ++i) idle_.push_back(std::make_unique<connection>());
    }
    task<> use(thread_pool& pool, microseconds takes) {
        std::unique_ptr<connection> mine;
        {
            auto guard = co_await mutex_.lock();
            while (idle_.empty()) co_await given_.wait(guard);
            mine = std::move(idle_.back());
            idle_.pop_back();
        }
        const auto ended = co_await (query(pool, *mine, takes) | ex::then([] { return true; }) |
                                     ex::stopped_as_optional());
        {
            const auto guard = co_await ex::unstoppable(mutex_.lock());
            idle_.push_back(std::move(mine));
            given_.notify_one();
        }
        if (!ended) co_await ex::just_stopped();
    }
    bool is_whole() {
        const auto guard = mutex_.try_lock();
        return guard && idle_.size() == most_;
    }

private:
    const std::size_t most_;
    async_mutex mutex_;
    async_condition given_;
    std::vector<std::unique_ptr<connection>> idle_;
};

// Receives until the channel is closed and drained, with a short limit each time.
task<int> receive_by_select(channel<int>& from, thread_pool& pool) {
    for (int received = 0;;) {
        const auto limit = pool.get_scheduler().schedule_after(microseconds(50));
        const auto got = co_await coppice::select(from.receive(), limit);
        if (got.index() != 0) continue;
        if (!std::get<0>(got)) co_return received;
        ++received;
    }
}
task<int> receive_by_deadline(channel<int>& from, thread_pool&) {
    for (int received = 0;;) {
        const auto limit = monotonic_clock().now() + microseconds(50);
        const auto got =
            co_await (ex::write_env(from.receive(), ex::prop(ex::get_deadline, limit)) |
                      ex::stopped_as_optional());
        if (!got) continue;
        if (!*got) co_return received;
        ++received;
    }
}
// Sends at the times at which the limits end.
task<> send_in_time(channel<int>& to, thread_pool& pool, int count) {
    for (int i = 0; i != count; ++i) {
        co_await to.send(i);
        co_await pool.get_scheduler().schedule_after(microseconds(40 + i % 40));
    }
    to.close();
}

TEST(sync_programs, a_receive_with_a_limit_by_select_or_by_deadline_loses_no_item) {
    for (const auto receive : {receive_by_select, receive_by_deadline}) {
        for (std::size_t capacity = 0; capacity != 3; ++capacity) {
            thread_pool pool(3);
            const auto on = pool.get_scheduler();
            channel<int> items(capacity);
            const auto received = this_thread::sync_wait(ex::when_all(
                ex::starts_on(on, receive(items, pool)), ex::starts_on(on, receive(items, pool)),
                ex::starts_on(on, send_in_time(items, pool, 1000))));
            EXPECT_EQ(std::get<0>(received.value()) + std::get<1>(received.value()), 1000);
        }
    }
}

template <class Pool>
class connections : public testing::Test {};
using pools = testing::Types<lent_by_semaphore, lent_by_condition>;
TYPED_TEST_SUITE(connections, pools, );

TYPED_TEST(connections, that_tasks_share_are_used_by_one_at_a_time_and_all_come_back) {
    for (unsigned round = 0; round != 12; ++round) {
        thread_pool pool(3);
        TypeParam shared(1 + round % 5);
        ex::counting_scope scope;
        std::minstd_rand random(round + 1);
        for (int i = 0; i != 200; ++i) {
            const microseconds takes(random() % 300), limit(random() % 3000);
            ex::spawn(
                ex::starts_on(pool.get_scheduler(), ex::timeout(shared.use(pool, takes), limit)),
                scope.get_token(), [](auto&&) noexcept {});  // many time out
        }
        if (round % 3 == 2) scope.request_stop();
        this_thread::sync_wait(scope.join());
        EXPECT_TRUE(shared.is_whole());
    }
}

// Starts a server, lets `ask` ask it, and waits until it has drained.
template <class Ask>
void serve(http::router routes, Ask ask) {
    http::server server({.endpoint = io::loopback(0), .threads = 2}, std::move(routes));
    std::thread serving([&] { server.run(); });
    EXPECT_TRUE(io::run([&](io::context& loop) { return ask(loop, server.local()); }));
    server.drain();
    serving.join();
}

TEST(connections_of_handlers, come_back_although_clients_go_away) {
    thread_pool pool(2);
    lent_by_semaphore shared(3);
    http::router routes;
    routes.get("/{us:int}", [&](http::request& r) -> task<http::response> {
        co_await shared.use(pool, microseconds(r.parameter<int>("us").value_or(0)));
        co_return http::response::text("ok");
    });
    counter ended{0};
    const auto ask_once = [&](io::context& loop, io::endpoint server, int i) -> task<> {
        http::client client(loop);
        const std::string path = "/" + std::to_string(i * 7 % 900);
        try {
            const auto answer =
                co_await ex::timeout(client.get(server, path), microseconds(200 + i * 37));
            EXPECT_EQ(answer.body(), "ok");
        } catch (const std::system_error& error) {
            EXPECT_EQ(error.code(), std::errc::timed_out);
        }
        ended.fetch_add(1, relaxed);
    };
    serve(std::move(routes), [&](io::context& loop, io::endpoint server) -> task<> {
        std::vector<int> numbers;
        for (int i = 0; i != 100; ++i) numbers.push_back(i);
        co_await for_each_bounded(numbers, 16, [&](int i) { return ask_once(loop, server, i); });
    });
    EXPECT_EQ(ended.load(relaxed), 100);
    EXPECT_TRUE(shared.is_whole());
}

TEST(handlers, continue_on_the_thread_that_released_but_a_task_on_the_loop_comes_back_to_it) {
    channel<int> bare(0), on_loop(0);  // a send without a wait needs a receiver that waits
    std::thread::id bare_on, loop_on;
    bool back = false, kept = false;
    http::router routes;
    routes.get("/bare", [&](http::request& r) -> task<http::response> {
        co_await bare.receive();
        bare_on = std::this_thread::get_id();
        co_await r.loop().get_scheduler().schedule();
        back = r.loop().is_current();
        co_return http::response::text("ok");
    });
    const auto wait_on_loop = [&](http::request& r) -> task<http::response> {
        co_await on_loop.receive();
        loop_on = std::this_thread::get_id();
        kept = r.loop().is_current();
        co_return http::response::text("ok");
    };
    routes.get("/loop", [&](http::request& r) -> task<http::response> {
        co_return co_await ex::starts_on(r.loop().get_scheduler(), wait_on_loop(r));
    });
    std::thread sender([&] {
        while (!bare.try_send(1)) std::this_thread::yield();
        while (!on_loop.try_send(1)) std::this_thread::yield();
    });
    const std::thread::id sending = sender.get_id();
    serve(std::move(routes), [](io::context& loop, io::endpoint server) -> task<> {
        http::client client(loop), other(loop);
        co_await ex::when_all(client.get(server, "/bare") | ex::then([](auto&&) {}),
                              other.get(server, "/loop") | ex::then([](auto&&) {}));
    });
    sender.join();
    EXPECT_EQ(bare_on, sending);
    EXPECT_TRUE(back);
    EXPECT_NE(loop_on, sending);
    EXPECT_TRUE(kept);
}

}  // namespace
