// linked_stop: an operation's own stop source, stopped by its waiter's token; for task and tokens.
#pragma once
// For an operation that needs a token of another kind than its waiter has. Three threads meet:
//
//   T   requests the waiter's stop, and so runs this source's request_stop() in its callback
//   C   completes the operation: engage() before it starts, reset() before it completes
//   D   destroys the operation once it has completed
//
// If C is not T, reset() waits for T's callback, which has then left request_stop(). If C is T, the
// operation completes inside the callback, and reset() waits for nobody. D may then destroy the
// operation while T is still inside request_stop(), and T would go on in freed memory. So reset()
// also destroys the source. On T it does so inside one of the source's own callbacks: that is what
// all sources of this library allow, and their request_stop() touches nothing afterwards.
// Model: tests/model/linked_stop_model.cpp.

#include <coppice/base/atomic.hpp>
#include <coppice/exec/stop_registration.hpp>

namespace coppice::execution {

// Lifetime: what listens to token() has withdrawn by reset(). Cost: what a registration costs; no
// atomic operation of its own.
template <class Source, class Token>
class linked_stop : immovable {
public:
    linked_stop() { source_.construct(); }
    ~linked_stop() {
        registration_.reset();
        end_source();
    }

    auto token() const noexcept { return source_.get().get_token(); }
    // Before the operation starts. The stop may be requested before this returns.
    void engage(Token token) noexcept {
        registration_.engage(static_cast<Token&&>(token), request(source_.get()));
    }
    // Before the operation completes, once no more callback is registered. Blocks: while another
    // thread passes a stop on.
    void reset() noexcept {
        registration_.reset();
        end_source();
    }

private:
    void end_source() noexcept {
        if (std::exchange(has_source_, false)) source_.destroy();
    }
    using request = request_stop_of<Source>;
    manual_lifetime<Source> source_;  // until reset()
    stop_registration<Token, request> registration_;
    bool has_source_ = true;  // the operation's
};

}  // namespace coppice::execution
