// sync/shared_mutex.hpp: readers together, writers alone, and their order.
#include <coppice/sync/shared_mutex.hpp>

#include <coppice/pool.hpp>

#include "kinds.hpp"

#include <string>

namespace {

using namespace coppice;
using namespace coppice::test;

TEST(async_shared_mutex, readers_share_and_writers_do_not) {
    async_shared_mutex mutex;
    auto first = mutex.try_lock_shared();
    auto second = mutex.try_lock_shared();
    EXPECT_TRUE(first && second);
    EXPECT_FALSE(mutex.try_lock());
    first->unlock();
    EXPECT_FALSE(mutex.try_lock());
    second.reset();
    auto writer = mutex.try_lock();
    EXPECT_TRUE(writer && *writer);
    EXPECT_FALSE(mutex.try_lock_shared());
    EXPECT_FALSE(mutex.try_lock());
    writer->unlock();
    EXPECT_TRUE(mutex.try_lock());
}

// Appends its letter when it has the lock, and keeps the lock until it is told.
struct holder {
    holder(async_shared_mutex& m, std::string& o, char l) : mutex(m), order(o), letter(l) {}
    auto token(auto& place) {
        return bind_env(ex::prop(get_stop_token, stop.get_token()),
                        [this, &place](std::error_code ec, auto guard) {
                            order += ec ? '-' : letter;
                            place = std::move(guard);
                        });
    }
    void read() { mutex.lock_shared(token(reading)); }
    void write() { mutex.lock(token(writing)); }
    void end() {
        reading.unlock();
        writing.unlock();
    }
    async_shared_mutex& mutex;
    std::string& order;
    char letter;
    inplace_stop_source stop;
    async_shared_mutex::shared_guard reading;
    async_shared_mutex::guard writing;
};

TEST(async_shared_mutex, a_waiting_writer_goes_before_later_readers) {
    async_shared_mutex mutex;
    std::string order;
    holder a(mutex, order, 'a'), w(mutex, order, 'w'), b(mutex, order, 'b'), c(mutex, order, 'c'),
        v(mutex, order, 'v');
    a.read();
    w.write();
    b.read();
    c.read();
    v.write();
    EXPECT_EQ(order, "a");
    EXPECT_FALSE(mutex.try_lock_shared());
    a.end();
    EXPECT_EQ(order, "aw");
    w.end();
    EXPECT_EQ(order, "awbc");
    b.end();
    EXPECT_EQ(order, "awbc");
    c.end();
    EXPECT_EQ(order, "awbcv");
    v.end();
    EXPECT_TRUE(mutex.try_lock());
}

TEST(async_shared_mutex, a_stopped_writer_lets_the_readers_behind_it_go) {
    async_shared_mutex mutex;
    std::string order;
    holder a(mutex, order, 'a'), w(mutex, order, 'w'), b(mutex, order, 'b'), c(mutex, order, 'c');
    a.read();
    w.write();
    b.read();
    c.read();
    w.stop.request_stop();
    EXPECT_EQ(order, "a-bc");
    EXPECT_FALSE(w.writing);
    EXPECT_TRUE(mutex.try_lock_shared());
    a.end();
    b.end();
    EXPECT_FALSE(mutex.try_lock());
    c.end();
    EXPECT_TRUE(mutex.try_lock());
}

TEST(async_shared_mutex, readers_and_writers_on_a_pool_never_hold_it_together) {
    thread_pool pool(2);
    async_shared_mutex mutex;
    long value = 0;
    const auto write = [](async_shared_mutex& m, long& v) -> task<long> {
        for (int i = 0; i != 500; ++i) {
            const auto guard = co_await m.lock();
            ++v;
            if (i % 50 == 0) co_await ex::schedule(co_await ex::read_env(ex::get_scheduler));
            ++v;
        }
        co_return 0;
    };
    const auto read = [](async_shared_mutex& m, const long& v) -> task<long> {
        long odd = 0;
        for (int i = 0; i != 500; ++i) {
            const auto guard = co_await m.lock_shared();
            odd += v % 2;
        }
        co_return odd;
    };
    const auto on_pool = [&](task<long> work) {
        return ex::starts_on(pool.get_scheduler(), std::move(work));
    };
    EXPECT_EQ(this_thread::sync_wait(
                  ex::when_all(on_pool(write(mutex, value)), on_pool(write(mutex, value)),
                               on_pool(read(mutex, value)), on_pool(read(mutex, value))))
                  .value(),
              std::tuple(0, 0, 0, 0));
    EXPECT_EQ(value, 2000);
}

}  // namespace
