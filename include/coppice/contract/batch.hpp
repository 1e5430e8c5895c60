// contract_batch: lets a thread claim several short contracts at once, if it asks for that.
#pragma once
// Claiming and finishing take one locked operation each; a batch shares them among its contracts.
// The price is latency: a claimed contract waits for those before it in the batch, and no other
// thread can take it. So the batch adapts: it claims as many contracts as will run within the
// budget, judged by how long the last ones took, and one at a time if they are long.

#include <coppice/base/clock.hpp>
#include <coppice/signal/selection_bias.hpp>

#include <algorithm>

namespace coppice {

namespace internal {

class contract_core;

}  // namespace internal

// Claims several contracts at once for one thread. Threads: used by one thread at a time, and with
// one group only. Cost of measuring: two clock readings for each batch of long contracts, and for
// every sixteenth batch of short ones.
class contract_batch {
public:
    // Limits a batch to contracts that should run within the budget together.
    explicit contract_batch(internal::duration budget = std::chrono::microseconds(2)) noexcept
        : budget_(static_cast<double>(budget.count())), per_run_(budget_) {}

    // Returns how many contracts the batch would claim now.
    std::size_t size() const noexcept {
        return static_cast<std::size_t>(
            std::clamp(budget_ / std::max(per_run_, 0.1), 1.0, static_cast<double>(most)));
    }

private:
    friend class internal::contract_core;
    static constexpr unsigned most = 32;
    static constexpr unsigned rarely = 16;

    bool is_measured() noexcept { return size() < 8 || ++unmeasured_ % rarely == 0; }
    void took(internal::duration time, std::size_t runs) noexcept {
        const double now = static_cast<double>(time.count()) / static_cast<double>(runs);
        per_run_ += (now - per_run_) / 4;
    }

    internal::signal_round round_;
    double budget_;   // nanoseconds
    double per_run_;  // nanoseconds, a moving average
    unsigned unmeasured_ = 0;
};

}  // namespace coppice
