// Objects of any type as messages, between processes of the job.
#include <coppice/execution.hpp>
#include <coppice/mpi/error.hpp>
#include <coppice/mpi/message.hpp>
#include <coppice/mpi/objects.hpp>
#include <coppice/mpi/remote.hpp>
#include <coppice/mpi/serializer.hpp>
#include <coppice/task.hpp>
#include <coppice/token.hpp>

#include <gtest/gtest.h>

#include "job.hpp"

#include <mpi.h>
#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

namespace {

struct person {
    std::string name;
    std::map<std::string, std::vector<int>> marks;
    bool operator==(const person&) const = default;
};
// A tree, whose serializer uses itself.
struct tree {
    int value = 0;
    std::vector<tree> children;
    bool operator==(const tree&) const = default;
};
// An object that cannot be written if it is below 0, and not be read if it is above 9.
struct picky {
    int value = 0;
};
struct nothing {};
// A transferable type with a serializer of its own, which is used.
struct reversed {
    int value = 0;
};
struct point {
    double x, y;
    bool operator==(const point&) const = default;
};

}  // namespace

template <>
struct coppice::mpi::serializer<person> {
    static void write(mpi::output_archive& to, const person& p) { to.write(p.name, p.marks); }
    static person read(mpi::input_archive& from) {
        return {from.read<std::string>(), from.read<std::map<std::string, std::vector<int>>>()};
    }
};
template <>
struct coppice::mpi::serializer<tree> {
    static void write(mpi::output_archive& to, const tree& t) { to.write(t.value, t.children); }
    static tree read(mpi::input_archive& from) {
        return {from.read<int>(), from.read<std::vector<tree>>()};
    }
};
template <>
struct coppice::mpi::serializer<picky> {
    static void write(mpi::output_archive& to, const picky& p) {
        if (p.value < 0) throw std::domain_error("below 0");
        to.write(p.value);
    }
    static picky read(mpi::input_archive& from) {
        const picky p{from.read<int>()};
        if (p.value > 9) throw std::domain_error("above 9");
        return p;
    }
};
template <>
struct coppice::mpi::serializer<nothing> {
    static void write(mpi::output_archive&, const nothing&) {}
    static nothing read(mpi::input_archive&) { return {}; }
};
template <>
struct coppice::mpi::serializer<reversed> {
    static void write(mpi::output_archive& to, const reversed& r) { to.write(-r.value); }
    static reversed read(mpi::input_archive& from) { return {-from.read<int>()}; }
};

namespace {

namespace ex = coppice::execution;
namespace mpi = coppice::mpi;
using coppice::task;
using mpi_test::job_size;
using mpi_test::next_rank;
using mpi_test::previous_rank;
using mpi_test::wait_for;
using mpi_test::world;

static_assert(mpi::serializable<std::vector<std::map<int, std::optional<std::string>>>>);
static_assert(mpi::serializable<std::tuple<person, std::variant<int, std::string>>>);
static_assert(mpi::serializable<std::unique_ptr<std::string>>);
static_assert(mpi::serializable<std::array<std::string, 2>> && mpi::serializable<tree>);
static_assert(!mpi::serializable<std::string_view> && !mpi::serializable<std::span<int>>);
static_assert(!mpi::serializable<int*> && !mpi::serializable<std::vector<int*>>);
static_assert(!mpi::serializable<std::shared_ptr<int>> && !mpi::transferable<std::string_view>);

// The bytes of an object, and the object of bytes.
template <class T>
mpi::internal::bytes packed(const T& object) {
    mpi::internal::bytes to;
    mpi::internal::write(to, object);
    return to;
}
// The object survives, and no part of its bytes is an object.
template <class T>
void expect_survives(const T& object) {
    const mpi::internal::bytes all = packed(object);
    EXPECT_EQ(mpi::internal::unpack<T>(all), object);
    for (std::size_t n = 0; n != all.size(); ++n)
        EXPECT_THROW((void)mpi::internal::unpack<T>(std::span(all).first(n)), std::system_error);
    mpi::internal::bytes more = all;
    more.push_back(std::byte{0});
    EXPECT_THROW((void)mpi::internal::unpack<T>(more), std::system_error);
}
// Returns the code of the exception; none if it is no std::system_error, or null.
std::error_code code_of(const std::exception_ptr& failure) {
    try {
        if (failure) std::rethrow_exception(failure);
    } catch (const std::system_error& e) {
        return e.code();
    } catch (const std::domain_error&) {
        return {};
    }
    return {};
}
// Waits for a sender, and returns its exception.
template <class Sender>
std::exception_ptr failure_of(Sender sender) {
    return mpi::internal::exception_of([&] { (void)wait_for(std::move(sender)); });
}
bool is_domain_error(const std::exception_ptr& failure) {
    try {
        if (failure) std::rethrow_exception(failure);
    } catch (const std::domain_error&) {
        return true;
    } catch (const std::system_error&) {
        return false;
    }
    return false;
}
person person_of(int rank) {
    person p{"process " + std::to_string(rank), {}};
    for (int n = 0; n <= rank; ++n)
        p.marks[std::to_string(n)] = std::vector<int>(static_cast<std::size_t>(n), rank);
    return p;
}

TEST(mpi_objects, each_kind_of_object_survives_and_no_part_of_its_bytes_is_one) {
    expect_survives(std::string());
    expect_survives(std::string("text with \0 inside", 18));
    expect_survives(std::u16string(u"wide"));
    expect_survives(std::vector<int>{1, 2, 3});
    expect_survives(std::vector<bool>{true, false, true});
    expect_survives(std::vector<std::string>{"", "a", "bc"});
    expect_survives(std::deque<point>{{1, 2}, {3, 4}});
    expect_survives(std::list<std::vector<point>>{{{1, 2}}, {}});
    expect_survives(std::set<std::string>{"x", "y"});
    expect_survives(std::map<int, std::string>{{1, "a"}, {2, "b"}});
    expect_survives(std::multimap<int, int>{{1, 1}, {1, 2}});
    expect_survives(std::unordered_map<std::string, int>{{"one", 1}, {"two", 2}});
    expect_survives(std::pair<int, std::string>{7, "seven"});
    expect_survives(std::tuple<int, std::string, point>{7, "seven", {1, 2}});
    expect_survives(std::array<std::string, 3>{"a", "", "c"});
    expect_survives(std::array<int, 3>{1, 2, 3});
    expect_survives(std::optional<std::string>());
    expect_survives(std::optional<std::string>("full"));
    expect_survives(std::variant<int, std::string>("second"));
    expect_survives(std::variant<std::string, std::vector<int>>(std::vector<int>{5}));
    expect_survives(point{1, 2});
    expect_survives(person_of(3));
    expect_survives(tree{1, {{2, {}}, {3, {{4, {}}}}}});
}

TEST(mpi_objects, a_pointer_owns_an_equal_object_at_the_other_end) {
    const auto made = mpi::internal::unpack<std::unique_ptr<tree>>(
        packed(std::make_unique<tree>(tree{1, {{2, {}}}})));
    EXPECT_EQ(*made, (tree{1, {{2, {}}}}));
    EXPECT_EQ(mpi::internal::unpack<std::unique_ptr<int>>(packed(std::unique_ptr<int>())), nullptr);
}

TEST(mpi_objects, a_serializer_of_a_transferable_type_is_used) {
    EXPECT_EQ(mpi::internal::unpack<int>(packed(reversed{5})), -5);
    const std::vector<reversed> some{{1}, {2}};
    EXPECT_EQ(mpi::internal::unpack<std::vector<reversed>>(packed(some))[1].value, 2);
    EXPECT_EQ(mpi::internal::unpack<std::vector<int>>(packed(some))[1], -2);
    EXPECT_EQ(
        (mpi::internal::unpack<std::array<int, 2>>(packed(std::array<reversed, 2>{{{1}, {2}}}))[1]),
        -2);
}

TEST(mpi_objects, a_number_that_cannot_be_is_refused_before_memory_is_asked_for) {
    for (const std::uint64_t count : {std::uint64_t{1}, std::uint64_t{1} << 40, UINT64_MAX}) {
        const mpi::internal::bytes lying = packed(count);
        EXPECT_THROW((void)mpi::internal::unpack<std::string>(lying), std::system_error);
        EXPECT_THROW((void)mpi::internal::unpack<std::vector<point>>(lying), std::system_error);
        EXPECT_THROW((void)mpi::internal::unpack<std::set<int>>(lying), std::system_error);
        EXPECT_THROW((void)mpi::internal::unpack<std::vector<nothing>>(lying), std::system_error);
    }
    EXPECT_THROW((void)packed(std::vector<nothing>(2)), std::system_error);
    EXPECT_THROW((void)(mpi::internal::unpack<std::variant<int, std::string>>(
                     packed(std::tuple<std::uint32_t, int>(2, 0)))),
                 std::system_error);
}

TEST(mpi_objects, a_byte_that_is_no_bool_is_refused) {
    for (int value = 2; value != 256; ++value) {
        const mpi::internal::bytes wrong(2, static_cast<std::byte>(value));
        std::span<const std::byte> from(wrong);
        EXPECT_THROW((void)mpi::internal::read<bool>(from), std::system_error) << value;
        EXPECT_THROW((void)mpi::internal::unpack<std::optional<char>>(wrong), std::system_error);
    }
    mpi::internal::bytes list = packed(std::vector<bool>{true, false});
    list.back() = std::byte{2};
    EXPECT_THROW((void)mpi::internal::unpack<std::vector<bool>>(list), std::system_error);
    EXPECT_TRUE(mpi::internal::unpack<bool>(packed(true)));
    EXPECT_FALSE(mpi::internal::unpack<bool>(packed(false)));
}

TEST(mpi_objects, objects_go_round) {
    std::optional<person> got;
    person came;
    ex::counting_scope scope;
    auto sent = mpi::send_object(world(), person_of(world().rank()), {next_rank(), 3});
    ex::spawn(std::move(sent) | ex::upon_error([](const std::exception_ptr&) noexcept {
                  ADD_FAILURE() << "the send fails";
              }),
              scope.get_token());
    const auto [e] = wait_for(mpi::receive_object(world(), came, {mpi::any_source, 3})).value();
    EXPECT_EQ(came, person_of(previous_rank()));
    EXPECT_EQ(e.source, previous_rank());
    EXPECT_EQ(e.tag, 3);
    EXPECT_EQ(e.count, 1u);
    wait_for(scope.join());
}

TEST(mpi_objects, an_object_goes_to_its_own_process_and_may_be_large_or_without_bytes) {
    ex::counting_scope scope;
    const auto send = [&scope](auto sender) {
        ex::spawn(std::move(sender) | ex::upon_error([](const std::exception_ptr&) noexcept {
                      ADD_FAILURE() << "the send fails";
                  }),
                  scope.get_token());
    };
    std::vector<std::string> large(1000);
    for (std::size_t n = 0; n != large.size(); ++n) large[n].assign(10'000, char('a' + n % 26));
    send(mpi::send_object(world(), large, {world().rank(), 1}));
    send(mpi::send_object(world(), nothing(), {world().rank(), 2}));
    std::vector<std::string> came;
    wait_for(mpi::receive_object(world(), came, {world().rank(), 1}));
    EXPECT_EQ(came, large);
    nothing none;
    const auto [e] = wait_for(mpi::receive_object(world(), none, {world().rank(), 2})).value();
    EXPECT_EQ(e.count, 1u);
    wait_for(scope.join());
}

TEST(mpi_objects, there_is_no_object_beyond_the_edge) {
    wait_for(mpi::send_object(world(), std::string("lost"), {MPI_PROC_NULL}));
    std::string kept = "kept";
    const auto [e] = wait_for(mpi::receive_object(world(), kept, {MPI_PROC_NULL})).value();
    EXPECT_EQ(e.count, 0u);
    EXPECT_EQ(kept, "kept");
}

TEST(mpi_objects, a_stopped_receive_leaves_the_object) {
    std::string came = "none";
    coppice::inplace_stop_source stop;
    stop.request_stop();
    EXPECT_FALSE(wait_for(ex::write_env(mpi::receive_object(world(), came, {world().rank(), 4}),
                                        ex::prop(coppice::get_stop_token, stop.get_token()))));
    EXPECT_EQ(came, "none");
    wait_for(ex::when_all(mpi::send_object(world(), std::string("here"), {world().rank(), 4}),
                          mpi::receive_object(world(), came, {world().rank(), 4})));
    EXPECT_EQ(came, "here");
}

TEST(mpi_objects, a_message_that_is_no_such_object_is_an_error_and_gone) {
    const std::array<int, 1> number{5};
    const int self = world().rank();
    std::string came = "none";
    const auto receive_one = [&] {
        return failure_of(ex::when_all(mpi::send(world(), number, {self, 5}),
                                       mpi::receive_object(world(), came, {self, 5})));
    };
    EXPECT_EQ(code_of(receive_one()), std::errc::bad_message);
    EXPECT_EQ(came, "none");
    EXPECT_THROW((void)mpi::send_object(world(), picky{-1}, {self, 5}), std::domain_error);
    picky p{1};
    EXPECT_TRUE(
        is_domain_error(failure_of(ex::when_all(mpi::send_object(world(), picky{10}, {self, 5}),
                                                mpi::receive_object(world(), p, {self, 5})))));
    EXPECT_EQ(p.value, 1);
    EXPECT_EQ(code_of(failure_of(mpi::send_object(world(), 1, {world().size(), 5}))),
              mpi::errc::invalid_rank);
}

TEST(mpi_objects, all_get_the_object_of_one) {
    for (int root = 0; root != world().size(); ++root) {
        person p = person_of(world().rank());
        wait_for(mpi::broadcast_object(world(), p, root));
        EXPECT_EQ(p, person_of(root));
        nothing none;
        wait_for(mpi::broadcast_object(world(), none, root));
    }
}

TEST(mpi_objects, one_or_all_get_the_objects_of_all) {
    std::vector<person> wanted;
    for (int n = 0; n != world().size(); ++n) wanted.push_back(person_of(n));
    const person mine = person_of(world().rank());
    std::vector<person> all{person_of(9)};
    const int root = world().size() - 1;
    wait_for(mpi::gather_objects(world(), mine, all, root));
    EXPECT_EQ(all, world().rank() == root ? wanted : std::vector<person>{person_of(9)});
    wait_for(mpi::all_gather_objects(world(), mine, all));
    EXPECT_EQ(all, wanted);
    std::vector<nothing> nothings;
    wait_for(mpi::all_gather_objects(world(), nothing(), nothings));
    EXPECT_EQ(nothings.size(), job_size());
}

TEST(mpi_objects, each_gets_its_object_from_one) {
    std::vector<person> people;
    if (world().rank() == 0) {
        for (int n = 0; n != world().size(); ++n) people.push_back(person_of(n));
    }
    person mine;
    wait_for(mpi::scatter_objects(world(), people, mine, 0));
    EXPECT_EQ(mine, person_of(world().rank()));
}

TEST(mpi_objects, what_one_process_cannot_write_or_read_fails_at_all) {
    const int rank = world().rank(), bad = world().size() - 1;
    const bool is_bad = rank == bad;
    const auto expect_failure = [](const std::exception_ptr& f, bool is_own) {
        if (is_own) {
            EXPECT_TRUE(is_domain_error(f));
        } else {
            EXPECT_EQ(code_of(f), mpi::errc::failed_elsewhere);
        }
    };
    for (const int value : {-1, 10}) {  // not written, and not read
        picky p{value};
        if (!is_bad) p.value = 1;
        const picky before = p;
        const bool is_written = value > 0;
        // the other processes cannot read what is above 9
        expect_failure(failure_of(mpi::broadcast_object(world(), p, bad)), is_written != is_bad);
        EXPECT_EQ(p.value, before.value);
        std::vector<picky> all;
        expect_failure(failure_of(mpi::all_gather_objects(world(), p, all)), is_written || is_bad);
        EXPECT_TRUE(all.empty());
        expect_failure(failure_of(mpi::gather_objects(world(), p, all, 0)),
                       is_written ? rank == 0 : is_bad);
        EXPECT_TRUE(all.empty());
        std::vector<picky> each(job_size(), picky{1});
        each.front().value = value;
        picky mine{5};
        expect_failure(failure_of(mpi::scatter_objects(world(), each, mine, bad)),
                       is_written ? rank == 0 : is_bad);
        EXPECT_EQ(mine.value, 5);
    }
    picky mine{5};
    const std::vector<picky> one(1);
    const std::error_code error = code_of(failure_of(mpi::scatter_objects(world(), one, mine, 0)));
    EXPECT_EQ(error, rank == 0 ? mpi::errc::invalid_count : mpi::errc::failed_elsewhere);
    // the communicator is usable
    std::string text = rank == 0 ? "after" : "";
    wait_for(mpi::broadcast_object(world(), text, 0));
    EXPECT_EQ(text, "after");
}

std::unique_ptr<tree> grown(std::unique_ptr<tree> t, const std::map<std::string, int>& more) {
    for (const auto& [name, value] : more) t->children.push_back({value, {}});
    return t;
}
picky picky_of(int value) {
    return {value};
}

TEST(mpi_objects, a_remote_call_takes_and_returns_objects) {
    mpi::remote_functions<&grown, &picky_of> calls(world());
    const std::map<std::string, int> more{{"a", 2}, {"b", 3}};
    auto [t] =
        wait_for(mpi::remote<&grown>(calls, next_rank(), std::make_unique<tree>(tree{1, {}}), more))
            .value();
    EXPECT_EQ(*t, (tree{1, {{2, {}}, {3, {}}}}));
    EXPECT_THROW((void)wait_for(mpi::remote<&picky_of>(calls, next_rank(), -1)), mpi::remote_error);
    EXPECT_TRUE(is_domain_error(failure_of(mpi::remote<&picky_of>(calls, next_rank(), 10))));
}

}  // namespace
