// simulated_work: mpi::work_sharing on the simulated network of loggp.hpp, on a tree.
#pragma once
// The protocol is that of src/mpi/work_service.cpp, with its constants. The tree is that of
// search.cpp: the root has many children, and another node 8 with a probability of 0.12375.

#include "simulated_algorithms.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <utility>
#include <vector>

namespace bench_loggp {

struct work_plan {
    std::uint64_t of_root;  // children
    double ns_of_item;
};

struct work_result {
    double end = 0;  // of the last process
    std::uint64_t items = 0, most_items = 0, depth = 0;
    std::uint64_t messages = 0;
};

class simulated_work : coppice::immovable {
public:
    simulated_work(network& in, const work_plan& plan)
        : in_(in), plan_(plan), all_(static_cast<std::size_t>(in.size())) {}

    work_result run() {
        all_[0].mine.push_back({42, 0});
        for (int rank = 0; rank != in_.size(); ++rank) {
            at(rank).random = 0x9e3779b97f4a7c15U * (static_cast<std::uint64_t>(rank) + 1);
            in_.start(serve(rank));
            in_.start(work(rank));
        }
        in_.run();
        in_.close();
        result_.messages = in_.messages();
        for (const process& p : all_) {
            result_.items += p.worked;
            result_.most_items = std::max(result_.most_items, p.worked);
        }
        return result_;
    }

private:
    static constexpr int ask_tag = 0, reply_tag = 1, first_wave_tag = 2;
    static constexpr std::size_t share_max = 32768 / sizeof(item);
    static constexpr double ns_of_step = 1000;  // the worker looks at what is offered so often

    struct process {
        std::vector<item> mine;
        std::deque<item> offered;
        std::array<std::int64_t, 2> counts{};  // messages with items: sent, received
        std::array<std::int64_t, 2> sums{};
        std::int64_t received_before = -1;
        bool wave_is_on = false, wave_has_ended = false;
        int waves = 0, refusals = 0;
        double pause = 0;
        std::uint64_t random = 0, worked = 0;
    };
    process& at(int rank) { return all_[static_cast<std::size_t>(rank)]; }

    task<> serve(int me) {
        while (true) {
            const message asked = co_await in_.receive(me, ask_tag);
            if (asked.from < 0) co_return;
            process& p = at(me);
            message reply;
            const std::size_t count = std::min((p.offered.size() + 1) / 2, share_max);
            for (std::size_t n = 0; n != count; ++n) {
                reply.items.push_back(p.offered.front());
                p.offered.pop_front();
            }
            if (count != 0) ++p.counts[0];
            const double bytes = static_cast<double>(count * sizeof(item));
            co_await in_.send(me, asked.from, reply_tag, bytes, std::move(reply));
        }
    }

    // Returns false if there is no item here.
    bool take_back(process& p) {
        const std::size_t half = (p.offered.size() + 1) / 2;
        p.mine.insert(p.mine.end(), p.offered.end() - static_cast<std::ptrdiff_t>(half),
                      p.offered.end());
        p.offered.resize(p.offered.size() - half);
        return half != 0;
    }
    void visit(process& p, const item& from) {
        ++p.worked;
        result_.depth = std::max(result_.depth, from.depth);
        const std::uint64_t children = from.depth == 0                      ? plan_.of_root
                                       : from.number < 2282754023647477760U ? 8
                                                                            : 0;
        for (std::uint64_t n = 0; n != children; ++n)
            p.mine.push_back({mix(from.number + (n + 1) * 0x9e3779b97f4a7c15U), from.depth + 1});
        if (p.mine.size() < 2 || !p.offered.empty()) return;
        const auto half = p.mine.begin() + static_cast<std::ptrdiff_t>(p.mine.size() / 2);
        p.offered.assign(p.mine.begin(), half);
        p.mine.erase(p.mine.begin(), half);
    }
    // The worker.
    task<> work_off(int me) {
        process& p = at(me);
        co_await in_.pause(ns_of_switch);
        const int items_of_step = std::max(1, static_cast<int>(ns_of_step / plan_.ns_of_item));
        while (true) {
            int done = 0;
            for (; done != items_of_step && (!p.mine.empty() || take_back(p)); ++done) {
                const item next = p.mine.back();
                p.mine.pop_back();
                visit(p, next);
            }
            if (done == 0) co_return;
            co_await in_.pause(done * plan_.ns_of_item);
        }
    }

    task<> wave(int me, int tag) {
        process& p = at(me);
        co_await all_reduce(in_, me, tag, 24, p.sums);
        p.wave_has_ended = true;
    }
    // Returns true if the wave that has ended tells that there is no work.
    bool is_last(process& p) {
        p.wave_is_on = p.wave_has_ended = false;
        return p.sums[0] == std::exchange(p.received_before, p.sums[1]);
    }
    int draw_victim(int me) {
        std::uint64_t& r = at(me).random;
        r ^= r << 13;
        r ^= r >> 7;
        r ^= r << 17;
        const int drawn = static_cast<int>((r >> 33) % static_cast<std::uint64_t>(in_.size() - 1));
        return drawn < me ? drawn : drawn + 1;
    }
    task<> ask(int me) {
        process& p = at(me);
        co_await in_.send(me, draw_victim(me), ask_tag, 8);
        message reply = co_await in_.receive(me, reply_tag);
        if (reply.items.empty()) {
            ++p.refusals;
            co_return;
        }
        p.refusals = 0;
        p.pause = 0;
        ++p.counts[1];
        p.offered.insert(p.offered.end(), reply.items.begin(), reply.items.end());
    }
    task<> work(int me) {
        process& p = at(me);
        while (true) {
            if (!p.mine.empty() || !p.offered.empty()) co_await work_off(me);
            if (p.wave_has_ended && is_last(p)) break;
            if (!p.wave_is_on && p.offered.empty()) {
                p.wave_is_on = true;
                p.sums = p.counts;
                in_.start(wave(me, first_wave_tag + 2 * p.waves++));
            }
            if (!p.offered.empty()) continue;
            co_await ask(me);
            if (!p.offered.empty() || p.refusals % (in_.size() - 1) != 0) continue;
            p.pause = std::clamp(2 * p.pause, 10'000.0, 1'000'000.0);
            co_await in_.pause(p.pause);
        }
        co_await all_reduce(in_, me, first_wave_tag + 2 * p.waves, 24, p.sums);
        result_.end = std::max(result_.end, in_.now());
    }

    network& in_;
    work_plan plan_;
    std::vector<process> all_;
    work_result result_;
};

}  // namespace bench_loggp
