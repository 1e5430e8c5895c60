// Instantiates the workers of pool/thread_pool.hpp, and defines what all pools share.
#include <coppice/pool/thread_pool.hpp>

#include <coppice/base/internal/futex.hpp>
#include <coppice/base/internal/options.hpp>
#include <coppice/base/internal/put_off.hpp>
#include <coppice/pool/internal/pool_members.hpp>

#include <pthread.h>
#include <sched.h>

#include <algorithm>
#include <array>
#include <bit>
#include <optional>
#include <stdexcept>
#include <string>
#include <system_error>
#include <vector>

namespace coppice::internal {

template class basic_pool<thread_pool_queues>;

std::size_t hardware_threads() noexcept {
    std::array<unsigned long, 1024> mask{};  // allocates nothing, unlike allowed_processors()
    if (::sched_getaffinity(0, sizeof mask, reinterpret_cast<cpu_set_t*>(mask.data())) != 0)
        return 1;
    std::size_t count = 0;
    for (const unsigned long word : mask) count += static_cast<std::size_t>(std::popcount(word));
    return std::max<std::size_t>(1, count);
}

namespace {

constexpr std::uint64_t trace_events_most = std::uint64_t{1} << 32;  // for each worker

// Returns the topology to which the workers are dealt; nothing for one node without pinning.
std::optional<topology> machine_of(const pool_options& options) {
    if (options.machine || options.pin == pinning::none) return options.machine;
    return topology::of_this_process();
}

void check_allowed(const std::vector<processor>& processors) {
    const std::vector<unsigned> allowed = allowed_processors();
    for (const processor& each : processors) {
        if (!std::binary_search(allowed.begin(), allowed.end(), each.id)) {
            throw std::invalid_argument("coppice: processor " + std::to_string(each.id) +
                                        " may not be used by this process");
        }
    }
}

// Returns the processors to which a worker dealt to `mine` is pinned.
std::vector<unsigned> bound_to(const processor& mine, const std::vector<processor>& all,
                               pinning pin) {
    std::vector<unsigned> ids;
    for (const processor& each : all) {
        const bool near = pin == pinning::node && each.node == mine.node;
        const bool same = pin == pinning::processor && each.id == mine.id;
        if (near || same) ids.push_back(each.id);
    }
    return ids;
}

}  // namespace

std::vector<worker_place> places_of(const pool_options& options) {
    check_option("pool_options::threads", options.threads, 0, threads_most);
    check_option("pool_options::trace_events", options.trace_events, 0, trace_events_most);
    const std::optional<topology> machine = machine_of(options);
    if (!machine) {
        const std::size_t threads = options.threads == 0 ? hardware_threads() : options.threads;
        return std::vector<worker_place>(threads, worker_place{0, {}});
    }
    const std::vector<processor>& all = machine->processors();
    if (options.pin != pinning::none) check_allowed(all);
    const std::size_t threads = options.threads == 0 ? all.size() : options.threads;
    std::vector<worker_place> places;
    for (const unsigned node : machine->nodes()) {
        for (std::size_t i = 0; i != threads; ++i) {
            const processor& mine = all[i % all.size()];
            if (mine.node == node) places.push_back({node, bound_to(mine, all, options.pin)});
        }
    }
    return places;
}

void pin(::pthread_t thread, const std::vector<unsigned>& processors) {
    if (processors.empty()) return;
    constexpr std::size_t word_bits = 8 * sizeof(unsigned long);
    std::vector<unsigned long> mask;
    for (const unsigned id : processors) {
        mask.resize(std::max(mask.size(), id / word_bits + 1));
        mask[id / word_bits] |= 1ul << id % word_bits;
    }
    const int error = ::pthread_setaffinity_np(thread, mask.size() * sizeof(unsigned long),
                                               reinterpret_cast<const cpu_set_t*>(mask.data()));
    if (error != 0) {
        throw std::system_error(error, std::generic_category(), "coppice: pinning a worker");
    }
}

void blocking_call::wait() noexcept {
    while (state_.load(relaxed) != 2 && put_off_work::run_one()) {  // relaxed: acquired below
    }
    wait_only();
}

void blocking_call::wait_only() noexcept {
    std::uint32_t state = 0;
    // edge pool.call (acquire): the result is there
    if (!state_.compare_exchange_strong(state, 1, acquire, acquire)) return;
    // edge pool.call (acquire): the result is there
    while (state_.load(acquire) != 2) futex_wait(state_, std::uint32_t{1});
}

void blocking_call::finish() noexcept {
    // The caller may return at once, so only the address is used below.
    // edge pool.call (release): the result is written
    if (state_.exchange(2, release) == 1) futex_wake_one(state_);
}

}  // namespace coppice::internal
