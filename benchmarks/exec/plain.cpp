// The same work written by hand: the floor.
#include "rivals.hpp"

#include "../harness.hpp"

#include <coppice/base/internal/atomic.hpp>

#include <memory>

namespace bench_exec {

namespace {

// A countdown to the last of Count results.
template <std::size_t Count>
struct gathered {
    coppice::internal::atomic<std::size_t> pending{Count};
    std::uint64_t results[Count];
    void arrive(std::size_t index, std::uint64_t value, std::uint64_t& sum) {
        results[index] = value;
        if (pending.fetch_sub(1, coppice::internal::acq_rel) != 1) return;
        for (const std::uint64_t r : results) sum += r;
    }
};
template <std::size_t Count>
std::uint64_t gather(std::size_t size) {
    std::uint64_t sum = 0;
    for (std::size_t i = 0; i != size; ++i) {
        std::uint64_t in = i;
        bench::keep(in);
        gathered<Count> all;
        for (std::size_t n = 0; n != Count; ++n) all.arrive(n, in + n, sum);
    }
    return bench::hash().add(sum).value();
}

// One piece of work on the heap, counted.
class work {
public:
    explicit work(std::uint64_t& r, coppice::internal::atomic<std::size_t>& c)
        : ran(&r), count(&c) {
        count->fetch_add(1, coppice::internal::relaxed);
    }
    virtual ~work() { count->fetch_sub(1, coppice::internal::release); }
    virtual void run() { ++*ran; }

private:
    std::uint64_t* ran;
    coppice::internal::atomic<std::size_t>* count;
};

}  // namespace

std::uint64_t then_plain(std::size_t size) {
    std::uint64_t sum = 0;
    for (std::size_t i = 0; i != size; ++i) {
        std::uint64_t in = i;
        bench::keep(in);
        sum += (in * 3 - 1) ^ 5;
    }
    return bench::hash().add(sum).value();
}

std::uint64_t gather_2_plain(std::size_t size) {
    return gather<2>(size);
}
std::uint64_t gather_10_plain(std::size_t size) {
    return gather<10>(size);
}

std::uint64_t spawn_plain(std::size_t size) {
    std::uint64_t ran = 0;
    coppice::internal::atomic<std::size_t> count{0};
    for (std::size_t i = 0; i != size; ++i) {
        auto w = std::make_unique<work>(ran, count);
        bench::keep(w.get());
        w->run();
    }
    while (count.load(coppice::internal::acquire) != 0) coppice::internal::spin_hint();
    return bench::hash().add(ran).value();
}

}  // namespace bench_exec
