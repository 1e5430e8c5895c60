// Items of work that the ranks of the job share while they find more of them.
#include <coppice/execution.hpp>
#include <coppice/mpi/collective.hpp>
#include <coppice/mpi/error.hpp>
#include <coppice/mpi/window.hpp>
#include <coppice/mpi/work_sharing.hpp>
#include <coppice/token.hpp>

#include <gtest/gtest.h>

#include "job.hpp"

#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

namespace {

namespace ex = coppice::execution;
namespace mpi = coppice::mpi;
using coppice::block;
using mpi_test::job_size;
using mpi_test::wait_for;
using mpi_test::world;

// A tree whose shape follows from the numbers of its nodes: subtrees differ by orders of magnitude.
struct tree_node {
    std::uint64_t number;
    std::uint64_t children;
};
std::uint64_t mixed(std::uint64_t n) noexcept {
    n = (n ^ (n >> 30)) * 0xbf58476d1ce4e5b9U;
    n = (n ^ (n >> 27)) * 0x94d049bb133111ebU;
    return n ^ (n >> 31);
}
tree_node nth_child(const tree_node& n, std::uint64_t i) noexcept {
    const std::uint64_t number = mixed(n.number + i + 1);
    return {number, number % 100 < 12 ? std::uint64_t{8} : std::uint64_t{0}};  // 0.96 on average
}
constexpr tree_node tree_root{7, 2000};

template <class Sender>
bool is_stopped(Sender&& sender) {
    return !wait_for(std::forward<Sender>(sender)).has_value();
}
std::uint64_t sum_of_all(std::uint64_t mine) {
    std::array<std::uint64_t, 1> sum{mine};
    mpi::all_reduce(world(), sum, sum, mpi::reduction::sum, block);
    return sum[0];
}

// What a walk over the tree finds: the number of nodes, and the sum of their numbers.
struct tree_totals {
    std::uint64_t nodes = 0;
    std::uint64_t sum = 0;
};
tree_totals totals_of_tree() {
    std::vector<tree_node> open{tree_root};
    tree_totals t;
    while (!open.empty()) {
        const tree_node n = open.back();
        open.pop_back();
        ++t.nodes;
        t.sum += n.number;
        for (std::uint64_t i = 0; i != n.children; ++i) open.push_back(nth_child(n, i));
    }
    return t;
}

// Prints the balance if COPPICE_TEST_FIGURES is set. It is that of the processors' time, which
// nothing here promises.
void print_largest_share(std::uint64_t worked, std::uint64_t of_all) {
    const double mean = static_cast<double>(of_all) / static_cast<double>(job_size());
    std::array<double, 1> most{static_cast<double>(worked) / mean};
    mpi::all_reduce(world(), most, most, mpi::reduction::maximum, block);
    if (world().rank() == 0 && std::getenv("COPPICE_TEST_FIGURES") != nullptr)
        std::printf("%llu nodes, the largest share is %.3f of the mean\n",
                    static_cast<unsigned long long>(of_all), most[0]);
}

TEST(mpi_work_sharing, visits_each_node_of_an_uneven_tree_once) {
    const tree_totals expected = totals_of_tree();
    mpi::work_sharing<tree_node> tree(world());
    if (world().rank() == 0) tree.add(tree_root);
    std::uint64_t sum = 0;
    ASSERT_TRUE(wait_for(tree.run([&sum](const tree_node& n, mpi::work_found<tree_node>& found) {
        sum += n.number;
        std::uint64_t wasted = n.number;  // a visit costs some microseconds
        for (int i = 0; i != 1000; ++i) wasted = mixed(wasted);
        if (wasted == 0) throw std::logic_error("no number is mixed to 0");
        for (std::uint64_t i = 0; i != n.children; ++i) found.add(nth_child(n, i));
    })));
    const mpi::work_counts counts = tree.counts();
    EXPECT_EQ(sum_of_all(counts.worked), expected.nodes);
    EXPECT_EQ(sum_of_all(sum), expected.sum);
    EXPECT_EQ(sum_of_all(counts.taken), sum_of_all(counts.given));
    EXPECT_EQ(tree.size(), 0u);
    print_largest_share(counts.worked, expected.nodes);
}

// A call that lasts must not keep the items that its rank offers: each lasts until all have one.
TEST(mpi_work_sharing, every_rank_gets_items_while_the_calls_of_all_others_last) {
    mpi::window<int> arrived(world(), world().rank() == 0 ? 1 : 0);
    mpi::work_sharing<int> work(world());
    const int items = 4 * world().size();
    for (int i = 0; i != items && world().rank() == 0; ++i) work.add(i);
    int calls = 0;
    EXPECT_TRUE(wait_for(work.run([&arrived, &calls](int, mpi::work_found<int>&) {
        std::array<int, 1> add{calls == 0 ? 1 : 0}, before{};
        ++calls;
        do {
            mpi::fetch_accumulate(arrived, add, before, 0, 0, mpi::reduction::sum, block);
            before[0] += add[0];
            add[0] = 0;
        } while (before[0] != world().size());
    })));
    EXPECT_GT(calls, 0);
    EXPECT_EQ(sum_of_all(static_cast<std::uint64_t>(calls)), static_cast<std::uint64_t>(items));
    mpi::fence(arrived, block);
}

TEST(mpi_work_sharing, a_run_without_items_ends_and_so_do_runs_after_it) {
    mpi::work_sharing<int> work(world());
    const auto fails = [](int, mpi::work_found<int>&) { ADD_FAILURE() << "there was no item"; };
    for (int i = 0; i != 3; ++i) EXPECT_TRUE(wait_for(work.run(fails)));
    EXPECT_EQ(work.counts().worked, 0u);
    const mpi::communicator alone = world().split(world().rank());
    mpi::work_sharing<int> own(alone);
    own.add(3);
    int sum = 0;
    EXPECT_TRUE(wait_for(own.run([&sum](int n, mpi::work_found<int>& found) {
        sum += n;
        if (n != 0) found.add(n - 1);
    })));
    EXPECT_EQ(sum, 6);
}

// A large object, so that few fit into a message.
struct parcel {
    std::array<std::uint64_t, 2000> numbers;
};

TEST(mpi_work_sharing, items_of_every_rank_and_of_other_threads_are_worked_off_once) {
    mpi::work_sharing<parcel> work(world());
    std::uint64_t added = 0, sum = 0;
    const auto add = [&work, &added](std::uint64_t n) {
        added += n + 1;
        parcel p{};
        p.numbers.front() = n;
        p.numbers.back() = 1;
        work.add(p);
    };
    const auto count = [&sum](const parcel& p, mpi::work_found<parcel>&) {
        sum += p.numbers.front() + p.numbers.back();
    };
    for (std::uint64_t i = 0; i != 20; ++i)
        if (world().rank() != 0) add(i);
    {
        const std::jthread other([&add] {
            for (std::uint64_t i = 0; i != 50; ++i) add(i);
        });
        EXPECT_TRUE(wait_for(work.run(count)));
    }
    EXPECT_TRUE(wait_for(work.run(count)));  // what came too late for the first
    EXPECT_EQ(sum_of_all(sum), sum_of_all(added));
}

// Adds 100 items at each rank, runs `f`, and returns how many are left of all ranks.
template <class F>
std::uint64_t left_after(mpi::work_sharing<int>& work, F run) {
    for (int i = 0; i != 100; ++i) work.add(i);
    run();
    const std::uint64_t left = sum_of_all(work.size());
    EXPECT_EQ(sum_of_all(work.counts().worked) + left, 100 * job_size());
    return left;
}

// Each process calls it in its first item. So none loses all its items before it has worked on one.
class meeting {
public:
    void operator()() {
        if (!std::exchange(has_met_, true)) mpi::barrier(world(), block);
    }

private:
    bool has_met_ = false;
};

TEST(mpi_work_sharing, an_exception_at_one_rank_ends_the_run_at_all_and_the_rest_is_left) {
    mpi::work_sharing<int> work(world());
    for (int round = 0; round != 3; ++round) {
        left_after(work, [&work] {
            meeting meet;
            const auto fails = [&meet](int, mpi::work_found<int>&) {
                meet();
                if (world().rank() == 1) throw std::out_of_range("item");
            };
            if (world().rank() == 1) {
                EXPECT_THROW(wait_for(work.run(fails)), std::out_of_range);
                return;
            }
            try {
                wait_for(work.run(fails));
                ADD_FAILURE() << "no error";
            } catch (const std::system_error& e) {
                EXPECT_EQ(e.code(), mpi::errc::failed_elsewhere) << e.what();
            }
        });
        const std::size_t here = work.size();
        EXPECT_EQ(work.take_all().size(), here);
        EXPECT_EQ(work.size(), 0u);
    }
}

TEST(mpi_work_sharing, a_stop_at_one_rank_stops_the_run_at_all_and_the_next_run_does_the_rest) {
    mpi::work_sharing<int> work(world());
    const std::uint64_t left = left_after(work, [&work] {
        coppice::inplace_stop_source source;
        meeting meet;
        const auto stops = [&source, &meet](int, mpi::work_found<int>&) {
            meet();
            if (world().rank() == 0) source.request_stop();
        };
        EXPECT_TRUE(is_stopped(work.run(stops) | ex::write_env(ex::prop(coppice::get_stop_token,
                                                                        source.get_token()))));
    });
    EXPECT_TRUE(wait_for(work.run([](int, mpi::work_found<int>&) {})));
    EXPECT_EQ(sum_of_all(work.counts().worked), left);
    EXPECT_EQ(sum_of_all(work.size()), 0u);
}

// The receiver's environment has the deadline, so no timeout stops the run. It must not end what
// the run receives: a reply with items would be lost, or be taken for that to a later question.
TEST(mpi_work_sharing, a_deadline_that_has_passed_loses_no_item_and_ends_no_run) {
    mpi::work_sharing<int> work(world());
    for (int round = 0; round != 10; ++round) {
        if (world().rank() == 0) work.add(10);
        EXPECT_TRUE(wait_for(work.run([](int depth, mpi::work_found<int>& found) {
            for (int i = 0; depth != 0 && i != 2; ++i) found.add(depth - 1);
        }) | ex::write_env(ex::prop(ex::get_deadline, ex::instant(1)))));
        EXPECT_EQ(sum_of_all(work.counts().worked), 2047u);
        EXPECT_EQ(sum_of_all(work.counts().taken), sum_of_all(work.counts().given));
        EXPECT_EQ(sum_of_all(work.size()), 0u);
    }
}

}  // namespace
