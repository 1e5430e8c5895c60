// What /live and /live/events tell: the counts of the server and of this program.
#pragma once

#include <coppice/base/lifetime.hpp>
#include <coppice/exec/deadline.hpp>
#include <coppice/http/server.hpp>
#include <coppice/pool/thread_pool.hpp>

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

namespace serve {

// How often a route was requested. Threads: any.
class route_count : coppice::immovable {
public:
    explicit route_count(std::string name) : name_(std::move(name)) {}
    const std::string& name() const noexcept { return name_; }
    void add() noexcept {
        // relaxed: a count, which orders nothing else
        parts_[part()].count.fetch_add(1, std::memory_order_relaxed);
    }
    std::uint64_t total() const noexcept;

private:
    // Threads add to different cache lines, as long as there are enough.
    struct alignas(64) one {
        std::atomic<std::uint64_t> count{0};
    };
    static constexpr std::size_t parts = 16;
    static std::size_t part() noexcept;
    const std::string name_;
    std::array<one, parts> parts_;
};

// Measures how late work runs: from the moment when it is handed over to its start. Threads: any.
// Only one measurement is in flight at a time.
class delay_probe : coppice::immovable {
public:
    // Returns true if the caller is now to hand the work over.
    bool begin() noexcept;
    // Called once for each begin() that returned true, where the work runs.
    void end() noexcept;
    // Returns nanoseconds: the last measurement, or the current one if it has already taken longer.
    std::int64_t delay() const noexcept;

private:
    std::atomic<std::int64_t> begun_{0};  // 0: no measurement is in flight
    std::atomic<std::int64_t> last_{0};
};

// What was read at a time.
struct live_look {
    coppice::execution::instant at;
    std::string text;  // JSON. Its first member, "version", names its form.
};

// Measures a server's loops and pool, once for each look, so that other requests pay nothing.
// Threads: any. Lifetime: outlives the server.
class live_board : coppice::immovable {
public:
    // The least time between two looks of recent_look().
    static constexpr std::chrono::milliseconds period{500};

    explicit live_board(const coppice::http::server& server);
    ~live_board();
    // Counts a request of the page itself, which its rates leave out; not one for its events.
    void add_own(const coppice::io::context& loop) noexcept;
    // Counts events of the page that have ended, as the server does: likewise.
    void add_own_events(const coppice::io::context& loop) noexcept;
    // Returns false if work that was posted to a loop has waited for longer than `most`. Posts some
    // to each loop, for the next call. Not to be called once the server drains.
    bool is_prompt(std::chrono::nanoseconds most) noexcept;
    // Reads all counts. Returns the answer of /live.
    live_look look(const std::deque<route_count>& routes, const std::string& about);
    // Returns the last look, or a new one if `period` has passed since: however many pages there
    // are, they share it. Blocks while another thread looks.
    std::shared_ptr<const live_look> recent_look(const std::deque<route_count>& routes,
                                                 const std::string& about);

private:
    struct loop;
    struct pool_probe;
    loop* find(const coppice::io::context& on) const noexcept;

    const coppice::http::server& server_;
    std::vector<std::unique_ptr<loop>> loops_;
    std::unique_ptr<pool_probe> pool_;            // nullptr: the server has no pool
    std::atomic<std::int64_t> look_duration_{0};  // nanoseconds, at the last look
    std::mutex mutex_;                            // guards recent_
    std::shared_ptr<const live_look> recent_;     // nullptr: there was none yet
};

}  // namespace serve
