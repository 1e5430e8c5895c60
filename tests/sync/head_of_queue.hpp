// An object whose oldest waiter holds all others back; when it gives up, the next one is granted.
#pragma once

#include <coppice/sync/internal/wait_initiation.hpp>

#include <system_error>

namespace coppice::test {

class head_of_queue {
    struct request {
        using waiter_type = internal::waiter;
        using result = void;
        static constexpr const char* name = "head_of_queue::wait";

        internal::queue_lock& lock() noexcept { return object->lock_; }
        static bool try_now() noexcept { return false; }
        static bool attempt(internal::granted_waiters&) noexcept { return false; }
        void link(waiter_type& w) noexcept { object->waiters_.push_back(w); }
        void unlink(waiter_type& w, internal::granted_waiters& others) noexcept {
            object->waiters_.erase(w);
            if (waiter_type* const next = object->waiters_.claim_front()) others.add(*next);
        }
        static std::error_code error() noexcept { return {}; }
        static void take() noexcept {}
        static void nothing() noexcept {}

        head_of_queue* object;
    };

public:
    template <class Token = use_await_t>
    [[nodiscard]] auto wait(Token&& token = Token()) {
        return internal::initiate_wait(request{this}, static_cast<Token&&>(token));
    }

private:
    internal::queue_lock lock_{0};
    internal::waiter_queue<internal::waiter> waiters_;
};

}  // namespace coppice::test
