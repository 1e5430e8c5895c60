// Replaces the system's resolver by one whose look-ups hang until the test releases them.
#pragma once

#include <coppice/base/lifetime.hpp>
#include <coppice/io/endpoint.hpp>
#include <coppice/io/internal/workers.hpp>

#include "../../src/io/look_up.hpp"

#include <netdb.h>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <latch>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

namespace coppice::test {

// A job that frees itself when it has run.
class own_call : io::internal::job {
public:
    static void run_by(io::internal::workers& by, std::function<void()> f) {
        auto made = std::make_unique<own_call>(std::move(f));
        if (!by.run(*made)) (void)made.release();
    }
    explicit own_call(std::function<void()> f) : job(&make), function_(std::move(f)) {}

private:
    static void make(job* j) noexcept {
        const std::unique_ptr<own_call> self(static_cast<own_call*>(j));
        self->function_();
    }
    std::function<void()> function_;
};

// Waits until all jobs given to the workers are over; the workers have at most 8 threads. Blocks:
// until then.
inline void settle(io::internal::workers& w) {
    const auto all = std::make_shared<std::latch>(8);  // only idle threads get here, all at once
    for (int i = 0; i != 8; ++i) own_call::run_by(w, [all] { all->arrive_and_wait(); });
    all->wait();
}

// As long as it exists, workers ask this object. A planted name has the endpoints that were
// planted. "slow..." hangs until let_go(), and then has 127.0.0.1; "here" has that address at once.
// Other names do not exist. Make one object at a time. Threads: any.
class slow_names : immovable {
public:
    slow_names() {
        current() = this;
        io::look_up_by(&look_up);
    }
    // Blocks: until no worker is asking.
    ~slow_names() {
        let_go();
        settle(io::internal::name_workers());
        io::look_up_by(nullptr);
    }
    void plant(const std::string& name, std::vector<io::endpoint> addresses) {
        const std::lock_guard lock(mutex_);
        planted_[name] = std::move(addresses);
    }
    // Blocks: until `count` look-ups hang.
    void wait_for_hanging(std::size_t count) {
        wait([this, count] { return hanging_ == count; });
    }
    // Blocks: until `count` look-ups have ended.
    void wait_for_ended(std::size_t count) {
        wait([this, count] { return ended_ >= count; });
    }
    std::size_t hanging() {
        const std::lock_guard lock(mutex_);
        return hanging_;
    }
    std::size_t hanging_most() {
        const std::lock_guard lock(mutex_);
        return hanging_most_;
    }
    // Returns how many look-ups have begun.
    std::size_t asked() {
        const std::lock_guard lock(mutex_);
        return asked_;
    }
    // Releases all look-ups that hang now or later, or `count` of them.
    void let_go() { let_go(unlimited); }
    void let_go(std::size_t count) {
        const std::lock_guard lock(mutex_);
        may_end_ = count == unlimited ? unlimited : may_end_ + count;
        changed_.notify_all();
    }

private:
    static constexpr std::size_t unlimited = SIZE_MAX;
    static slow_names*& current() {
        static slow_names* one = nullptr;
        return one;
    }
    template <class Condition>
    void wait(Condition condition) {
        std::unique_lock lock(mutex_);
        changed_.wait(lock, condition);
    }
    static int look_up(const std::string& host, std::vector<io::endpoint>& found) noexcept {
        return current()->answer(host, found);
    }
    int answer(const std::string& host, std::vector<io::endpoint>& found) {
        std::unique_lock lock(mutex_);
        ++asked_;
        if (const auto at = planted_.find(host); at != planted_.end()) {
            found = at->second;
            return found.empty() ? EAI_NONAME : 0;
        }
        const bool slow = host.starts_with("slow");
        if (!slow && host != "here") return EAI_NONAME;
        found.push_back(*io::endpoint::parse("127.0.0.1", 0));
        if (!slow) return 0;
        ++hanging_;
        if (hanging_most_ < hanging_) hanging_most_ = hanging_;
        changed_.notify_all();
        changed_.wait(lock, [this] { return may_end_ != 0; });
        if (may_end_ != unlimited) --may_end_;
        --hanging_;
        ++ended_;
        changed_.notify_all();
        return 0;
    }

    std::mutex mutex_;                 // guards all members below
    std::condition_variable changed_;  // one of them has changed
    std::map<std::string, std::vector<io::endpoint>> planted_;
    std::size_t asked_ = 0;
    std::size_t hanging_ = 0;
    std::size_t hanging_most_ = 0;
    std::size_t ended_ = 0;
    std::size_t may_end_ = 0;
};

}  // namespace coppice::test
