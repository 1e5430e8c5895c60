// Asio: steady_timer, a heap of handlers.
#include "rivals.hpp"

#include "../harness.hpp"

#include <vector>

#include <asio.hpp>

namespace bench_timers {

namespace {

class asio_timers final : public timer_set {
public:
    explicit asio_timers(std::size_t waiting) : start_(std::chrono::steady_clock::now()) {
        waiting_.reserve(waiting);
        for (std::size_t i = 0; i != waiting; ++i) {
            waiting_.emplace_back(context_);
            arm(waiting_.back(), times_.next());
        }
    }
    std::uint64_t arm_and_cancel(std::size_t size) override {
        bench::hash sum;
        times when;
        asio::steady_timer one(context_);
        for (std::size_t i = 0; i != size; ++i) {
            const std::int64_t ns = when.next();
            arm(one, ns);
            one.cancel();
            context_.poll();  // runs the handler with operation_aborted
            context_.restart();
            sum.add(static_cast<std::uint64_t>(ns));
        }
        return sum.value();
    }

private:
    void arm(asio::steady_timer& timer, std::int64_t ns) {
        timer.expires_at(start_ + std::chrono::nanoseconds(ns));
        timer.async_wait([](asio::error_code) {});
    }
    asio::io_context context_{1};
    times times_;
    std::chrono::steady_clock::time_point start_;
    std::vector<asio::steady_timer> waiting_;
};

}  // namespace

std::unique_ptr<timer_set> make_asio(std::size_t waiting) {
    return std::make_unique<asio_timers>(waiting);
}

}  // namespace bench_timers
