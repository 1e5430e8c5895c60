// coppice: timer_entry in a context, which every operation's deadline uses.
#include "rivals.hpp"

#include "../harness.hpp"

#include <coppice/io/context.hpp>

#include <vector>

namespace bench_timers {

namespace {

using namespace coppice;
using namespace coppice::internal;

struct entry : io::timer_entry {
    entry() noexcept : timer_entry([](timer_entry*) noexcept {}) {}
};

class coppice_timers final : public timer_set {
public:
    explicit coppice_timers(std::size_t waiting) : waiting_(waiting), start_(loop_.now()) {
        for (entry& e : waiting_) loop_.arm(e, start_ + duration(times_.next()));
    }
    ~coppice_timers() override {
        for (entry& e : waiting_) loop_.disarm(e);
    }
    std::uint64_t arm_and_cancel(std::size_t size) override {
        bench::hash sum;
        times when;
        for (std::size_t i = 0; i != size; ++i) {
            const std::int64_t ns = when.next();
            loop_.arm(one_, start_ + duration(ns));
            loop_.disarm(one_);
            sum.add(static_cast<std::uint64_t>(ns));
        }
        return sum.value();
    }

private:
    io::context loop_{io::backend::epoll};
    times times_;
    std::vector<entry> waiting_;
    entry one_;
    time_point start_;
};

}  // namespace

std::unique_ptr<timer_set> make_coppice(std::size_t waiting) {
    return std::make_unique<coppice_timers>(waiting);
}

}  // namespace bench_timers
