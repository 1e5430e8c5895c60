// linked_stop: an operation's own stop source, stopped through its waiter's token; for tasks.
#pragma once
// For an operation whose token type differs from its waiter's. Three threads meet:
//
//   T   requests the waiter's stop; its callback runs this source's request_stop()
//   C   completes the operation: engage() before it starts, reset() before it completes
//   D   destroys the operation once it has completed
//
// If C is not T, reset() waits for T's callback, which has left request_stop() by then. If C is T,
// the operation completes inside one of this source's callbacks, and reset() waits for no thread. D
// may then destroy the source while T is still inside request_stop(). That is safe: T does not
// touch the source after its last callback has ended (stop/internal/way_back.hpp), and the
// operation deregisters its callbacks before it completes. Model:
// tests/model/linked_stop_model.cpp.

#include <coppice/base/internal/atomic.hpp>
#include <coppice/exec/internal/stop_registration.hpp>

namespace coppice::execution::internal {

// Lifetime: all callbacks on token() are deregistered before reset(). Cost: that of one
// registration; no atomic operation of its own.
template <class Source, class Token>
class linked_stop : immovable {
public:
    auto token() const noexcept { return source_.get_token(); }
    // Called before the operation starts. The stop may be requested before this returns.
    void engage(Token token) noexcept {
        registration_.engage(static_cast<Token&&>(token), request(source_));
    }
    // Called before the operation completes, when no callback is registered any longer. Blocks:
    // while another thread passes a stop on.
    void reset() noexcept { registration_.reset(); }

private:
    using request = request_stop_of<Source>;
    Source source_;
    stop_registration<Token, request> registration_;
};

}  // namespace coppice::execution::internal
