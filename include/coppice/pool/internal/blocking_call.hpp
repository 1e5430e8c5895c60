// blocking_call: a function that a worker runs while its caller waits; used by run() of a pool.
#pragma once

#include <coppice/base/internal/atomic.hpp>
#include <coppice/base/internal/no_fork_context.hpp>
#include <coppice/base/lifetime.hpp>
#include <coppice/pool/internal/work_item.hpp>

#include <cstdint>
#include <exception>
#include <optional>
#include <type_traits>
#include <utility>

namespace coppice::internal {

// The event for which a caller waits. Threads: its maker waits; one other thread finishes it.
class blocking_call : immovable {
public:
    // Blocks: until the call is finished. Runs items that this thread has deferred.
    void wait() noexcept;
    // Blocks: until the call is finished. Runs nothing, for a caller that may hold a lock.
    void wait_only() noexcept;
    void finish() noexcept;  // the other thread's last access to the call

private:
    atomic<std::uint32_t> state_{0};  // 0: running, 1: running and the caller sleeps, 2: finished
};

// An item of a queue that calls f and keeps its result or exception.
template <class F, class Item = work_item>
class function_call final : public Item {
    using result_type = std::invoke_result_t<F&>;
    static constexpr bool is_void = std::is_void_v<result_type>;
    static constexpr bool is_reference = std::is_reference_v<result_type>;
    struct nothing {};
    using stored_type = std::conditional_t<
        is_void, nothing,
        std::conditional_t<is_reference, std::remove_reference_t<result_type>*, result_type>>;

public:
    explicit function_call(F& f) noexcept : Item(&run), f_(f) {}

    // Returns the result. Blocks: until f has returned. Errors: rethrows what f threw.
    result_type take() {
        call_.wait();
        return result();
    }
    // Returns it likewise, but runs nothing while it waits.
    result_type join() {
        call_.wait_only();
        return result();
    }

private:
    result_type result() {
        if (error_) std::rethrow_exception(std::move(error_));
        if constexpr (is_reference) {
            return static_cast<result_type>(**result_);
        } else if constexpr (!is_void) {
            return std::move(*result_);
        }
    }
    static void run(Item* item) noexcept {
        function_call& self = *static_cast<function_call*>(item);
        try {
            if constexpr (is_void) {
                self.f_();
            } else if constexpr (is_reference) {
                auto&& result = self.f_();
                self.result_.emplace(__builtin_addressof(result));
            } else {
                self.result_.emplace(self.f_());
            }
        } catch (...) {
            self.error_ = std::current_exception();
        }
        self.call_.finish();
    }

    F& f_;
    blocking_call call_;
    std::exception_ptr error_;
    std::optional<stored_type> result_;
};

// Calls f on the calling thread as a worker's loop would: without the fork_join token that is in
// force there.
template <class F>
std::invoke_result_t<F&> call_here(F& f) {
    const no_fork_context none;
    return f();
}

}  // namespace coppice::internal
