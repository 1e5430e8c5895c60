// The library's own algorithms.
#include "cancellable.hpp"
#include "rivals.hpp"

#include "../harness.hpp"

#include <coppice/execution.hpp>

namespace bench_exec {

namespace {

// Adds what it gets to a sum.
class summing_receiver {
public:
    using receiver_concept = ex::receiver_tag;
    explicit summing_receiver(std::uint64_t& sum) noexcept : sum_(&sum) {}
    template <class... Ints>
    void set_value(Ints... values) && noexcept {
        *sum_ += (std::uint64_t{0} + ... + static_cast<std::uint64_t>(values));
    }
    void set_stopped() && noexcept {}

private:
    std::uint64_t* sum_;
};

template <class Sndr>
void run_to(std::uint64_t& sum, Sndr&& sndr) {
    auto op = ex::connect(static_cast<Sndr&&>(sndr), summing_receiver(sum));
    ex::start(op);
}

auto all_of_ten() {
    using c = cancellable;
    return ex::when_all(c(), c(), c(), c(), c(), c(), c(), c(), c(), c());
}

}  // namespace

std::uint64_t then_coppice(std::size_t size) {
    std::uint64_t sum = 0;
    for (std::size_t i = 0; i != size; ++i) {
        std::uint64_t in = i;
        bench::keep(in);  // the compiler cannot merge the turns
        run_to(sum, ex::just(in) | ex::then([](std::uint64_t x) noexcept { return x * 3; }) |
                        ex::then([](std::uint64_t x) noexcept { return x - 1; }) |
                        ex::then([](std::uint64_t x) noexcept { return x ^ 5; }));
    }
    return bench::hash().add(sum).value();
}

std::uint64_t gather_2_coppice(std::size_t size) {
    std::uint64_t sum = 0;
    for (std::size_t i = 0; i != size; ++i) {
        std::uint64_t in = i;
        bench::keep(in);
        run_to(sum, ex::when_all(ex::just(in), ex::just(in + 1)));
    }
    return bench::hash().add(sum).value();
}

std::uint64_t gather_10_coppice(std::size_t size) {
    std::uint64_t sum = 0;
    for (std::size_t i = 0; i != size; ++i) {
        std::uint64_t in = i;
        bench::keep(in);
        const auto j = [in](std::uint64_t n) { return ex::just(in + n); };
        run_to(sum, ex::when_all(j(0), j(1), j(2), j(3), j(4), j(5), j(6), j(7), j(8), j(9)));
    }
    return bench::hash().add(sum).value();
}

std::uint64_t queue_coppice(std::size_t size) {
    std::uint64_t ran = 0;
    ex::run_loop loop;
    const auto make = [&] {
        return ex::connect(ex::schedule(loop.get_scheduler()) | ex::then([&ran]() noexcept {
                               ++ran;
                               return std::uint64_t{0};
                           }),
                           summing_receiver(ran));
    };
    using operation = decltype(make());
    constexpr std::size_t batch = 64;
    for (std::size_t done = 0; done < size; done += batch) {
        const std::size_t now = std::min(batch, size - done);
        coppice::manual_lifetime<operation> ops[batch];
        for (std::size_t i = 0; i != now; ++i) ex::start(ops[i].construct_with(make));
        loop.finish();
        loop.run();
        for (std::size_t i = 0; i != now; ++i) ops[i].destroy();
    }
    return bench::hash().add(ran).value();
}

std::uint64_t spawn_coppice(std::size_t size) {
    std::uint64_t ran = 0;
    ex::counting_scope scope;
    for (std::size_t i = 0; i != size; ++i) {
        ex::spawn(ex::just() | ex::then([&ran]() noexcept { ++ran; }), scope.get_token());
    }
    coppice::this_thread::sync_wait(scope.join());
    return bench::hash().add(ran).value();
}

std::uint64_t stop_10_finite(std::size_t size) {
    std::uint64_t stops = 0;
    for (std::size_t i = 0; i != size; ++i) {
        coppice::inplace_stop_source source;
        auto op = ex::connect(all_of_ten(), counting_receiver(stops, source));
        ex::start(op);
        source.request_stop();
    }
    return bench::hash().add(stops).value();
}

std::size_t stop_10_finite_bytes() {
    return sizeof(ex::connect_result_t<decltype(all_of_ten()), counting_receiver>);
}

}  // namespace bench_exec
