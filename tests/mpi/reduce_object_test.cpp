// Reductions of objects of any type, between processes of the job, in groups of each size.
#include <coppice/execution.hpp>
#include <coppice/mpi/collective.hpp>
#include <coppice/mpi/error.hpp>
#include <coppice/mpi/message.hpp>
#include <coppice/mpi/objects.hpp>
#include <coppice/task.hpp>
#include <coppice/token.hpp>

#include <gtest/gtest.h>

#include "job.hpp"

#include <mpi.h>
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

namespace {

// An object that cannot be written if it is below 0, and not be read if it is above 9.
struct restricted {
    int value = 0;
};
struct without_bytes {};

}  // namespace

template <>
struct coppice::mpi::serializer<restricted> {
    static void write(mpi::output_archive& to, const restricted& r) {
        if (r.value < 0) throw std::domain_error("below 0");
        to.write(r.value);
    }
    static restricted read(mpi::input_archive& from) {
        const restricted r{from.read<int>()};
        if (r.value > 9) throw std::domain_error("above 9");
        return r;
    }
};
template <>
struct coppice::mpi::serializer<without_bytes> {
    static void write(mpi::output_archive&, const without_bytes&) {}
    static without_bytes read(mpi::input_archive&) { return {}; }
};

namespace {

namespace ex = coppice::execution;
namespace mpi = coppice::mpi;
using coppice::block;
using coppice::task;
using mpi_test::wait_for;
using mpi_test::world;

const auto joined = [](std::string a, const std::string& b) { return std::move(a) + b; };

static_assert(mpi::combines_objects<decltype(joined), std::string>);
static_assert(!mpi::combines_objects<std::string (*)(std::string&, std::string&), std::string>);
static_assert(!mpi::combines_objects<decltype(joined), int>);

// Calls f(group) in groups of all sizes: of the first n processes, and of the others.
template <class F>
void in_each_group(F f) {
    for (int n = 1; n <= world().size(); ++n) {
        const mpi::communicator group = world().split(world().rank() < n ? 0 : 1);
        f(group);
    }
}

// The text of each rank has another length, up to about `size`.
std::string text_of(int rank, std::size_t size) {
    return std::string(size * static_cast<std::size_t>(rank + 1) / 4,
                       static_cast<char>('a' + rank)) +
           std::to_string(rank);
}
std::string texts_of(int count, std::size_t size) {
    std::string all;
    for (int rank = 0; rank != count; ++rank) all += text_of(rank, size);
    return all;
}

// What an operation has ended with at this process.
enum class ending : int { success, own_exception, failed_elsewhere, other };
template <class Sender>
ending ending_of(Sender sender) {
    try {
        wait_for(std::move(sender));
    } catch (const std::domain_error&) {
        return ending::own_exception;
    } catch (const std::system_error& e) {
        return e.code() == mpi::errc::failed_elsewhere ? ending::failed_elsewhere : ending::other;
    }
    return ending::success;
}
// The operation fails by an exception at process `bad`, and at no other if that is -1.
template <class Sender>
void expect_failure_of(int bad, const mpi::communicator& over, Sender sender) {
    const ending wanted = bad < 0              ? ending::success
                          : bad == over.rank() ? ending::own_exception
                                               : ending::failed_elsewhere;
    EXPECT_EQ(static_cast<int>(ending_of(std::move(sender))), static_cast<int>(wanted))
        << "bad " << bad << " of " << over.size();
}

TEST(mpi_reduce_object, combines_texts_of_any_size_in_the_order_of_ranks_for_every_root) {
    in_each_group([](const mpi::communicator& group) {
        for (const std::size_t size : {0, 36, 40, 44, 5000, 300'000}) {
            const std::string own = text_of(group.rank(), size);
            for (int root = 0; root != group.size(); ++root) {
                std::string text = own;
                wait_for(mpi::reduce_object(group, text, joined, root));
                EXPECT_EQ(text, group.rank() == root ? texts_of(group.size(), size) : own);
            }
            std::string text = own;
            wait_for(mpi::all_reduce_object(group, text, joined));
            EXPECT_EQ(text, texts_of(group.size(), size));
        }
    });
}

struct matrix {
    std::array<std::uint64_t, 4> of;
    bool operator==(const matrix&) const = default;
};
matrix product(const matrix& a, const matrix& b) {
    return {{a.of[0] * b.of[0] + a.of[1] * b.of[2], a.of[0] * b.of[1] + a.of[1] * b.of[3],
             a.of[2] * b.of[0] + a.of[3] * b.of[2], a.of[2] * b.of[1] + a.of[3] * b.of[3]}};
}
matrix matrix_of(int rank) {
    const auto r = static_cast<std::uint64_t>(rank);
    return {{1, r, 2 + r, 3}};
}

TEST(mpi_reduce_object, multiplies_matrices_in_the_order_of_ranks) {
    in_each_group([](const mpi::communicator& group) {
        matrix wanted = matrix_of(0);
        for (int rank = 1; rank != group.size(); ++rank) wanted = product(wanted, matrix_of(rank));
        matrix m = matrix_of(group.rank());
        wait_for(mpi::all_reduce_object(group, m, &product));
        EXPECT_EQ(m, wanted);
    });
}

task<> merge_words(const mpi::communicator& over, std::map<std::string, int>& words) {
    co_await mpi::all_reduce_object(
        over, words, [](std::map<std::string, int> all, const std::map<std::string, int>& more) {
            for (const auto& [word, count] : more) all[word] += count;
            return all;
        });
}

TEST(mpi_reduce_object, tasks_await_it) {
    std::map<std::string, int> words{{"all", 1}, {std::to_string(world().rank()), 1}};
    wait_for(merge_words(world(), words));
    EXPECT_EQ(words.at("all"), world().size());
    EXPECT_EQ(words.size(), mpi_test::job_size() + 1);
}

TEST(mpi_reduce_object, takes_objects_that_are_only_moved_and_objects_without_bytes) {
    auto number = std::make_unique<int>(world().rank());
    wait_for(mpi::reduce_object(
        world(), number,
        [](const std::unique_ptr<int>& a, const std::unique_ptr<int>& b) {
            return std::make_unique<int>(*a * 10 + *b);
        },
        1));
    if (world().rank() == 1) {
        EXPECT_EQ(*number, world().size() == 2 ? 1 : world().size() == 3 ? 12 : 33);
    } else {
        EXPECT_EQ(*number, world().rank());
    }
    without_bytes nothing;
    int calls = 0;
    wait_for(mpi::all_reduce_object(world(), nothing, [&calls](without_bytes, without_bytes) {
        ++calls;
        return without_bytes();
    }));
    std::array<int, 1> all{calls};
    mpi::all_reduce(world(), all, all, mpi::reduction::sum, block);
    EXPECT_EQ(all[0], world().size() - 1);
}

TEST(mpi_reduce_object, of_one_process_leaves_the_object_and_calls_nothing) {
    const mpi::communicator alone = world().split(world().rank());
    restricted r{-1};
    const auto fails = [](restricted, restricted) -> restricted { throw std::domain_error("one"); };
    wait_for(mpi::reduce_object(alone, r, fails, 0));
    wait_for(mpi::all_reduce_object(alone, r, fails));
    EXPECT_EQ(r.value, -1);
}

TEST(mpi_reduce_object, an_exception_of_the_combination_at_one_process_is_an_error_at_all) {
    in_each_group([](const mpi::communicator& group) {
        for (int bad = 0; bad != group.size(); ++bad) {
            const auto fails = [&group, bad](const std::string& a, const std::string& b) {
                if (group.rank() == bad) throw std::domain_error("combined");
                return a + b;
            };
            const int failing = bad % 2 == 0 && bad + 1 != group.size() ? bad : -1;
            for (const std::size_t size : {4, 5000}) {
                const std::string own = text_of(group.rank(), size);
                std::string text = own;
                expect_failure_of(failing, group, mpi::all_reduce_object(group, text, fails));
                if (failing >= 0) {
                    EXPECT_EQ(text, own);
                }
                text = own;
                const int root = group.size() - 1;
                expect_failure_of(failing, group, mpi::reduce_object(group, text, fails, root));
                if (failing >= 0) {
                    EXPECT_EQ(text, own);
                }
            }
        }
        std::string text = text_of(group.rank(), 0);  // the communicator is as before
        wait_for(mpi::all_reduce_object(group, text, joined));
        EXPECT_EQ(text, texts_of(group.size(), 0));
    });
}

TEST(mpi_reduce_object, what_one_process_cannot_write_or_read_is_an_error_at_all) {
    const auto lower = [](restricted a, restricted b) {
        return restricted{std::min(a.value, b.value)};
    };
    const auto higher = [](restricted a, restricted b) {
        return restricted{std::max(a.value, b.value)};
    };
    in_each_group([&](const mpi::communicator& group) {
        if (group.size() == 1) return;
        for (int bad = 0; bad != group.size(); ++bad) {
            // Each process but 0 writes its combination once, and process 0 writes the result.
            restricted r{group.rank() == bad ? -1 : 1};
            expect_failure_of(bad, group, mpi::all_reduce_object(group, r, lower));
            expect_failure_of(bad == 0 ? -1 : bad, group, mpi::reduce_object(group, r, lower, 0));
            // Its taker cannot read it: the process whose rank lacks the lowest bit.
            restricted s{group.rank() == bad ? 10 : 1};
            const int taker = bad == 0 ? -1 : bad & (bad - 1);
            expect_failure_of(taker, group, mpi::reduce_object(group, s, higher, 0));
            EXPECT_EQ(s.value, group.rank() == bad ? 10 : 1);
            if (bad != 0) expect_failure_of(taker, group, mpi::all_reduce_object(group, s, higher));
        }
        restricted r{group.rank() == 0 ? 10 : 1};  // only process 0 can have the result
        const ending e = ending_of(mpi::all_reduce_object(group, r, higher));
        EXPECT_NE(e, ending::success);
        EXPECT_NE(e, ending::other);
    });
}

template <class Sender>
void expect_invalid_root(Sender sender) {
    try {
        wait_for(std::move(sender));
        ADD_FAILURE() << "no error";
    } catch (const std::system_error& e) {
        EXPECT_EQ(e.code(), mpi::errc::invalid_root) << e.code().message();
    }
}

TEST(mpi_reduce_object, a_root_that_there_is_not_is_an_error_at_all) {
    std::string text = "own";
    std::vector<std::string> all;
    for (const int root : {-1, -2, world().size(), MPI_ANY_SOURCE, MPI_PROC_NULL}) {
        expect_invalid_root(mpi::reduce_object(world(), text, joined, root));
        expect_invalid_root(mpi::gather_objects(world(), text, all, root));
    }
    EXPECT_EQ(text, "own");
    EXPECT_TRUE(all.empty());
    mpi::barrier(world(), block);
}

TEST(mpi_reduce_object, sends_nothing_that_a_receive_of_the_program_takes) {
    const mpi::communicator own = world().duplicate();  // nothing else is sent here
    std::vector<char> taken;
    std::string text = text_of(world().rank(), 5000);
    bool is_stopped = false;
    auto receives = mpi::receive_all(own, taken, {mpi::any_source, mpi::any_tag}) |
                    ex::then([](mpi::envelope) { return 1; }) | ex::let_stopped([&is_stopped] {
                        is_stopped = true;
                        return ex::just(2);
                    });
    wait_for(ex::when_any(std::move(receives),
                          mpi::all_reduce_object(own, text, joined) | ex::then([] { return 3; })));
    EXPECT_TRUE(is_stopped);
    EXPECT_EQ(text, texts_of(world().size(), 5000));
}

TEST(mpi_reduce_object, a_process_that_starts_late_is_waited_for) {
    for (int late = 0; late != world().size(); ++late) {
        std::array<int, 1> signal{};
        const int last = (late + 1) % world().size();
        // `late` starts when another process has started, which cannot complete without it.
        std::string text = text_of(world().rank(), 44);
        if (world().rank() == late) mpi::receive(world(), signal, {last, 7}, block);
        bool is_done = false;
        ex::counting_scope scope;
        ex::spawn(mpi::all_reduce_object(world(), text, joined) | ex::then([&is_done] {
                      is_done = true;
                  }) | ex::upon_error([](const std::exception_ptr&) noexcept {
                      ADD_FAILURE() << "the reduction fails";
                  }),
                  scope.get_token());
        if (world().rank() == last) mpi::send(world(), signal, {late, 7}, block);
        wait_for(scope.join());
        EXPECT_TRUE(is_done);
        EXPECT_EQ(text, texts_of(world().size(), 44));
    }
}

}  // namespace
