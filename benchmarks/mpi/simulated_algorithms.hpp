// simulated_algorithms: what the algorithms of room mpi do on the simulated network of loggp.hpp.
#pragma once
// The collective calls are those of Open MPI 4.1 that do not block: all_reduce is a binomial tree
// up and down, a barrier a dissemination, and in the others each process sends to each other one,
// in order of the ranks. A part of a program has tags of its own, from `tag` on.

#include "loggp.hpp"

#include <array>
#include <cmath>
#include <cstdint>

namespace bench_loggp {

inline constexpr int tags_of_call = 32;
// What the processor needs to begin a collective call, beside its messages: measured.
inline constexpr double ns_of_call = 300;
// From the environment's thread to a worker, and back.
inline constexpr double ns_of_switch = 5000;

inline task<> all_reduce(network& in, int me, int tag, double bytes,
                         std::array<std::int64_t, 2>& sums) {
    co_await in.pause(ns_of_call);
    int bit = 1;
    for (; bit < in.size() && (me & bit) == 0; bit *= 2) {
        if (me + bit >= in.size()) continue;
        const message m = co_await in.receive(me, tag);
        for (std::size_t n = 0; n != sums.size(); ++n) sums[n] += m.numbers[n];
    }
    if (me != 0) {
        co_await in.send(me, me - bit, tag, bytes, {-1, 0, {}, sums});
        sums = (co_await in.receive(me, tag + 1)).numbers;
    }
    // The tree down is that of the ranks: the parent lacks the highest bit.
    for (int child = 1; me + child < in.size(); child *= 2)
        if (child > me) co_await in.send(me, me + child, tag + 1, bytes, {-1, 0, {}, sums});
    in.forget(me, tag);
    in.forget(me, tag + 1);
}

inline task<> agree(network& in, int me, int tag) {
    std::array<std::int64_t, 2> failed{};
    co_await all_reduce(in, me, tag, 4, failed);
}

inline task<> barrier(network& in, int me, int tag) {
    co_await in.pause(ns_of_call);
    for (int step = 1; step < in.size(); step *= 2, ++tag) {
        co_await in.send(me, (me + step) % in.size(), tag, 1);
        co_await in.receive(me, tag);
        in.forget(me, tag);
    }
}

// Every process sends so many bytes to each other one.
inline task<> exchange(network& in, int me, int tag, double bytes) {
    co_await in.pause(ns_of_call);
    for (int to = 0; to != in.size(); ++to)
        if (to != me) co_await in.send(me, to, tag, bytes);
    for (int n = 1; n != in.size(); ++n) co_await in.receive(me, tag);
    in.forget(me, tag);
}

// Of no index (mpi/bulk.hpp).
inline task<> map_reduce(network& in, int me, int tag) {
    co_await in.pause(ns_of_switch);
    co_await exchange(in, me, tag, 16);
    co_await agree(in, me, tag + tags_of_call);
}

using collective = task<> (*)(network& in, int me, int tag);

struct period {
    double begin = 0, end = 0;
};
inline task<> run_measured(network& in, int me, collective program, period& p) {
    // So that all begin at once, and no thread rests.
    co_await barrier(in, me, 1'000'000);
    co_await barrier(in, me, 1'000'100);
    p.begin = std::max(p.begin, in.now());
    co_await program(in, me, 0);
    p.end = std::max(p.end, in.now());
}
// Returns how long the nodes take for a program of each.
inline double time_of(const parameters& given, int nodes, collective program) {
    network in(given, nodes);
    period p;
    for (int me = 0; me != nodes; ++me) in.start(run_measured(in, me, program, p));
    in.run();
    return p.end - p.begin;
}

// How mpi::sort sorts keys of 8 bytes (mpi/sort.hpp), and how long a step computes. A worker needs
// 3.5 ns for a key and a level of its sort, as in `bench_mpi --part sort`. The 1.5 ns for a key and
// a pass of the division are an estimate.
struct sort_plan {
    double keys;     // of each process
    double samples;  // of each process
    double workers;  // of each process

    double sorting(double count) const {
        return count * std::log2(std::max(count, 2.0)) * 3.5 / workers;
    }
    double dividing(int size) const {
        return sorting(samples * size) + keys * std::ceil(std::log2(size)) * 1.5 / workers;
    }
};

// When the last process has come to the end of each step.
struct sort_times {
    double samples = 0, divided = 0, keys = 0, sorted = 0;
};

inline task<> sort(network& in, int me, const sort_plan& plan, sort_times& times) {
    int tag = 0;
    const auto done = [&](double& time) { time = std::max(time, in.now()); };
    co_await agree(in, me, tag += tags_of_call);  // how many objects all have
    co_await agree(in, me, tag += tags_of_call);
    co_await exchange(in, me, tag += tags_of_call, 4);
    co_await agree(in, me, tag += tags_of_call);
    co_await exchange(in, me, tag += tags_of_call, plan.samples * 8);
    done(times.samples);
    co_await in.pause(plan.dividing(in.size()));
    co_await agree(in, me, tag += tags_of_call);
    done(times.divided);
    co_await exchange(in, me, tag += tags_of_call, 4);
    co_await agree(in, me, tag += tags_of_call);
    co_await exchange(in, me, tag += tags_of_call, plan.keys / in.size() * 8);
    done(times.keys);
    co_await in.pause(plan.sorting(plan.keys));
    co_await agree(in, me, tag += tags_of_call);
    done(times.sorted);
}

// The request of a stop_source: process 0 sends a message to each other one. With `fan` > 0, a tree
// in which each sends to so many others, which the library does not do.
inline task<> hear_stop(network& in, int me, int fan, double& last) {
    if (me != 0) co_await in.receive(me, 0);
    last = std::max(last, in.now());
    const int first = fan == 0 ? 1 : me * fan + 1;
    const int end = fan == 0 ? (me == 0 ? in.size() : 0) : std::min(first + fan, in.size());
    for (int to = first; to < end; ++to) co_await in.send(me, to, 0, 4);
}

}  // namespace bench_loggp
