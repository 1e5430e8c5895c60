// simulated_structures: contracts and queues as programs on simulated caches; for scaling.cpp.
#pragma once
// Every access is one co_await. The code after it runs at that access's time. The work of a task is
// one write to its own line.

#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "simulated_caches.hpp"

namespace bench_scaling {

inline constexpr std::uint64_t tasks = 16'384;

// Leaves of 32 ready and 32 running bits. Each task reschedules itself. Fused: finishing one task
// and claiming the next are one exchange.
struct contracts {
    lines leaves = lines(tasks / 32);
    lines data = lines(tasks);
    bool fused;
    explicit contracts(bool f) : fused(f) {
        for (line& l : leaves) l.value = 0xFFFFFFFF;
    }
    static std::uint64_t due(std::uint64_t v) { return v & ~(v >> 32) & 0xFFFFFFFF; }
    program run(core& c) {
        std::size_t leaf = 0;
        std::uint64_t mask = ~std::uint64_t{0};
        bool contended = false;
        for (;;) {
            line& l = leaves[leaf];
            co_await load(c, l);
            std::uint64_t seen = l.value;
            std::uint64_t bit = due(seen) & mask & (~(due(seen) & mask) + 1);
            if (bit == 0) {
                mask = ~std::uint64_t{0};
                leaf = (contended ? c.random() : leaf + 1) % leaves.size();
                contended = false;
                continue;
            }
            co_await locked(c, l);
            if (l.value != seen) {
                contended = true;
                continue;
            }
            l.value = (seen ^ bit) | bit << 32;
            while (bit != 0) {
                co_await store(c, data[leaf * 32 + static_cast<unsigned>(std::countr_zero(bit))]);
                ++c.runs;
                std::uint64_t next = 0;
                for (bool done = false; !done;) {
                    co_await load(c, l);
                    seen = l.value;
                    const std::uint64_t finished = (seen & ~(bit << 32)) | bit;
                    const std::uint64_t behind = due(finished) & ~(2 * bit - 1);
                    next = fused ? behind & (~behind + 1) : 0;
                    co_await locked(c, l);
                    done = l.value == seen;
                    contended = contended || !done;
                    if (done) l.value = (finished & ~next) | next << 32;
                }
                mask = ~(2 * bit - 1);
                bit = next;
            }
        }
    }
};

// The talk's tree: counters from the root to leaves of 64 signals. A select subtracts one from each
// counter on its path, and a set adds one to each.
struct counter_tree {
    lines counters = lines(1 + 16);
    lines leaves = lines(tasks / 64);
    lines data = lines(tasks);
    counter_tree() {
        counters[0].value = tasks;
        for (std::size_t i = 1; i != counters.size(); ++i) counters[i].value = tasks / 16;
        for (line& l : leaves) l.value = ~std::uint64_t{0};
    }
    program run(core& c) {
        for (std::uint64_t bias = c.random();; ++bias) {
            co_await locked(c, counters[0]);
            if (counters[0].value == 0) continue;
            --counters[0].value;
            std::size_t inner;
            for (std::uint64_t at = bias;; ++at) {
                inner = 1 + at % 16;
                co_await locked(c, counters[inner]);
                if (counters[inner].value == 0) continue;
                --counters[inner].value;
                break;
            }
            std::size_t signal;
            for (std::uint64_t at = bias / 16;; ++at) {
                const std::size_t leaf = (inner - 1) * 16 + at % 16;
                co_await locked(c, leaves[leaf]);
                if (leaves[leaf].value == 0) continue;
                const auto bit = static_cast<unsigned>(std::countr_zero(leaves[leaf].value));
                leaves[leaf].value &= leaves[leaf].value - 1;
                signal = leaf * 64 + bit;
                break;
            }
            co_await store(c, data[signal]);
            ++c.runs;
            co_await locked(c, leaves[signal / 64]);
            leaves[signal / 64].value |= std::uint64_t{1} << signal % 64;
            co_await locked(c, counters[inner]);
            ++counters[inner].value;
            co_await locked(c, counters[0]);
            ++counters[0].value;
        }
    }
};

// Tickets on a head and a tail, and eight lanes, each entered in ticket order.
struct ticket_queue {
    line head, tail;
    lines lane_head = lines(8), lane_tail = lines(8);
    std::vector<std::size_t> slots = std::vector<std::size_t>(tasks * 2);
    lines slot_lines = lines(tasks * 2 / 8);
    lines data = lines(tasks);
    ticket_queue() {
        tail.value = tasks;
        for (std::size_t i = 0; i != tasks; ++i) slots[i] = i;
        for (std::size_t i = 0; i != 8; ++i) lane_tail[i].value = tasks + i;
        for (std::size_t i = 0; i != 8; ++i) lane_head[i].value = i;
    }
    program run(core& c) {
        for (;;) {
            std::uint64_t ticket;
            for (;;) {
                co_await load(c, head);
                ticket = head.value;
                co_await load(c, tail);
                co_await locked(c, head);
                if (head.value == ticket) break;
            }
            head.value = ticket + 1;
            do co_await load(c, lane_head[ticket % 8]);
            while (lane_head[ticket % 8].value != ticket);
            do co_await load(c, lane_tail[ticket % 8]);
            while (lane_tail[ticket % 8].value <= ticket);
            co_await load(c, slot_lines[ticket % (2 * tasks) / 8]);
            const std::size_t task = slots[ticket % (2 * tasks)];
            co_await store(c, lane_head[ticket % 8]);
            lane_head[ticket % 8].value = ticket + 8;
            co_await store(c, data[task]);
            ++c.runs;
            co_await locked(c, tail);
            ticket = tail.value++;
            do co_await load(c, lane_tail[ticket % 8]);
            while (lane_tail[ticket % 8].value != ticket);
            co_await store(c, slot_lines[ticket % (2 * tasks) / 8]);
            slots[ticket % (2 * tasks)] = task;
            co_await store(c, lane_tail[ticket % 8]);
            lane_tail[ticket % 8].value = ticket + 8;
        }
    }
};

// Michael and Scott's list: an exchange on the head, one on the last node, and one on the tail. The
// taken node goes to a free list, and a new one comes from it, at one exchange each.
struct list_queue {
    line head, tail, free_list;
    lines nodes = lines(tasks + 1 + 128);
    std::vector<std::size_t> next, task_of, free_next;
    lines data = lines(tasks);
    static constexpr std::size_t none = ~std::size_t{0};
    list_queue() : next(nodes.size(), none), task_of(nodes.size()), free_next(nodes.size(), none) {
        for (std::size_t i = 0; i != tasks; ++i) {
            next[i] = i + 1;
            task_of[i + 1] = i;
        }
        head.value = 0;
        tail.value = tasks;
        free_list.value = tasks + 1;
        for (std::size_t i = tasks + 1; i + 1 != nodes.size(); ++i) free_next[i] = i + 1;
    }
    // Links carry a count above 32 bits, so that an exchange fails after any other change.
    static std::size_t at(std::uint64_t link) { return link & 0xFFFFFFFF; }
    static std::uint64_t link(std::uint64_t old, std::size_t node) {
        return ((old >> 32) + 1) << 32 | (node & 0xFFFFFFFF);
    }
    program run(core& c) {
        for (;;) {
            std::size_t node, task;
            for (;;) {
                co_await load(c, head);
                const std::uint64_t seen = head.value;
                co_await load(c, tail);
                co_await load(c, nodes[at(seen)]);
                const std::size_t after = next[at(seen)];
                if (after == none) continue;
                co_await load(c, nodes[after]);
                task = task_of[after];
                co_await locked(c, head);
                if (head.value != seen) continue;
                head.value = link(seen, after);
                node = at(seen);
                break;
            }
            for (;;) {
                co_await load(c, free_list);
                const std::uint64_t seen = free_list.value;
                co_await store(c, nodes[node]);
                co_await locked(c, free_list);
                if (free_list.value != seen) continue;
                free_next[node] = at(seen);
                free_list.value = link(seen, node);
                break;
            }
            co_await store(c, data[task]);
            ++c.runs;
            for (;;) {
                co_await load(c, free_list);
                const std::uint64_t seen = free_list.value;
                node = at(seen);
                co_await load(c, nodes[node]);
                const std::size_t rest = free_next[node];
                co_await locked(c, free_list);
                if (free_list.value != seen) continue;
                free_list.value = link(seen, rest);
                break;
            }
            co_await store(c, nodes[node]);
            next[node] = none;
            task_of[node] = task;
            for (;;) {
                co_await load(c, tail);
                const std::uint64_t seen = tail.value;
                const std::size_t last = at(seen);
                co_await locked(c, nodes[last]);
                if (tail.value != seen || next[last] != none) {
                    // Another node is linked: help to move the tail.
                    const std::size_t after = next[last];
                    co_await locked(c, tail);
                    if (tail.value == seen && after != none) tail.value = link(seen, after);
                    continue;
                }
                next[last] = node;
                co_await locked(c, tail);
                if (tail.value == seen) tail.value = link(seen, node);
                break;
            }
        }
    }
};

// A queue per producer. A consumer stays with one queue for 256 tasks, and each take is two
// additions on its line. That is the best configuration of that design, with tokens.
struct subqueues {
    explicit subqueues(int cores)
        : count(static_cast<std::size_t>(cores)),
          heads(count),
          claims(count),
          tails(count),
          slots(count, std::vector<std::size_t>(tasks * 2)),
          slot_lines(count * tasks * 2 / 8) {
        for (std::size_t i = 0; i != tasks; ++i) {
            const std::size_t q = i % count;
            slots[q][tails[q].value++] = i;
        }
    }
    std::size_t count;
    lines heads, claims, tails;
    std::vector<std::vector<std::size_t>> slots;
    lines slot_lines;
    lines data = lines(tasks);
    line& slot_line(std::size_t q, std::uint64_t at) {
        return slot_lines[(q * tasks * 2 + at % (2 * tasks)) / 8];
    }
    program run(core& c) {
        const auto own = static_cast<std::size_t>(c.number);
        std::size_t from = own;
        for (int stay = 0;;) {
            if (stay == 256) {
                stay = 0;
                from = (from + 1) % count;
            }
            co_await load(c, tails[from]);
            co_await load(c, claims[from]);
            if (claims[from].value >= tails[from].value) {
                from = (from + 1) % count;
                continue;
            }
            co_await locked(c, claims[from]);
            if (claims[from].value >= tails[from].value) continue;
            ++claims[from].value;
            co_await locked(c, heads[from]);
            const std::uint64_t at = heads[from].value++;
            co_await load(c, slot_line(from, at));
            const std::size_t task = slots[from][at % (2 * tasks)];
            ++stay;
            co_await store(c, data[task]);
            ++c.runs;
            const std::uint64_t to = tails[own].value;
            co_await store(c, slot_line(own, to));
            slots[own][to % (2 * tasks)] = task;
            co_await store(c, tails[own]);
            tails[own].value = to + 1;
        }
    }
};

}  // namespace bench_scaling
