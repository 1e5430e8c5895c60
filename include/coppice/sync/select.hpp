// select: waits for several operations, and takes exactly one.
#pragma once

#include <coppice/sync/internal/select_sender.hpp>

#include <type_traits>
#include <utility>
#include <vector>

namespace coppice {

// Returns an operation that waits until one of `ops` is ready, and takes that one. Of the others
// nothing is taken, sent, or locked:
//
//   auto got = co_await select(orders.receive(), stock.receive(), lock.lock(), clock.wait_for(1s));
//   if (auto* order = std::get_if<0>(&got)) ...
//
// `ops` are operations of locks, events, and channels, which are called branches of this room, and
// any other senders. Each is made without a token, or with use_await[ec].
//
// Result: std::variant<R...>, where R is the result of each branch, and std::monostate if it has
// none. The index is the number of the branch. Among the branches of this room that are ready, each
// is chosen about equally often.
//
// Other senders are started only if no branch of this room is ready. The first that completes is
// the result. The rest are asked to stop, and the select ends when all have ended. A value that
// such a sender sends all the same is destroyed. So give a branch of this room as it is:
// `c.receive() | then(f)` is another sender, and its item may be lost. An operation that does
// something although it is stopped is another sender, too: the arrival at a barrier or latch, and
// the wait for a condition.
//
// Errors: that of the branch that was taken, for example std::errc::broken_pipe of a send to a
// closed channel; the await throws it. A stop or a deadline of the waiter stops the select, and so
// does another sender that completes as stopped. If the select is stopped, or another sender ends
// it, no branch of this room has transferred anything.
//
// Threads: any. Blocks: never. A task continues on its own scheduler. Cost: no allocation. A select
// with a branch that is ready does not suspend the task. Otherwise each branch costs two short
// locks of its object, one to link its waiter and one to take it out, and the objects are sorted.
// Lifetime: the objects outlive the operation.
// Source: Go's select statement; the common word is Reppy's, "Concurrent ML", 1991.
template <class... Ops>
    requires(sizeof...(Ops) != 0) && (execution::sender<Ops> && ...)
[[nodiscard]] auto select(Ops... ops) {
    using operands = internal::select_pack<Ops...>;
    return internal::select_sender<operands>(operands{typename operands::kept(std::move(ops)...)});
}

// As select, for operations of one type whose number is known at run time. Result:
// std::pair<std::size_t, R>, the place of the branch and its result. Errors: in addition,
// std::errc::invalid_argument if `ops` is empty. Cost: one allocation, when it is awaited or
// connected, from the allocator of the waiter's environment.
template <execution::sender Op>
[[nodiscard]] auto select_range(std::vector<Op> ops) {
    using operands = internal::select_vector<Op>;
    return internal::select_sender<operands>(operands{std::move(ops)});
}

}  // namespace coppice
