// blocking_work_contract_group: a group whose idle workers sleep.
#pragma once
// A worker that finds nothing spins for some microseconds, then sleeps on its own futex. Each
// schedule() wakes one sleeper, the one with the lowest seat, so that few workers stay warm. While
// no worker sleeps, schedule() costs one load more than in a work_contract_group.
// sleeping_workers.hpp has the protocol.

#include <coppice/base/clock.hpp>
#include <coppice/base/internal/options.hpp>
#include <coppice/base/internal/put_off.hpp>
#include <coppice/base/saturating.hpp>
#include <coppice/contract/group.hpp>
#include <coppice/stop/inplace.hpp>

#include <limits>

namespace coppice {

// A group whose workers can wait for work: they spin briefly, then sleep.
class blocking_work_contract_group : public work_contract_group {
public:
    // As work_contract_group. If more than sleepers_max workers wait at once, the surplus does not
    // sleep but looks for work every millisecond. Errors: std::invalid_argument for a capacity or
    // sleepers_max of 0, or of 2^32 and more.
    explicit blocking_work_contract_group(std::size_t capacity, std::size_t capacity_max = 0,
                                          std::size_t sleepers_max = 1024)
        : work_contract_group(capacity, capacity_max, checked(sleepers_max)) {}

    using work_contract_group::execute_next_contract;

    // Waits for a contract and runs it, chosen by this thread's own fair bias or by the given one.
    // Returns false if stop was requested, if the group was stopped, or if it was drained and
    // nothing is left. Blocks: until a contract is available, or until one of these happens.
    bool execute_next_contract(inplace_stop_token token) {
        return wait_and_execute(this_threads_round(), token, never);
    }
    bool execute_next_contract(selection_bias& bias, inplace_stop_token token) {
        return wait_and_execute(bias, token, never);
    }
    // Also returns false after `most`. A time of 0 or less does not wait.
    bool execute_next_contract(std::chrono::nanoseconds most) {
        return wait_and_execute(this_threads_round(), inplace_stop_token(), after(most));
    }
    bool execute_next_contract(selection_bias& bias, std::chrono::nanoseconds most) {
        return wait_and_execute(bias, inplace_stop_token(), after(most));
    }

private:
    static constexpr std::int64_t never = std::numeric_limits<std::int64_t>::max();
    static constexpr std::int64_t nap = 1'000'000;
    static constexpr int spins_max = 64;  // some microseconds, as a wake-up takes at least

    static std::size_t checked(std::size_t sleepers_max) {
        internal::check_option("a blocking group's sleepers_max", sleepers_max, 1,
                               std::numeric_limits<std::uint32_t>::max());
        return sleepers_max;
    }
    static std::int64_t now() noexcept {
        return monotonic_clock().now().time_since_epoch().count();
    }
    static std::int64_t after(std::chrono::nanoseconds most) noexcept {
        return saturating_add(now(), static_cast<std::int64_t>(most.count()));
    }

    template <class Bias>
    bool wait_and_execute(Bias& bias, inplace_stop_token token, std::int64_t deadline) {
        const auto ended = [&token, deadline] {
            return token.stop_requested() || (deadline != never && now() >= deadline);
        };
        for (;;) {
            if (token.stop_requested()) return false;
            std::size_t claimed = core().claim(bias);
            for (int i = 0; i != spins_max && claimed == internal::no_signal && !ended(); ++i) {
                if (core().sleepers()->is_over()) break;
                internal::spin_hint();
                claimed = core().claim(bias);
            }
            if (claimed == internal::no_signal && internal::put_off_work::run_one()) continue;
            if (claimed == internal::no_signal && !core().sleepers()->is_over()) {
                claimed = claim_asleep(bias, token, deadline, ended);
            }
            if (claimed == internal::no_signal && core().sleepers()->is_over()) {
                claimed = core().claim_at_end(bias);
            }
            if (claimed == internal::no_signal) return false;
            if (core().run_claimed(claimed)) return true;
        }
    }

    template <class Bias, class Ended>
    std::size_t claim_asleep(Bias& bias, inplace_stop_token token, std::int64_t deadline,
                             Ended ended) noexcept {
        internal::sleeping_workers& sleepers = *core().sleepers();
        const auto look = [this, &bias] { return core().claim(bias); };
        const std::size_t seat = sleepers.take_seat();
        if (seat == internal::no_signal) return claim_napping(look, ended);
        std::size_t claimed;
        {
            const auto wake = [&sleepers, seat]() noexcept { sleepers.wake(seat); };
            const inplace_stop_callback<decltype(wake)> on_stop(token, wake);
            claimed = sleepers.wait(seat, look, ended, [&sleepers, seat, deadline] {
                if (deadline == never) {
                    sleepers.sleep(seat);
                } else {
                    sleepers.sleep_until(seat, deadline);
                }
            });
        }
        sleepers.give_seat_back(seat);
        return claimed;
    }
    template <class Look, class Ended>
    std::size_t claim_napping(Look look, Ended ended) noexcept {
        const internal::atomic<std::uint32_t> nobody_wakes{0};
        for (;;) {
            internal::futex_wait_until(nobody_wakes, std::uint32_t{0}, now() + nap);
            const std::size_t claimed = look();
            if (claimed != internal::no_signal || ended() || core().sleepers()->is_over())
                return claimed;
        }
    }
};

}  // namespace coppice
