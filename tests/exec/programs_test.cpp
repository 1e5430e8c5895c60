// Plan: whole programs in the style of P2300, P3149, and P3552, written with C++26's names only:
// `lib` stands for `std` in a C++26 program.
#include <coppice/base/internal/atomic.hpp>
#include <coppice/execution.hpp>

#include <gtest/gtest.h>

#include <numeric>
#include <optional>
#include <string>
#include <thread>
#include <vector>

namespace {

namespace lib = coppice;
namespace ex = lib::execution;
using lib::this_thread::sync_wait;

// ---- P2300 1.3: work on a context; its result returns to the caller ----------------------------

// A context with one thread, as a program would write it.
class one_thread {
public:
    one_thread() : thread_([this] { loop_.run(); }) {}
    ~one_thread() {
        loop_.finish();
        thread_.join();
    }
    auto get_scheduler() noexcept { return loop_.get_scheduler(); }
    std::thread::id id() const noexcept { return thread_.get_id(); }

private:
    ex::run_loop loop_;
    std::thread thread_;
};

TEST(program, begins_on_a_context_and_ends_where_it_waits) {
    one_thread context;
    ex::scheduler auto sch = context.get_scheduler();
    ex::sender auto begin = ex::schedule(sch);
    ex::sender auto hello = ex::then(begin, [] { return std::string("hello"); });
    ex::sender auto size = ex::then(hello, [](std::string word) { return word.size(); });
    auto [n] = sync_wait(size).value();
    EXPECT_EQ(n, 5u);
}

// ---- P2300 1.3.2: a parallel scan: two passes of bulk with a sequential step between -----------

ex::sender auto inclusive_scan(ex::scheduler auto sch, std::vector<double> input, int tiles) {
    const std::size_t tile = (input.size() + std::size_t(tiles) - 1) / std::size_t(tiles);
    const auto range = [tile](int i, std::vector<double>& all) {
        const std::size_t begin = std::min(all.size(), std::size_t(i) * tile);
        const std::size_t end = std::min(all.size(), begin + tile);
        return std::pair(all.begin() + std::ptrdiff_t(begin), all.begin() + std::ptrdiff_t(end));
    };
    std::vector<double> sums(std::size_t(tiles) + 1);
    return ex::just(std::move(input), std::move(sums)) | ex::continues_on(sch) |
           ex::bulk(ex::par, tiles,
                    [range](int i, std::vector<double>& all, std::vector<double>& partial) {
                        const auto [begin, end] = range(i, all);
                        std::inclusive_scan(begin, end, begin);
                        if (begin != end) partial[std::size_t(i) + 1] = *(end - 1);
                    }) |
           ex::then([](std::vector<double> all, std::vector<double> partial) {
               std::inclusive_scan(partial.begin(), partial.end(), partial.begin());
               return std::pair(std::move(all), std::move(partial));
           }) |
           ex::let_value([range, tiles](auto& both) {
               return ex::just() |
                      ex::bulk(ex::par, tiles,
                               [range, &both](int i) {
                                   const auto [begin, end] = range(i, both.first);
                                   for (auto p = begin; p != end; ++p)
                                       *p += both.second[std::size_t(i)];
                               }) |
                      ex::then([&both] { return std::move(both.first); });
           });
}

TEST(program, scans_in_parallel) {
    std::vector<double> ones(1000, 1.0);
    auto [sums] = *sync_wait(inclusive_scan(ex::get_parallel_scheduler(), ones, 7));
    ASSERT_EQ(sums.size(), 1000u);
    for (std::size_t i = 0; i != sums.size(); ++i) ASSERT_EQ(sums[i], double(i + 1));
    one_thread context;
    auto [few] = *sync_wait(inclusive_scan(context.get_scheduler(), {1, 2, 3}, 2));
    EXPECT_EQ(few, (std::vector<double>{1, 3, 6}));
}

// ---- P2300 1.4: a request passes through senders that fail in different ways --------------------

struct request {
    int kind;
};
struct response {
    int status;
    std::string body;
};
struct bad_request {
    int kind;
};

ex::sender auto classify(request r) {
    return ex::just(r) | ex::then([](request q) {
               if (q.kind < 0) throw bad_request{q.kind};
               return q;
           });
}
auto serve(ex::scheduler auto io, ex::scheduler auto work, request r) {
    return ex::starts_on(io, ex::just(r)) | ex::let_value([](request& q) { return classify(q); }) |
           ex::continues_on(work) |
           ex::then([](request q) { return response{200, "kind " + std::to_string(q.kind)}; }) |
           ex::let_error([](auto& error) {
               using type = std::decay_t<decltype(error)>;
               static_assert(std::is_same_v<type, std::exception_ptr>);
               return ex::just(response{500, "failed"});
           }) |
           ex::let_stopped([] { return ex::just(response{503, "stopped"}); }) |
           ex::continues_on(io);
}

TEST(program, answers_each_request_whether_it_succeeds_fails_or_is_stopped) {
    one_thread io;
    one_thread work;
    const auto status = [&](int kind) {
        auto [r] = *sync_wait(serve(io.get_scheduler(), work.get_scheduler(), request{kind}));
        return r.status;
    };
    EXPECT_EQ(status(3), 200);
    EXPECT_EQ(status(-1), 500);
}

TEST(program, moves_between_contexts_where_it_says_so) {
    one_thread a;
    one_thread b;
    const auto here = [] { return std::this_thread::get_id(); };
    auto [first, second, third] = *sync_wait(ex::when_all(
        ex::starts_on(a.get_scheduler(), ex::just() | ex::then(here)),
        ex::schedule(a.get_scheduler()) | ex::continues_on(b.get_scheduler()) | ex::then(here),
        ex::on(b.get_scheduler(), ex::just() | ex::then(here))));
    EXPECT_EQ(first, a.id());
    EXPECT_EQ(second, b.id());
    EXPECT_EQ(third, b.id());
    auto [back] = *sync_wait(ex::schedule(a.get_scheduler()) |
                             ex::on(b.get_scheduler(), ex::then([] {})) | ex::then(here));
    EXPECT_EQ(back, a.id());
    auto [home] = *sync_wait(ex::on(b.get_scheduler(), ex::just()) | ex::then(here));
    EXPECT_EQ(home, std::this_thread::get_id());
}

// ---- P2300 4.20, 5.6: a user's algorithm, receiver, and operation -------------------------------

// Starts its sender again as long as it fails, at most `tries` times.
template <class Sndr, class Rcvr>
class again_operation {
public:
    using operation_state_concept = ex::operation_state_tag;
    again_operation(Sndr sndr, int tries, Rcvr rcvr)
        : sndr_(std::move(sndr)), tries_(tries), rcvr_(std::move(rcvr)) {
        connect();
    }
    again_operation(again_operation&&) = delete;
    void start() & noexcept { ex::start(child_->operation); }

private:
    struct child_receiver {
        using receiver_concept = ex::receiver_tag;
        again_operation* self;
        template <class... Args>
        void set_value(Args&&... args) && noexcept {
            ex::set_value(std::move(self->rcvr_), std::forward<Args>(args)...);
        }
        template <class Error>
        void set_error(Error&& error) && noexcept {
            if (--self->tries_ == 0) {
                ex::set_error(std::move(self->rcvr_), std::forward<Error>(error));
            } else {
                self->connect();
                self->start();
            }
        }
        void set_stopped() && noexcept { ex::set_stopped(std::move(self->rcvr_)); }
        auto get_env() const noexcept { return ex::get_env(self->rcvr_); }
    };
    struct child {
        explicit child(again_operation* self)
            : operation(ex::connect(self->sndr_, child_receiver{self})) {}
        ex::connect_result_t<Sndr&, child_receiver> operation;
    };
    void connect() { child_.emplace(this); }

    Sndr sndr_;
    int tries_;
    Rcvr rcvr_;
    std::optional<child> child_;
};
template <class Sndr>
struct again_sender {
    using sender_concept = ex::sender_tag;
    Sndr sndr;
    int tries;
    auto get_env() const noexcept { return ex::get_env(sndr); }
    template <class Self, class... Env>
    static consteval auto get_completion_signatures() {
        return ex::get_completion_signatures<Sndr&, Env...>();
    }
    template <ex::receiver Rcvr>
    auto connect(Rcvr rcvr) const {
        return again_operation<Sndr, Rcvr>(sndr, tries, std::move(rcvr));
    }
};
struct again : ex::sender_adaptor_closure<again> {
    explicit again(int n) : tries(n) {}
    int tries;
    template <ex::sender Sndr>
    auto operator()(Sndr&& sndr) const {
        return again_sender<std::decay_t<Sndr>>{std::forward<Sndr>(sndr), tries};
    }
};

TEST(program, uses_its_own_algorithm_like_the_librarys) {
    int calls = 0;
    const auto unreliable = [&] {
        if (++calls < 3) throw std::runtime_error("not yet");
        return calls;
    };
    auto [n] = *sync_wait(ex::just() | ex::then(unreliable) | again(5) |
                          ex::then([](int i) { return 10 * i; }));
    EXPECT_EQ(n, 30);
    calls = 0;
    EXPECT_THROW(sync_wait(ex::just() | ex::then(unreliable) | again(2)), std::runtime_error);
}

// ---- P3149: an unknown amount of work, in a scope -----------------------------------------------

TEST(program, spawns_work_as_it_is_found_and_joins_it) {
    one_thread a;
    one_thread b;
    lib::internal::atomic<int> sum{0};
    ex::counting_scope scope;
    for (int i = 1; i <= 100; ++i) {
        ex::scheduler auto sch = i % 2 == 0 ? a.get_scheduler() : b.get_scheduler();
        ex::spawn(ex::starts_on(sch, ex::just(i) | ex::then([&](int n) noexcept {
                                         sum.fetch_add(n, lib::internal::relaxed);
                                     })),
                  scope.get_token());
    }
    sync_wait(scope.join());
    EXPECT_EQ(sum.load(lib::internal::relaxed), 5050);
}

TEST(program, spawned_work_spawns_more) {
    one_thread context;
    lib::internal::atomic<int> leaves{0};
    ex::simple_counting_scope scope;
    struct tree {
        static void grow(int depth, one_thread& on, lib::internal::atomic<int>& count,
                         ex::simple_counting_scope::token token) {
            if (depth == 0) {
                count.fetch_add(1, lib::internal::relaxed);
                return;
            }
            for (int i = 0; i != 2; ++i) {
                ex::spawn(ex::schedule(on.get_scheduler()) | ex::then([=, &on, &count]() noexcept {
                              grow(depth - 1, on, count, token);
                          }),
                          token);
            }
        }
    };
    tree::grow(6, context, leaves, scope.get_token());
    sync_wait(scope.join());
    EXPECT_EQ(leaves.load(lib::internal::relaxed), 64);
}

TEST(program, starts_early_and_asks_for_the_results_later) {
    one_thread context;
    ex::counting_scope scope;
    const auto square = [&](int i) {
        return ex::spawn_future(ex::starts_on(context.get_scheduler(), ex::just(i)) |
                                    ex::then([](int n) { return n * n; }),
                                scope.get_token());
    };
    auto three = square(3);
    auto four = square(4);
    auto [sum] = *sync_wait(ex::when_all(std::move(three), std::move(four)) |
                            ex::then([](int a, int b) { return a + b; }));
    EXPECT_EQ(sum, 25);
    scope.close();
    EXPECT_FALSE(sync_wait(square(5)).has_value());
    sync_wait(scope.join());
}

TEST(program, stops_a_scope_and_all_work_in_it) {
    one_thread context;
    ex::counting_scope scope;
    lib::internal::atomic<int> stopped{0};
    for (int i = 0; i != 10; ++i) {
        // Continues until schedule() reports the stop request. A child that checked the token
        // itself could see it between two turns, and would then end with a value.
        ex::spawn(ex::repeat_until(ex::schedule(context.get_scheduler()) |
                                   ex::then([]() noexcept { return false; })) |
                      ex::upon_error([](auto&&) noexcept {}) | ex::upon_stopped([&]() noexcept {
                          stopped.fetch_add(1, lib::internal::relaxed);
                      }),
                  scope.get_token());
    }
    scope.request_stop();
    sync_wait(scope.join());
    EXPECT_EQ(stopped.load(lib::internal::relaxed), 10);
}

// ---- P2300 4.22: one failure stops the others ---------------------------------------------------

TEST(program, stops_the_others_when_one_of_them_fails) {
    one_thread context;
    const auto until_stopped = [&] {
        return ex::read_env(lib::get_stop_token) | ex::let_value([&](auto token) {
                   return ex::repeat_until(ex::schedule(context.get_scheduler()) |
                                           ex::then([token] { return token.stop_requested(); }));
               });
    };
    const auto fails = [&] {
        return ex::schedule(context.get_scheduler()) |
               ex::then([]() -> int { throw std::runtime_error("failed"); });
    };
    EXPECT_THROW(sync_wait(ex::when_all(until_stopped(), fails(), until_stopped())),
                 std::runtime_error);
}

// ---- Results of several kinds -------------------------------------------------------------------

TEST(program, handles_results_of_several_kinds) {
    const auto halve = [](int i) {
        return ex::just(i) | ex::let_value([](int& n) { return ex::just(n / 2, n % 2); }) |
               ex::into_variant();
    };
    auto [v] = *sync_wait(halve(7));
    EXPECT_EQ(std::get<0>(v), std::tuple(3, 1));
    auto either = *lib::this_thread::sync_wait_with_variant(ex::just(1, 'c'));
    EXPECT_EQ(std::get<0>(either), std::tuple(1, 'c'));
    auto [a, b] = *sync_wait(ex::when_all_with_variant(ex::just(1), ex::just(std::string("two"))));
    EXPECT_EQ(std::get<0>(std::get<0>(a)), 1);
    EXPECT_EQ(std::get<0>(std::get<0>(b)), "two");
    auto [none] = *sync_wait(ex::just_stopped() |
                             ex::let_stopped([] { return ex::just(std::optional<int>()); }));
    EXPECT_FALSE(none);
    auto [three] = *sync_wait(ex::just_stopped() | ex::stopped_as_error(3) |
                              ex::upon_error([](int error) { return error; }));
    EXPECT_EQ(three, 3);
}

}  // namespace
