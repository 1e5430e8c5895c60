// The workers of pool/contract_pool.hpp.
#include <coppice/pool/contract_pool.hpp>

#include <coppice/base/internal/caller_runs.hpp>
#include <coppice/base/internal/check.hpp>
#include <coppice/base/internal/options.hpp>

#include <stdexcept>

namespace coppice {

using namespace internal;

namespace {

// The pool whose worker this thread is, or nullptr.
const contract_pool*& current_pool() noexcept {
    return thread_slot<contract_pool, const contract_pool*>();
}

}  // namespace

contract_pool::contract_pool(std::size_t threads, std::size_t capacity) : group_(capacity) {
    if (threads == 0) throw std::invalid_argument("coppice: a pool needs a thread, got 0");
    check_option("contract_pool: threads", threads, 1, threads_most);
    try {
        for (std::size_t i = 0; i != threads; ++i) threads_.emplace_back([this] { work(); });
    } catch (...) {
        request_stop();
        for (std::thread& each : threads_) each.join();
        throw;
    }
}

contract_pool::~contract_pool() {
    COPPICE_CHECK(
        !is_current(),
        "a contract_pool was destroyed on one of its own workers: destroy it on another thread");
    COPPICE_CHECK(
        !notice_scope::is_inside(&timers_),
        "a contract_pool was destroyed in a stop callback of one of its own timeouts, for "
        "whose end the pool waits: destroy it on another thread");
    request_stop();
    for (std::thread& each : threads_) each.join();
    timers_.end_watch();
    while (group_.execute_next_contract()) {  // scheduled by a call that raced with the end
    }
}

bool contract_pool::is_current() const noexcept {
    return current_pool() == this;
}

// noexcept: an exception that a contract does not handle ends the process, as in a thread.
void contract_pool::work() noexcept {
    current_pool() = this;
    caller_runs<contract_item> place;
    while (group_.execute_next_contract(inplace_stop_token())) place.run_deferred();
    timers_.stop_all();
    place.run_deferred();
}

// A worker must not begin the item inside the call that enqueues it: that may be the start of a
// timeout, whose timer is not armed yet, and the pool would then wait for work without a limit.
void contract_pool::enqueue(contract_item& item) noexcept {
    if (group_.get_scheduler().enqueue_if_open(item)) return;
    if (is_current() && caller_runs<contract_item>::defer(item)) return;
    caller_runs<contract_item>::run(item);
}

}  // namespace coppice
