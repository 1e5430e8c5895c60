// The threads of io/context_pool.hpp.
#include <coppice/base/internal/options.hpp>
#include <coppice/io/context_pool.hpp>

#include <pthread.h>
#include <sched.h>
#include <algorithm>
#include <string>

namespace coppice::io {

using namespace internal;

namespace {

// Returns how many cores this process may use.
std::size_t usable_cores() noexcept {
    cpu_set_t set;
    if (::sched_getaffinity(0, sizeof set, &set) != 0) return 1;
    return std::max<std::size_t>(1, static_cast<std::size_t>(CPU_COUNT(&set)));
}

}  // namespace

context_pool::context_pool(std::size_t threads, backend kind) {
    check_option("context_pool: threads", threads, 0, threads_most);
    const std::size_t count = threads == 0 ? usable_cores() : threads;
    for (std::size_t i = 0; i != count; ++i) {
        loops_.push_back(std::make_unique<running_loop>(kind));
    }
    try {
        for (std::size_t i = 0; i != count; ++i) {
            running_loop& l = *loops_[i];
            l.thread = std::thread([&l] { l.run(); });
            const std::string name = "coppice-io/" + std::to_string(i % 1000);
            ::pthread_setname_np(l.thread.native_handle(), name.c_str());
        }
    } catch (...) {
        stop();
        join();
        throw;
    }
}

context_pool::~context_pool() {
    join();
}

void context_pool::drain(duration limit) noexcept {
    if (ending_.exchange(true, relaxed)) return;
    for (const auto& l : loops_) {
        l->patience = limit;
        l->loop.post(l->end);
    }
}

void context_pool::join() noexcept {
    for (const auto& l : loops_) {
        l->guard.reset();
        if (l->thread.joinable()) l->thread.join();
    }
}

void context_pool::running_loop::run() noexcept {
    loop.run();
    // After stop() or drain(), this ends what is pending. Otherwise nothing is pending.
    (void)loop.drain(patience);
}

void context_pool::running_loop::end_request::begin(operation* op) noexcept {
    static_cast<end_request*>(op)->owner.loop.stop();
}

}  // namespace coppice::io
