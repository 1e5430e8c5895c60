// Connections that tasks share, limited by a semaphore; and a wait for an item with a time limit.
// [top]
#include <coppice/coppice.hpp>

#include <chrono>
#include <cstdio>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

using namespace coppice;
using namespace std::chrono_literals;
namespace ex = coppice::execution;
// [/top]

namespace {

// [pool]
struct connection {};  // stands for a connection to a database

// Shared by tasks on any threads. The semaphore makes them wait; the std::mutex guards the list.
class connection_pool {
public:
    // A turn to use a connection. When it ends, also by a stop, the next task gets the turn.
    class lease {
    public:
        lease(connection_pool& from, async_semaphore::permit turn)
            : turn_(std::move(turn)), from_(from), held_(from.take()) {}
        lease(lease&&) = delete;
        ~lease() { from_.give(std::move(held_)); }  // then the turn ends
        connection& get() noexcept { return *held_; }

    private:
        async_semaphore::permit turn_;
        connection_pool& from_;
        std::unique_ptr<connection> held_;
    };

    explicit connection_pool(std::size_t most) : turns_(most) { idle_.reserve(most); }
    auto turn() { return turns_.acquire(); }  // waits for a turn, from which a lease is made
    int made() const noexcept { return made_; }

private:
    std::unique_ptr<connection> take() {
        const std::lock_guard lock(mutex_);
        if (idle_.empty()) {
            auto made = std::make_unique<connection>();
            ++made_;
            return made;
        }
        auto found = std::move(idle_.back());
        idle_.pop_back();
        return found;
    }
    void give(std::unique_ptr<connection> c) noexcept {
        const std::lock_guard lock(mutex_);
        idle_.push_back(std::move(c));
    }

    async_semaphore turns_;
    std::mutex mutex_;  // guards the two below
    std::vector<std::unique_ptr<connection>> idle_;
    int made_ = 0;
};

task<> ask(connection_pool& pool, io::context& loop) {
    connection_pool::lease mine(pool, co_await pool.turn());
    [[maybe_unused]] connection& database = mine.get();
    co_await loop.get_scheduler().schedule_after(1ms);  // asks the database
}
// [/pool]

// [limit]
// Returns the next item, or nothing if none comes in time. An item that comes just as the time ends
// stays in the channel; timeout(from.receive(), limit) could lose it.
task<std::optional<int>> receive_within(channel<int>& from, io::timer& timer,
                                        std::chrono::nanoseconds limit) {
    auto got = co_await coppice::select(from.receive(), timer.wait_for(limit));
    if (got.index() != 0) co_return std::nullopt;
    co_return std::get<0>(got);
}
// [/limit]

task<> run(io::context& loop) {
    connection_pool pool(2);
    co_await ex::when_all(ask(pool, loop), ask(pool, loop), ask(pool, loop), ask(pool, loop));
    std::printf("four asked, over %d connections\n", pool.made());

    io::timer timer(loop);
    channel<int> items(1);
    items.try_send(7);
    const auto first = co_await receive_within(items, timer, 1ms);
    std::printf("the first is %d\n", first.value_or(0));
    const auto second = co_await receive_within(items, timer, 1ms);
    std::puts(second ? "there is a second" : "no second one in time");
}

}  // namespace

int main() {
    io::run(run);
}
