// way_back: how a requester returns to a source after a callback removed itself; for slot sources.
#pragma once
// The promise: when the deregistration of the last callback returns, the request_stop() that runs
// callbacks does not touch the source again. So the owner may destroy a source as soon as it has
// removed every callback, even if a request that has begun to run them has not returned.
//
// How it is kept: whenever the requester touches the source after its first callback, there is a
// registration that cannot end yet. There are two cases.
//
//   1. The callback that has just run still exists. The requester first claims the next one, and
//      only then marks the previous one as done. Until then the destructor of the previous one
//      waits.
//   2. The callback has removed itself, and its destructor must not wait. It hands the source
//      over to the next filled slot, which is marked as watched. The callback in that slot can be
//      removed as usual, without waiting for a function. But its remover finds the mark, and must
//      pass it on to a later filled slot or, if there is none, tell the requester. The requester
//      reads that in its own frame (running.hpp), so it need not touch a source that may be gone.
//
//   requester, callback i removed itself:                    hand_over
//     away; the first filled slot k > i: watched             none: the requester is told to leave
//   remover of k, whose callback has not run:                leave_watched
//     k = leaving; the first filled slot m > k: watched; k = left
//     no such slot: cut = asked; heavy_fence(); is it back?
//       no: cut = gone; k = left                             the requester will leave
//       yes: cut = meet; k = farewell, waits                 the requester will come to k
//   requester, the function has returned:                    come_back
//     back; light_fence(); cut?
//     asked: waits for the decision. gone: leaves, and touches nothing
//     open, meet: from slot i + 1 on: watched: claims it, and runs it; here case 1 begins again
//                                     leaving: waits for the remover
//                                     farewell: k = left, its last touch, and leaves
//
// Proof. While the requester is away, exactly one slot is watched or leaving, and the mark only
// moves forward. By the pair of fences (base/internal/asymmetric.hpp), either the last remover sees
// that the requester is back, or the requester sees that it was asked. If the requester does not
// see that, the remover sees that the requester is back, and waits at its slot. The requester
// reaches that slot, because it does not pass a slot that is leaving, and finds `farewell` there.
// If the requester sees that it was asked, it waits, and the remover decides for both. Only a
// callback's own destructor waits for a function. The other waits last as long as the other side
// needs for some instructions or a membarrier, like waits for a lock.
//
// A slot that is filled after the stop became visible need not be found: the registering thread
// looks at the flag again (finite.hpp), takes the callback back, and runs it.

#include <coppice/base/internal/atomic.hpp>
#include <coppice/stop/internal/running.hpp>

#include <cstddef>

namespace coppice::internal {

// What come_back() finds in a slot.
enum class met { nothing, callback, farewell };

// A Row is a view of a source as its slots, numbered in the order in which a request runs them:
//   size()                  the number of slots
//   after(i)                the slot behind i
//   settle(i, request)      the callback of slot i has removed itself, and a slot may be watched
//                           for this request; settle(i) ends that
//   pass_on(k, i, request)  marks the first filled slot from k on; false if there is none
//   watcher(k, i)           the request that slot k is watched for; sets i to the slot that settled
//   leave(k)                the mark was passed on, or the requester told: the slot is empty
//   wait_for_farewell(k)    returns when the requester has been here
//   meet(k, callback)       called by the returned requester; sets the callback if it claims it
//   say_farewell(k)         releases the remover that waits for it

// Called by the destructor of slot i's callback, inside that callback's own function.
template <class Row>
[[gnu::always_inline]] inline void hand_over(Row row, std::size_t i,
                                             running_request& request) noexcept {
    row.settle(i, request);
    request.go_away();
    if (row.pass_on(row.after(i), i, request)) [[likely]]
        return;
    row.settle(i);
    if (!planted("stop.return_to_nothing")) request.forget_source();
}

// Called by a thread that has emptied slot k and found it watched. Blocks: while the requester,
// which is between two callbacks, is on its way.
template <class Row>
[[gnu::noinline, gnu::cold]] void leave_watched(Row row, std::size_t k) noexcept {
    std::size_t i = 0;
    running_request& request = *row.watcher(k, i);
    if (!planted("stop.drop_watch") && row.pass_on(k + 1, i, request)) {
        row.leave(k);
    } else if (request.cut_off()) {
        row.settle(i);
        row.leave(k);
    } else {
        row.wait_for_farewell(k);
    }
}

// What a request runs next: a callback and its slot. Without a callback, the caller must touch
// nothing.
template <class Callback>
struct claimed_callback {
    Callback* callback = nullptr;
    std::size_t i = 0;
};

// Called by the requester when the function of slot i's callback has returned, the callback is
// gone, and the source is not. Blocks: while the remover of a watched callback is between its two
// steps.
template <class Callback, class Row>
[[gnu::always_inline]] inline claimed_callback<Callback> come_back(Row row,
                                                                   std::size_t i) noexcept {
    Callback* callback = nullptr;
    for (std::size_t k = row.after(i); k != row.size(); ++k) {
        const met found = row.meet(k, callback);
        if (found == met::nothing) continue;
        row.settle(i);  // not earlier: the remover of a watched callback looks for it
        if (found == met::callback) return {callback, k};
        row.say_farewell(k);  // the source may be gone
        break;
    }
    return {};
}

// The main loop of a request, which starts with a claimed callback. Lifetime: the source may be
// gone afterwards. It also uses these members of Row:
//   execute(claimed)  runs it
//   claim_from(i)     claims the next callback, of slot i or a later one
//   finish(claimed)   it has returned, and the requester does not touch it again
template <class Row, class Callback>
[[gnu::always_inline]] inline void run_row(Row row, claimed_callback<Callback> next,
                                           running_request& request) noexcept {
    while (next.callback != nullptr) {
        request.set_callback(next.callback);
        row.execute(next);
        if (request.callback_gone()) {
            if (request.source_gone() || !request.come_back()) return;  // touch nothing
            next = come_back<Callback>(row, next.i);
            continue;
        }
        const claimed_callback<Callback> former = next;
        if (planted("stop.finish_before_claim")) row.finish(former);
        next = row.claim_from(row.after(former.i));
        if (planted("stop.finish_before_claim")) continue;
        row.finish(former);  // if there is no next one, the source may be gone
    }
}

}  // namespace coppice::internal
