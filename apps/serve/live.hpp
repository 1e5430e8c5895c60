// What /live says: the counts of the server and of this program, for the page at /.
#pragma once

#include <coppice/base/lifetime.hpp>
#include <coppice/http/server.hpp>
#include <coppice/pool/thread_pool.hpp>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace serve {

// How often a route was asked. Threads: any.
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
    // Threads add to different cache lines, as far as there are any.
    struct alignas(64) one {
        std::atomic<std::uint64_t> count{0};
    };
    static constexpr std::size_t parts = 16;
    static std::size_t part() noexcept;
    const std::string name_;
    std::array<one, parts> parts_;
};

// Measures how late work runs: from the moment when it is handed over to its start.
// Threads: any. One measurement is under way at a time.
class delay_probe : coppice::immovable {
public:
    // True: the caller hands the work over now.
    bool begin() noexcept;
    // Called once for each begin(), where the work runs.
    void end() noexcept;
    // Nanoseconds: the last measurement, or the present one if that has already taken longer.
    std::int64_t delay() const noexcept;

private:
    std::atomic<std::int64_t> begun_{0};  // 0: no measurement is under way
    std::atomic<std::int64_t> last_{0};
};

// Measures a server: its loops and its pool, once for each look at /live, so that requests pay
// nothing. Threads: any. Lifetime: outlives the server.
class live_board : coppice::immovable {
public:
    explicit live_board(const coppice::http::server& server);
    ~live_board();
    // A request of the page itself, which its rates leave out.
    void add_own(const coppice::io::context& loop) noexcept;
    // The answer of /live: JSON, whose form is named by its first member, "version".
    std::string look(const std::deque<route_count>& routes, const std::string& about);

private:
    struct loop;
    struct pool_probe;
    const coppice::http::server& server_;
    std::vector<std::unique_ptr<loop>> loops_;
    std::unique_ptr<pool_probe> pool_;            // nullptr: the server has no pool
    std::atomic<std::int64_t> look_duration_{0};  // ns, of the last look
};

}  // namespace serve
