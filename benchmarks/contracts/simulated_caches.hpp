// simulated_caches: cores that share words, and counts of their transfers; for scaling.cpp.
#pragma once
// Each core runs a program, a coroutine over shared words, one access at a time. The core with the
// earliest clock goes next. A line belongs to one core, which may write it, or readers share it. An
// access to a line of another core waits for its turn and costs one transfer. Values are real: an
// exchange fails if another core was faster.

#include <algorithm>
#include <array>
#include <coroutine>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <memory>
#include <queue>
#include <utility>
#include <vector>

namespace bench_scaling {

inline constexpr double hit_ns = 0.5;   // a load or store of a line that this core has
inline constexpr double locked_ns = 3;  // a locked operation on such a line

// A cache line with one word in it.
struct line {
    std::uint64_t value = 0;
    int owner = -1;  // the core that may write; -1: none
    std::array<std::uint64_t, 2> readers{};
    double free_at = 0;  // when the last transfer ends
};

class machine;

struct core {
    machine* host;
    int number;
    double now = 0;
    std::uint64_t runs = 0;
    std::uint64_t transfers = 0;
    std::uint64_t noise = 0;
    std::uint64_t random() {
        noise = noise * 6364136223846793005u + 1442695040888963407u;
        return noise >> 33;
    }
};

struct program {
    struct promise_type {
        program get_return_object() {
            return program{std::coroutine_handle<promise_type>::from_promise(*this)};
        }
        std::suspend_always initial_suspend() noexcept { return {}; }
        std::suspend_always final_suspend() noexcept { return {}; }
        void return_void() {}
        void unhandled_exception() { std::abort(); }
    };
    std::coroutine_handle<promise_type> handle;
};

class machine {
public:
    machine(int cores, double transfer_ns) : transfer_ns_(transfer_ns) {
        for (int i = 0; i != cores; ++i) {
            auto c = std::make_unique<core>();
            c->host = this;
            c->number = i;
            c->noise = static_cast<std::uint64_t>(i) * 0x9E3779B97F4A7C15u + 1;
            cores_.push_back(std::move(c));
        }
    }
    core& operator[](int i) { return *cores_[static_cast<std::size_t>(i)]; }
    int size() const { return static_cast<int>(cores_.size()); }

    enum class kind { load, store, locked };
    void access(core& c, line& l, kind k) {
        const auto word = static_cast<std::size_t>(c.number) / 64;
        const std::uint64_t bit = std::uint64_t{1} << c.number % 64;
        const bool mine = l.owner == c.number;
        const bool here = mine || (k == kind::load && (l.readers[word] & bit) != 0);
        if (!here) {
            if (k != kind::load || l.owner >= 0) {  // readers do not wait for each other
                c.now = std::max(c.now, l.free_at);
                l.free_at = c.now + transfer_ns_;
            }
            c.now += transfer_ns_;
            ++c.transfers;
        }
        if (k == kind::load) {
            if (!mine) {
                if (l.owner >= 0) {
                    const auto owner = static_cast<std::size_t>(l.owner);
                    l.readers[owner / 64] |= std::uint64_t{1} << owner % 64;
                }
                l.owner = -1;
                l.readers[word] |= bit;
            }
        } else {
            l.owner = c.number;
            l.readers = {};
        }
        c.now += k == kind::locked ? locked_ns : hit_ns;
    }

    // Runs all programs until the clock `until`.
    void run(std::vector<program> programs, double until) {
        using entry = std::pair<double, int>;
        std::priority_queue<entry, std::vector<entry>, std::greater<>> order;
        for (int i = 0; i != size(); ++i) order.emplace(0.0, i);
        while (!order.empty()) {
            const int i = order.top().second;
            order.pop();
            programs[static_cast<std::size_t>(i)].handle.resume();
            if ((*this)[i].now < until) order.emplace((*this)[i].now, i);
        }
        for (program& p : programs) p.handle.destroy();
    }

private:
    double transfer_ns_;
    std::vector<std::unique_ptr<core>> cores_;
};

// co_await of a step takes effect when this core's clock is the earliest.
struct step {
    core& c;
    line& l;
    machine::kind k;
    bool await_ready() const noexcept { return false; }
    void await_suspend(std::coroutine_handle<>) const { c.host->access(c, l, k); }
    void await_resume() const noexcept {}
};
inline step load(core& c, line& l) {
    return {c, l, machine::kind::load};
}
inline step store(core& c, line& l) {
    return {c, l, machine::kind::store};
}
inline step locked(core& c, line& l) {
    return {c, l, machine::kind::locked};
}

using lines = std::vector<line>;

}  // namespace bench_scaling
