// What a worker of a pool does for timers that are due; for pool_members.hpp.
#pragma once

#include <coppice/pool/internal/pool_timer.hpp>
#include <coppice/pool/internal/pool_timers.hpp>
#include <coppice/pool/internal/ready_timers.hpp>
#include <coppice/pool/internal/worker.hpp>

#include <cstddef>
#include <cstdint>

namespace coppice::internal {

// Enqueues the item of a timer that has ended at its node, as submit() does.
template <class Queues>
void basic_pool<Queues>::worker::enqueue_at_node(pool_timer& timer) noexcept {
    if (!owner.entry.enter()) {
        owner.queues.push(index, &timer);
        return;
    }
    // The gate keeps the node's workers from ending.
    const std::size_t there = timer.node;
    owner.nodes[there]->inbox.push(&timer);
    owner.lots[there].wake_one();
    owner.entry.leave();
}

// Adds the timers that are due to `due`; all timers, as stopped, if the pool was told to end.
// `all`: those of every wheel, not only the worker's own. If it adds any, the caller calls
// run_timers(); until that returns, no other worker ends.
template <class Queues>
void basic_pool<Queues>::worker::take_timers(std::int64_t now, bool all, item_chain& due) noexcept {
    pool_timers& timers = owner.timers;
    const bool ends = owner.entry.is_closed();
    const auto tick = pool_timers::tick_at(now);
    timer_shard& mine = timers[index];  // others read its line, so it is written only if needed
    std::size_t sources = 0;
    const auto serve = [this, &timers, &mine, &sources, ends, tick, &due](std::size_t i) noexcept {
        const auto next = timers[i].next();
        if (next == pool_timers::never || (!ends && next > tick)) return;
        mine.begin_taking();
        ++sources;
        const wheel_user user = i == index ? wheel_user::owner : wheel_user::other;
        if (ends) {
            timers[i].take_all(user, due);
        } else {
            timers[i].take_due(tick, user, due);
        }
    };
    serve(index);
    if (all) {
        for (std::size_t i = 0; i != timers.count(); ++i) {
            if (i != index) serve(i);
        }
    } else if (!due.empty()) {
        serve(timers.count() - 1);  // an earlier timer may wait there
    }
    // edge pool_timers.taken (acquire): what the guard has taken out of a wheel
    fence(acquire);
    if (timers.are_late()) {
        mine.begin_taking();
        ++sources;
        timers.take_late(due);
    }
    if (sources > 1) put_in_order(due);
    if (due.empty() && mine.is_taking()) mine.end_taking();
}

// Makes timers ready that have come to their end, in the order of their times. Those for a node go
// to its workers. The caller then wakes a worker.
template <class Queues>
void basic_pool<Queues>::worker::make_ready(item_chain& due) noexcept {
    item_chain mine;
    while (work_item* const item = due.pop_front()) {
        pool_timer& timer = *static_cast<pool_timer*>(item);
        if (timer.node == pool_timer::any_node) {
            mine.push_back(item);
        } else {
            enqueue_at_node(timer);
        }
    }
    ready.add(mine);
}

// Makes timers ready that have come to their end. Those whose receivers want a notice follow one by
// one, each after its notice: its item may have to wait behind a long one. A notice runs stop
// callbacks, which may take long or wait for another timer. So no timer but the next ones of this
// kind waits for it, and the caller must not be a searcher. The caller then wakes a worker.
template <class Queues>
void basic_pool<Queues>::worker::run_timers(item_chain& due) noexcept {
    item_chain without = take_without_notice(due);
    make_ready(without);
    while (work_item* const item = due.pop_front()) {
        wake_one();  // for what was enqueued before
        pool_timer& timer = *static_cast<pool_timer*>(item);
        timer.give_notice();
        item_chain told;
        told.push_back(item);
        make_ready(told);
    }
    owner.timers[index].end_taking();
}

template <class Queues>
void basic_pool<Queues>::worker::look_between_items() noexcept {
    if (!looks.is_time()) return;
    // The wheels keep the order of the others.
    if (ready.count() >= ready_enough && !owner.entry.is_closed()) return looks.put_off();
    const std::int64_t now = trace_time();
    item_chain due;
    take_timers(now, looks.looked(now) || owner.entry.is_closed(), due);
    if (due.empty()) return;
    run_timers(due);
    wake_one();
}

// Called between taking an item or a call and running it. Work that was made after the pool was
// told to end may run until the end stops a timer. An earlier look may have come before the end;
// this one sees it, because the maker of the work did. Returns false if the caller must not run
// what it has found: it is queued again. For a stop callback may run here, and wait for a timer
// whose item was found: another worker must be able to take it.
template <class Queues>
bool basic_pool<Queues>::worker::look_after_end(const found_work& found) noexcept {
    if (!owner.timers.are_used() || !owner.entry.is_closed()) [[likely]]
        return true;
    item_chain due;
    take_timers(trace_time(), true, due);
    if (due.empty()) return true;
    const bool is_item = found.item != nullptr;
    if (is_item) put_back(found);
    run_timers(due);
    wake_one();
    return !is_item;
}

}  // namespace coppice::internal
