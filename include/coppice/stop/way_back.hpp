// The way back of a requester whose callback removed itself; used by every source with slots.
#pragma once
// The promise: the deregistration of the last callback ends only when the request_stop() that runs
// callbacks does not touch the source again. Hence the owner may destroy a source as soon as it has
// removed every callback, though a request that has begun to run them has not returned.
//
// What keeps the promise: whenever the requester touches the source after its first callback, some
// registration cannot end. There are two cases.
//
//   1. The callback that has just run is still there. The requester claims the next one first, and
//      only then marks the former as done: until then, the former's destructor waits.
//   2. The callback has removed itself, and its destructor must not wait. The source is handed over
//      to the next slot that is filled: that slot is marked as watched. Its callback is removed as
//      ever, without waiting for a function, but its remover finds the mark and must pass it on to
//      a later slot that is filled, or, when there is none, tell the requester. The requester reads
//      that in its own frame (running.hpp), so it need not touch a source that may be gone.
//
//   requester, callback i removed itself:                    hand_over
//     way = away; the first filled slot k > i: watched       none: the requester is told to leave
//   remover of k, whose callback has not run:                leave_watched
//     k = leaving; the first filled slot m > k: watched; k = left
//     no such slot: way.exchange(cut)
//       it was away: k = left                                the requester will see `cut`, and leave
//       it was back: k = farewell, waits                     the requester will meet k, and say it
//   requester, the function has returned:                    come_back
//     way.exchange(back): it was cut: leave, and touch nothing
//     from slot i + 1 on: watched: claims it, and runs it    from here on it is case 1 again
//                         leaving: waits for the remover     a few instructions
//                         farewell: k = left, its last touch, and leaves
//
// Proof. While the requester is away, exactly one slot is watched or leaving, and marks only move
// forward. `way` decides between the last remover and the requester. Cut first: the requester
// touches nothing more. Back first: it comes to the marked slot, because it passes none that is
// leaving; either it claims a watched one, or the last remover waits there until its last touch.
// Nobody waits for a function but its own callback's destructor: leaving and farewell last for as
// long as the other side needs for some instructions, as a lock does.
//
// A slot that is filled after the stop became visible need not be found: who registers looks at the
// flag again (finite.hpp), takes the callback back, and runs it.

#include <coppice/base/atomic.hpp>
#include <coppice/stop/running.hpp>

#include <cstddef>

namespace coppice {

// What come_back() meets in a slot.
enum class met { nothing, callback, farewell };

// A Row is a source as its slots, numbered in the order in which a request runs them:
//   size()                how many there are
//   after(i)              the slot behind i
//   watch(k, request)     marks slot k, if it is filled; false if not
//   watcher(k)            the request that slot k is marked for
//   leave(k)              the mark was passed on, or the requester told: the slot is empty
//   wait_for_farewell(k)  returns when the requester has been here
//   meet(k, callback)     for the requester that has come back; sets the callback if it claims it
//   settle(k)             slot k's callback has removed itself

// Called in the destructor of slot i's callback, inside its own function.
template <class Row>
[[gnu::noinline]] void hand_over(Row row, std::size_t i, running_request& request) noexcept {
    row.settle(i);
    request.go_away();
    for (std::size_t k = row.after(i); k != row.size(); ++k) {
        if (row.watch(k, request)) return;
    }
    if (!planted("stop.return_to_nothing")) request.forget_source();
}

// Called by who has emptied slot k and found that it was watched. Blocks: while the requester, which
// is between two callbacks, is on its way.
template <class Row>
[[gnu::noinline, gnu::cold]] void leave_watched(Row row, std::size_t k) noexcept {
    running_request& request = *row.watcher(k);
    for (std::size_t m = k + 1; m != row.size() && !planted("stop.drop_watch"); ++m) {
        if (!row.watch(m, request)) continue;
        row.leave(k);
        return;
    }
    if (request.cut_off()) {
        row.leave(k);
    } else {
        row.wait_for_farewell(k);
    }
}

// Called by the requester when the function of slot i's callback has returned and the callback is
// gone. Returns what runs next, and sets its slot; nullptr: touch nothing. Blocks: while the
// remover of a watched callback is between its two steps.
template <class Row, class Callback>
[[gnu::noinline]] Callback* come_back(Row row, std::size_t& i, running_request& request) noexcept {
    if (!request.come_back()) return nullptr;
    Callback* callback = nullptr;
    for (i = row.after(i); i != row.size(); ++i) {
        const met found = row.meet(i, callback);
        if (found != met::nothing) return callback;
    }
    return nullptr;
}

// The request's main loop, from slot i, whose callback was claimed, on. Lifetime: the source may be
// gone afterwards. A Row offers beside the above:
//   execute(i, callback)  runs it
//   claim_from(i)         the next callback of slot i or a later one, and sets i; nullptr: none
//   finish(i, callback)   the callback has returned and the requester does not touch it again
template <class Row, class Callback>
[[gnu::always_inline]] inline void run_row(Row row, std::size_t i, running_request& request,
                                           Callback* callback) noexcept {
    while (callback != nullptr) {
        request.set_callback(callback);
        row.execute(i, callback);
        if (request.source_gone()) return;  // touch nothing
        if (request.callback_gone()) {
            callback = come_back<Row, Callback>(row, i, request);
            continue;
        }
        const std::size_t ended = i;
        Callback* const former = callback;
        if (planted("stop.finish_before_claim")) row.finish(ended, former);
        i = row.after(i);
        callback = row.claim_from(i);
        if (planted("stop.finish_before_claim")) continue;
        row.finish(ended, former);  // the source may be gone, if there is no next one
    }
}

}  // namespace coppice
