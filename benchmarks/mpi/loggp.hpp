// loggp: nodes that send each other messages in simulated time, by the LogGP model.
#pragma once
// Source: Alexandrov et al. 1995, "LogGP: incorporating long messages into the LogP model". A
// message costs the sender and the receiver an overhead o of their processor, and needs a latency L
// on its way. The interface of a node begins a message at most every g, and moves a byte in G, in
// each direction. A node has one processor here: the thread of its environment. What the workers
// compute is a pause.
//
// That thread rests as the real one does (mpi/internal/engine.hpp). It looks for messages all the
// time for 0.5 ms after the last one, and then with pauses of an eighth of the time since, up to
// 1 ms.
//
// A program of a node is a task. All run on the thread that calls run().

#include <coppice/base/lifetime.hpp>
#include <coppice/execution.hpp>
#include <coppice/task.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <coroutine>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <exception>
#include <queue>
#include <unordered_map>
#include <utility>
#include <vector>

namespace bench_loggp {

using coppice::task;

// In nanoseconds; `per_byte` is G.
struct parameters {
    double latency, overhead, gap, per_byte;
};

struct item {
    std::uint64_t number, depth;
};

struct message {
    int from = -1;     // negative: the network was closed
    double ready = 0;  // when the interface has it
    std::vector<item> items;
    std::array<std::int64_t, 2> numbers{};
};

// A generator of random numbers, the same in each run. Source: Steele et al. 2014, splitmix64.
inline std::uint64_t mix(std::uint64_t n) {
    n = (n ^ (n >> 30)) * 0xbf58476d1ce4e5b9U;
    n = (n ^ (n >> 27)) * 0x94d049bb133111ebU;
    return n ^ (n >> 31);
}

class network : coppice::immovable {
public:
    network(const parameters& p, int size) : given_(p), nodes_(static_cast<std::size_t>(size)) {
        // All have waited for long, each since another time.
        for (std::size_t n = 0; n != nodes_.size(); ++n)
            nodes_[n].active_at = -1e7 - static_cast<double>(mix(n + 1) % 1'000'000);
    }
    ~network() { coppice::this_thread::sync_wait(programs_.join()); }

    int size() const { return static_cast<int>(nodes_.size()); }
    double now() const { return now_; }
    std::uint64_t messages() const { return messages_; }

    void start(task<> program) {
        coppice::execution::spawn(std::move(program), programs_.get_token(),
                                  [](const std::exception_ptr&) noexcept { std::terminate(); });
    }
    // Runs the programs until none has anything to do at a later time.
    void run() {
        while (!events_.empty()) {
            const event next = events_.top();
            events_.pop();
            now_ = next.time;
            if (next.resumed) {
                next.resumed.resume();
            } else {
                arrive(next);
            }
        }
    }
    // Ends the wait of all that receive. No message is on its way.
    void close() {
        for (node& each : nodes_) {
            for (auto& [tag, s] : each.slots)
                if (s.waiter) events_.push({now_, ++order_, std::exchange(s.waiter, {})});
        }
        run();
    }

    // Awaited: continues after so many nanoseconds.
    auto pause(double ns) {
        struct awaiter {
            network& in;
            double ns;
            bool await_ready() const { return false; }
            void await_suspend(std::coroutine_handle<> h) { in.resume_at(in.now_ + ns, h); }
            void await_resume() const {}
        };
        return awaiter{*this, ns};
    }
    // Sends a message of so many bytes. Awaited: continues when the processor has done its part.
    auto send(int from, int to, int tag, double bytes, message what = {}) {
        node& n = at(from);
        what.from = from;
        n.free_at = std::max(now_, n.free_at) + given_.overhead;
        n.active_at = n.free_at;
        const double begins = std::max(n.free_at, n.out_free_at);
        n.out_free_at = begins + std::max(given_.gap, bytes * given_.per_byte);
        ++messages_;
        if (unused_.empty()) {
            unused_.push_back(under_way_.size());
            under_way_.emplace_back();
        }
        const std::size_t place = unused_.back();
        unused_.pop_back();
        under_way_[place] = std::move(what);
        events_.push({begins + given_.latency, ++order_, {}, to, tag, bytes, place});
        return pause(n.free_at - now_);
    }
    // Awaited: returns the next message with that tag, or one from -1 if the network is closed.
    auto receive(int rank, int tag) {
        struct awaiter {
            network& in;
            int rank, tag;
            bool await_ready() const { return false; }
            void await_suspend(std::coroutine_handle<> h) {
                slot& s = in.at(rank).slots[tag];
                s.waiter = h;
                if (!s.here.empty()) in.wake(in.at(rank), s);
            }
            message await_resume() const {
                slot& s = in.at(rank).slots[tag];
                if (s.here.empty()) return {};
                message got = std::move(s.here.front());
                s.here.pop_front();
                return got;
            }
        };
        return awaiter{*this, rank, tag};
    }
    // Forgets a tag that is not used any longer.
    void forget(int rank, int tag) { at(rank).slots.erase(tag); }

private:
    struct event {
        double time;
        std::uint64_t order;  // of events at the same time
        std::coroutine_handle<> resumed;
        int to = 0, tag = 0;  // of a message that arrives
        double bytes = 0;
        std::size_t place = 0;
        // Returns true if this one is later, for the queue.
        bool operator<(const event& other) const {
            return time != other.time ? time > other.time : order > other.order;
        }
    };
    struct slot {
        std::deque<message> here;
        std::coroutine_handle<> waiter;
    };
    struct node {
        double free_at = 0;  // when the processor has done what it does
        double active_at = 0;
        double out_free_at = 0, in_free_at = 0;  // the interface
        std::unordered_map<int, slot> slots;     // by tag
    };
    node& at(int rank) { return nodes_[static_cast<std::size_t>(rank)]; }
    void resume_at(double time, std::coroutine_handle<> h) { events_.push({time, ++order_, h}); }

    void arrive(const event& e) {
        node& n = at(e.to);
        slot& s = n.slots[e.tag];
        const double begins = std::max(now_, n.in_free_at);
        n.in_free_at = begins + std::max(given_.gap, e.bytes * given_.per_byte);
        message& m = under_way_[e.place];
        m.ready = begins + e.bytes * given_.per_byte;
        s.here.push_back(std::move(m));
        unused_.push_back(e.place);
        if (s.waiter && s.here.size() == 1) wake(n, s);
    }
    // Resumes the program that waits for a message that is here, when its node has received it.
    void wake(node& n, slot& s) {
        const double seen = looks_at(n, std::max(now_, s.here.front().ready));
        n.free_at = std::max(seen, n.free_at) + given_.overhead;
        n.active_at = n.free_at;
        resume_at(n.free_at, std::exchange(s.waiter, {}));
    }
    // Returns when the thread looks, at `ready` or later.
    static double looks_at(const node& n, double ready) {
        double waited = 500'000;
        if (ready <= n.active_at + waited) return ready;
        while (n.active_at + waited < ready) {
            const double doze = std::min(waited / 8, 1'000'000.0);
            const double more =
                doze < 1'000'000 ? 1 : std::ceil((ready - n.active_at - waited) / doze);
            waited += doze * more;
        }
        return n.active_at + waited;
    }

    parameters given_;
    std::vector<node> nodes_;
    std::priority_queue<event> events_;
    std::vector<message> under_way_;
    std::vector<std::size_t> unused_;  // places of it
    std::uint64_t order_ = 0;
    std::uint64_t messages_ = 0;
    double now_ = 0;
    coppice::execution::counting_scope programs_;
};

}  // namespace bench_loggp
