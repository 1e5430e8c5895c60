// Helpers of the tests of room graph: a pool, and a record of the order in which nodes ran.
#pragma once

#include <coppice/base/internal/atomic.hpp>
#include <coppice/execution.hpp>
#include <coppice/graph.hpp>
#include <coppice/pool.hpp>
#include <coppice/task.hpp>

#include <algorithm>
#include <chrono>
#include <mutex>
#include <string>
#include <system_error>
#include <vector>

namespace coppice::graph_test {

namespace ex = coppice::execution;
using std::chrono::milliseconds;

// The names of the nodes that ran, in their order. Threads: any.
class record {
public:
    void add(std::string name) {
        const std::lock_guard lock(mutex_);
        names_.push_back(std::move(name));
    }
    // Returns a function that adds a name.
    auto say(std::string name) {
        return [this, name = std::move(name)] { add(name); };
    }
    std::vector<std::string> names() const {
        const std::lock_guard lock(mutex_);
        return names_;
    }
    std::string text() const {
        std::string all;
        for (const std::string& name : names()) all += name;
        return all;
    }
    std::size_t count(const std::string& name) const {
        const std::vector<std::string> all = names();
        return static_cast<std::size_t>(std::count(all.begin(), all.end(), name));
    }
    // Returns true if both ran, and the last `before` before the first `after`.
    bool in_order(const std::string& before, const std::string& after) const {
        const std::string all = text();
        const std::size_t b = all.rfind(before);
        const std::size_t a = all.find(after);
        return b != std::string::npos && a != std::string::npos && b < a;
    }
    void clear() {
        const std::lock_guard lock(mutex_);
        names_.clear();
    }

private:
    mutable std::mutex mutex_;
    std::vector<std::string> names_;
};

// A number that any thread changes. Relaxed: the end of a run publishes everything else.
class shared_number {
public:
    explicit shared_number(int number = 0) noexcept : number_(number) {}
    // Returns the sum.
    int add(int n) noexcept { return number_.fetch_add(n, internal::relaxed) + n; }
    void set(int n) noexcept { number_.store(n, internal::relaxed); }
    int get() const noexcept { return number_.load(internal::relaxed); }

private:
    internal::atomic<int> number_;
};

// Runs a sender to its end. Returns false if it was stopped.
template <class Sender>
bool finishes(Sender&& sender) {
    return this_thread::sync_wait(static_cast<Sender&&>(sender)).has_value();
}

// Returns the error with which the graph refuses to run; no error if it runs.
template <class Sender>
std::error_code refusal(Sender&& sender) {
    try {
        (void)this_thread::sync_wait(static_cast<Sender&&>(sender));
    } catch (const std::system_error& error) {
        return error.code();
    }
    return {};
}

}  // namespace coppice::graph_test
