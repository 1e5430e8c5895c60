// linked_stop: an operation's own stop source, stopped by its waiter's token; for task and tokens.
#pragma once
// For an operation that needs a token of another kind than its waiter has. Three threads meet:
//
//   T   requests the waiter's stop, and so runs this source's request_stop() in its callback
//   C   completes the operation: engage() before it starts, reset() before it completes
//   D   destroys the operation once it has completed
//
// If C is not T, reset() waits for T's callback, which has then left request_stop(). If C is T, the
// operation completes inside one of this source's callbacks, reset() waits for nobody, and D may
// destroy the source while T is still inside request_stop(). That is safe: T does not touch the
// source after its last callback has ended (stop/way_back.hpp), and the operation takes its
// callbacks back before it completes.
// Model: tests/model/linked_stop_model.cpp.

#include <coppice/base/atomic.hpp>
#include <coppice/exec/stop_registration.hpp>

namespace coppice::execution {

// Lifetime: what listens to token() has withdrawn by reset(). Cost: what a registration costs; no
// atomic operation of its own.
template <class Source, class Token>
class linked_stop : immovable {
public:
    auto token() const noexcept { return source_.get_token(); }
    // Before the operation starts. The stop may be requested before this returns.
    void engage(Token token) noexcept {
        registration_.engage(static_cast<Token&&>(token), request(source_));
    }
    // Before the operation completes, once no more callback is registered. Blocks: while another
    // thread passes a stop on.
    void reset() noexcept { registration_.reset(); }

private:
    using request = request_stop_of<Source>;
    Source source_;
    stop_registration<Token, request> registration_;
};

}  // namespace coppice::execution
