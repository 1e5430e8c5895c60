// Nodes and pinning of pool/basic_pool.hpp: near before far, work for one node, bad options.
#include <coppice/pool/fork_join.hpp>
#include <coppice/pool/queue_pool.hpp>
#include <coppice/pool/thread_pool.hpp>

#include <coppice/base/internal/atomic.hpp>
#include <coppice/exec/starts_on.hpp>
#include <coppice/exec/sync_wait.hpp>
#include <coppice/exec/then.hpp>
#include <coppice/task/wait_for_tasks.hpp>

#include <gtest/gtest.h>

#include <filesystem>
#include <functional>
#include <iterator>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace {

namespace ex = coppice::execution;
using namespace coppice;
using namespace coppice::internal;

// Two nodes of two processors. No worker is pinned, so the processors need not exist.
pool_options two_nodes(std::size_t threads = 4) {
    return {.threads = threads, .machine = topology({{0, 3}, {1, 3}, {2, 5}, {3, 5}})};
}

struct function_item : work_item {
    explicit function_item(std::function<void()> f) : work_item(&call), function(std::move(f)) {}
    static void call(work_item* item) noexcept { static_cast<function_item*>(item)->function(); }
    std::function<void()> function;
};

class gate {
public:
    void open() { open_.store(true, release); }
    void wait() const {
        while (!open_.load(acquire)) std::this_thread::yield();
    }

private:
    atomic<bool> open_{false};
};

void wait_for(const atomic<int>& count, int n) {
    while (count.load(acquire) != n) std::this_thread::yield();
}

TEST(pool_nodes, workers_are_dealt_to_the_nodes_of_their_processors) {
    thread_pool pool(two_nodes());
    ASSERT_EQ(pool.nodes(), 2u);
    EXPECT_EQ(pool.node_number(0), 3u);
    EXPECT_EQ(pool.node_number(1), 5u);
    thread_pool few(two_nodes(2));  // both fit on the first node
    EXPECT_EQ(few.nodes(), 1u);
    thread_pool all({.machine = topology({{0, 0}, {1, 1}, {2, 1}})});
    EXPECT_EQ(all.size(), 3u);
    EXPECT_EQ(all.nodes(), 2u);
    thread_pool plain(3);
    EXPECT_EQ(plain.nodes(), 1u);
    EXPECT_FALSE(plain.is_current(0));
    EXPECT_TRUE(plain.run([&] { return plain.is_current(0) && !plain.is_current(1); }));
    EXPECT_EQ(thread_pool(pool_options{}).size(), hardware_threads());
    EXPECT_EQ(hardware_threads(), allowed_processors().size());
}

TEST(pool_nodes, items_scheduled_on_a_node_start_there) {
    thread_pool pool(two_nodes());
    for (std::size_t node = 0; node != 2; ++node) {
        EXPECT_EQ(pool.get_scheduler(node), pool.get_scheduler(node));
        EXPECT_NE(pool.get_scheduler(node), pool.get_scheduler(1 - node));
        EXPECT_NE(pool.get_scheduler(node), pool.get_scheduler());
        for (int i = 0; i != 1000; ++i) {
            auto work = ex::schedule(pool.get_scheduler(node)) |
                        ex::then([&] { return pool.is_current(node); });
            ASSERT_EQ(this_thread::sync_wait(std::move(work)), std::tuple(true));
        }
    }
}

TEST(pool_nodes, an_await_returns_a_task_to_its_node) {
    thread_pool pool(two_nodes());
    const auto body = [](thread_pool& p) -> task<bool> {
        bool at_home = p.is_current(1);
        for (int i = 0; i != 100; ++i) {
            co_await ex::schedule(p.get_scheduler(0));
            at_home = at_home && p.is_current(1);
        }
        co_return at_home;
    };
    EXPECT_EQ(this_thread::sync_wait(ex::starts_on(pool.get_scheduler(1), body(pool))),
              std::tuple(true));
}

TEST(pool_nodes, idle_workers_of_another_node_leave_a_nodes_work_alone) {
    atomic<int> blocked{0}, ran{0};
    gate end;
    const auto block = [&] {
        blocked.fetch_add(1, relaxed);
        end.wait();
    };
    // Destroyed first: its workers are in the items.
    auto owned = std::make_unique<thread_pool>(two_nodes());
    thread_pool& pool = *owned;
    function_item first(block), second(block);
    function_item item([&] {
        EXPECT_TRUE(pool.is_current(1));
        ran.fetch_add(1, relaxed);
    });
    pool.submit(1, first);
    pool.submit(1, second);
    wait_for(blocked, 2);
    // The workers of the idle node have all looked, and sleep again.
    pool.submit(1, item);
    for (int i = 0; i != 50; ++i) {
        const auto parks = [&] { return pool.counts(0).parks + pool.counts(1).parks; };
        const auto before = parks();
        this_thread::sync_wait(ex::schedule(pool.get_scheduler(0)));
        while (parks() == before) std::this_thread::yield();
    }
    EXPECT_EQ(ran.load(relaxed), 0);
    end.open();
    wait_for(ran, 1);
    owned.reset();
}

// Four workers: one waits; another of its node and one of the other node have items to steal.
TEST(pool_nodes, a_worker_steals_near_before_far) {
    constexpr int each = 20;
    atomic<int> started{0};
    gate fed, look, end;
    std::string order;  // written only by the worker that looks for work
    std::vector<std::unique_ptr<function_item>> items;
    // Destroyed first: its workers are in the items.
    auto owned = std::make_unique<thread_pool>(two_nodes());
    thread_pool& pool = *owned;
    atomic<int> ran{0};
    const auto feed = [&](char name) {
        for (int i = 0; i != each; ++i) {
            pool.submit(*items.emplace_back(std::make_unique<function_item>([&, name] {
                order += name;
                ran.fetch_add(1, release);
            })));
        }
    };
    // Each item is on a worker of its own, and no other worker is free.
    const auto begin = [&] {
        started.fetch_add(1, acq_rel);
        wait_for(started, 4);
    };
    function_item idle([&] { begin(), end.wait(); });
    function_item looker([&] { begin(), look.wait(); });
    function_item near([&] { begin(), feed('n'), fed.open(), end.wait(); });
    function_item far([&] { begin(), fed.wait(), feed('f'), look.open(), end.wait(); });
    pool.submit(1, idle);
    pool.submit(0, looker);
    pool.submit(1, far);
    pool.submit(0, near);
    wait_for(ran, 2 * each);
    EXPECT_EQ(order, std::string(each, 'n') + std::string(each, 'f'));
    std::uint64_t steals = 0, far_steals = 0;
    for (std::size_t i = 0; i != pool.size(); ++i) {
        steals += pool.counts(i).steals;
        far_steals += pool.counts(i).far_steals;
    }
    EXPECT_EQ(steals, 2u * each);
    EXPECT_EQ(far_steals, std::uint64_t{each});
    end.open();
    owned.reset();
}

TEST(pool_nodes, forked_calls_cross_nodes_when_all_workers_are_needed) {
    thread_pool pool(two_nodes());
    for (int round = 0; round != 50; ++round) {
        atomic<int> there{0};
        const auto come = [&] {
            there.fetch_add(1, acq_rel);
            wait_for(there, 4);
        };
        pool.run([&] { fork_join(come, come, come, come); });
    }
    std::uint64_t far_steals = 0;
    for (std::size_t i = 0; i != pool.size(); ++i) far_steals += pool.counts(i).far_steals;
    EXPECT_GE(far_steals, 50u);
}

TEST(pool_nodes, the_destructor_runs_the_items_of_all_nodes) {
    constexpr std::size_t count = 5000;
    const auto check = [](auto& pool, atomic<int>& ran, auto& items) {
        for (std::size_t i = 0; i != count; ++i) {
            items.push_back(std::make_unique<function_item>([&] { ran.fetch_add(1, relaxed); }));
            pool.submit(i % 2, *items.back());
        }
        pool.request_stop();
        items.push_back(std::make_unique<function_item>([&] { ran.fetch_add(1, relaxed); }));
        pool.submit(1, *items.back());
    };
    atomic<int> ran{0};
    std::vector<std::unique_ptr<function_item>> items;
    {
        thread_pool pool(two_nodes());
        check(pool, ran, items);
    }
    {
        queue_pool<mutex_queue> pool(two_nodes());
        check(pool, ran, items);
    }
    EXPECT_EQ(ran.load(relaxed), 2 * static_cast<int>(count) + 2);
}

std::vector<unsigned> processors_of_this_thread() {
    return allowed_processors();
}

TEST(pinning, pins_each_worker_to_its_processor_or_node) {
    const std::vector<unsigned> allowed = allowed_processors();
    // A node for each processor, so that the test can address each worker.
    std::vector<processor> machine;
    for (const unsigned id : allowed) machine.push_back({id, id});
    thread_pool pool({.pin = pinning::processor, .machine = topology(machine)});
    ASSERT_EQ(pool.size(), allowed.size());
    for (std::size_t node = 0; node != pool.nodes(); ++node) {
        auto where = ex::schedule(pool.get_scheduler(node)) | ex::then(processors_of_this_thread);
        EXPECT_EQ(std::get<0>(*this_thread::sync_wait(std::move(where))),
                  (std::vector<unsigned>{allowed[node]}));
    }
    thread_pool whole({.threads = 2, .pin = pinning::node});
    const topology here = topology::of_this_process();
    auto where = ex::schedule(whole.get_scheduler(0)) | ex::then(processors_of_this_thread);
    const std::vector<unsigned> got = std::get<0>(*this_thread::sync_wait(std::move(where)));
    const unsigned number = whole.node_number(0);
    EXPECT_EQ(got.size(), here.on_nodes({&number, 1}).processors().size());
    EXPECT_EQ(allowed_processors(), allowed);  // the caller's affinity is unchanged
}

std::size_t threads_of_this_process() {
    namespace fs = std::filesystem;
    return static_cast<std::size_t>(
        std::distance(fs::directory_iterator("/proc/self/task"), fs::directory_iterator()));
}

TEST(pinning, a_forbidden_processor_is_named_and_no_worker_is_left_running) {
    const std::size_t before = threads_of_this_process();
    try {
        thread_pool pool({.threads = 2,
                          .pin = pinning::processor,
                          .machine = topology({{allowed_processors().front(), 0}, {9999, 0}})});
        ADD_FAILURE() << "nothing was thrown";
    } catch (const std::invalid_argument& error) {
        EXPECT_NE(std::string(error.what()).find("processor 9999 "), std::string::npos);
    }
    EXPECT_EQ(threads_of_this_process(), before);
    // Without pinning the topology only describes the machine.
    EXPECT_EQ(thread_pool({.threads = 1, .machine = topology({{9999, 0}})}).size(), 1u);
}

TEST(pool_nodes_death, a_node_out_of_range_stops_the_process) {
    EXPECT_DEATH(
        {
            thread_pool pool(1);
            (void)pool.get_scheduler(1);
        },
        "no such node");
}

}  // namespace
