// An exception and a stop at each node in turn: nothing that follows runs, nothing leaks or hangs,
// and the graph runs again.
#include "graphs.hpp"

#include <coppice/sync.hpp>

#include <gtest/gtest.h>

#include <future>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>

namespace coppice::graph_test {
namespace {

// A graph with a node of every kind. Every node increments a count and owns an object. Node `fatal`
// then throws, or requests a stop.
class every_kind {
    struct stepper {
        every_kind* graph;
        int step;
        std::shared_ptr<int> held;
        void operator()() const { graph->take(step); }
    };
    stepper step(int i) { return {this, i, alive_}; }
    void take(int i) {
        ran_[i].add(1);
        if (i != fatal_.get()) return;
        if (how_ == end::error) throw std::runtime_error(std::to_string(i));
        source_->request_stop();
    }

public:
    static constexpr int steps = 11;
    enum class end { value, error, stop };

    every_kind(thread_pool& pool, int fatal, end how, bool has_condition)
        : pool_(pool), fatal_(fatal), how_(how) {
        module_.emplace(step(0));
        node first = graph_.emplace(step(1));
        node waits = graph_.emplace([this, held = alive_, s = step(2)]() -> task<void> {
            co_await ex::schedule_after(pool_.get_scheduler(), std::chrono::microseconds(10));
            s();
            co_await ex::schedule(pool_.get_scheduler());
        });
        node sends = graph_.emplace_sender(ex::schedule(pool.get_scheduler()) | ex::then(step(3)));
        node inner = graph_.emplace([this, s = step(4)](subgraph& nodes) {
            auto [a, b, c] = nodes.emplace(step(5), step(6), step(7));
            a.precede(b, c);
            s();
        });
        node choose = has_condition ? graph_.emplace([s = step(8)] {
            s();
            return 0;
        })
                                    : graph_.emplace(step(8));
        node chosen = graph_.emplace(step(9)).acquire(permits_, 2);
        node last = graph_.emplace(step(10));
        first.precede(waits, sends, inner);
        graph_.compose(module_).succeed(inner).precede(last);
        waits.precede(choose);
        choose.precede(chosen);
        last.succeed(waits, sends, inner);
        graph_.emplace([] {}).acquire(permits_, 1).succeed(first);
    }
    ~every_kind() {
        EXPECT_EQ(permits_.available(), 2u);
        graph_.clear();
        module_.clear();
        EXPECT_EQ(alive_.use_count(), 1);
    }

    end run() {
        for (shared_number& each : ran_) each.set(0);
        source_.emplace();
        try {
            return finishes(ex::write_env(graph_.run(pool_),
                                          ex::prop(get_stop_token, source_->get_token())))
                       ? end::value
                       : end::stop;
        } catch (const std::runtime_error& error) {
            EXPECT_EQ(std::to_string(fatal_.get()), error.what());
            return end::error;
        }
    }
    void heal() { fatal_.set(-1); }
    int ran(int step) const { return ran_[step].get(); }

private:
    thread_pool& pool_;
    shared_number fatal_;
    const end how_;
    std::shared_ptr<int> alive_ = std::make_shared<int>(0);
    shared_number ran_[steps];
    std::optional<inplace_stop_source> source_;
    async_semaphore permits_{2};
    task_graph module_;
    task_graph graph_;
};

void try_every_step(every_kind::end how) {
    for (const std::size_t workers : {1, 2}) {
        thread_pool pool(workers);
        for (int fatal = 0; fatal != every_kind::steps; ++fatal) {
            for (int turn = 0; turn != 6; ++turn) {
                every_kind graph(pool, fatal, how, turn % 2 == 0);
                ASSERT_EQ(graph.run(), how) << fatal;
                EXPECT_EQ(graph.ran(fatal), 1) << fatal;
                // The steps behind 7 have no order among them.
                if (fatal < 8) EXPECT_EQ(graph.ran(10), 0) << fatal;
                if (fatal == 1) EXPECT_EQ(graph.ran(4), 0);
                ASSERT_EQ(graph.run(), how) << fatal;
                graph.heal();
                ASSERT_EQ(graph.run(), every_kind::end::value) << fatal;
                for (int i = 0; i != every_kind::steps; ++i) EXPECT_EQ(graph.ran(i), 1) << i;
            }
        }
    }
}

TEST(graph_failure, an_exception_at_any_node_ends_the_run_and_nothing_else) {
    try_every_step(every_kind::end::error);
}

TEST(graph_failure, a_stop_at_any_node_ends_the_run_and_nothing_else) {
    try_every_step(every_kind::end::stop);
}

TEST(graph_failure, a_run_that_is_stopped_before_it_starts_runs_nothing) {
    thread_pool pool(1);
    inplace_stop_source source;
    source.request_stop();
    record ran;
    task_graph graph;
    graph.emplace(ran.say("x"));
    EXPECT_FALSE(
        finishes(ex::write_env(graph.run(pool), ex::prop(get_stop_token, source.get_token()))));
    EXPECT_EQ(ran.text(), "");
}

TEST(graph_failure, a_stop_between_two_runs_of_run_n_ends_it) {
    thread_pool pool(1);
    inplace_stop_source source;
    int runs = 0;
    task_graph graph;
    graph.emplace([&] {
        if (++runs == 3) source.request_stop();
    });
    EXPECT_FALSE(finishes(
        ex::write_env(graph.run_n(pool, 100), ex::prop(get_stop_token, source.get_token()))));
    EXPECT_EQ(runs, 3);
}

TEST(graph_failure, the_first_exception_is_thrown_when_all_that_had_begun_has_ended) {
    thread_pool pool(2);
    shared_number has_ended;
    shared_number has_begun;
    task_graph graph;
    graph.emplace([&](inplace_stop_token token) {
        has_begun.set(1);
        while (!token.stop_requested()) std::this_thread::yield();
        has_ended.set(1);
    });
    graph.emplace([&] {
        while (has_begun.get() == 0) std::this_thread::yield();
        throw std::runtime_error("first");
    });
    EXPECT_THROW((void)finishes(graph.run(pool)), std::runtime_error);
    EXPECT_EQ(has_ended.get(), 1);
}

TEST(graph_turns, runs_of_one_graph_take_turns_in_their_order) {
    thread_pool pool(2);
    async_event open;
    record ran;
    int inside = 0;  // a data race here would be seen
    task_graph graph;
    graph.emplace([&]() -> task<void> {
        EXPECT_EQ(++inside, 1);
        co_await open.wait();
        --inside;
    });
    std::promise<void> called[5];
    for (int i = 0; i != 5; ++i) {
        const auto notes = [&ran, i] {  // within the turn: a later run may complete earlier
            ran.add(std::to_string(i));
            return true;
        };
        graph.run_until(pool, notes, [&called, i](std::error_code) { called[i].set_value(); });
    }
    open.set();
    for (auto& each : called) each.get_future().get();
    EXPECT_EQ(ran.text(), "01234");
}

TEST(graph_turns, a_stop_ends_the_wait_for_a_turn_and_does_not_disturb_the_current_run) {
    thread_pool pool(2);
    async_event open;
    inplace_stop_source source;
    task_graph graph;
    int runs = 0;
    graph.emplace([&]() -> task<void> {
        ++runs;
        co_await open.wait();
    });
    std::future<void> first = graph.run(pool, use_future);
    std::promise<std::error_code> second;
    graph.run(pool, bind_env(ex::prop(get_stop_token, source.get_token()),
                             [&second](std::error_code e) { second.set_value(e); }));
    source.request_stop();
    EXPECT_EQ(second.get_future().get(), std::errc::operation_canceled);
    open.set();
    first.get();
    EXPECT_EQ(runs, 1);
}

TEST(graph_turns, the_thread_that_a_run_completes_may_destroy_the_graph_at_once) {
    thread_pool pool(2);
    for (int i = 0; i != 2000; ++i) {
        auto graph = std::make_unique<task_graph>();
        node first = graph->emplace([] {});
        for (int n = 0; n != 1 + i % 6; ++n) first.precede(graph->emplace([] {}));
        graph->run(pool, block);
        graph.reset();
    }
}

TEST(graph_turns, a_callback_may_run_the_graph_again_or_destroy_it) {
    thread_pool pool(2);
    std::promise<void> gone;
    auto graph = std::make_unique<task_graph>();
    int runs = 0;
    graph->emplace([&runs] { ++runs; });
    graph->run(pool, [&](std::error_code) {
        graph->run(pool, [&](std::error_code) {
            graph.reset();
            gone.set_value();
        });
    });
    gone.get_future().get();
    EXPECT_EQ(runs, 2);
}

}  // namespace
}  // namespace coppice::graph_test
