// Messages between two processes of the job.
#include <coppice/execution.hpp>
#include <coppice/mpi/communicator.hpp>
#include <coppice/mpi/error.hpp>
#include <coppice/mpi/message.hpp>
#include <coppice/token.hpp>

#include <gtest/gtest.h>

#include "job.hpp"

#include <mpi.h>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <system_error>
#include <tuple>
#include <vector>

namespace {

namespace ex = coppice::execution;
namespace mpi = coppice::mpi;
using coppice::block;
using mpi_test::next_rank;
using mpi_test::previous_rank;
using mpi_test::wait_for;
using mpi_test::world;

struct particle {
    double position[3];
    std::int32_t id;
};

TEST(mpi_messages, a_ring_passes_structs_and_tells_source_tag_and_count) {
    std::vector<particle> out(3, particle{{1, 2, 3}, world().rank()});
    std::vector<particle> in(5);
    const auto got = wait_for(ex::when_all(mpi::receive(world(), in, {mpi::any_source, 7}),
                                           mpi::send(world(), out, {next_rank(), 7})));
    ASSERT_TRUE(got.has_value());
    const mpi::envelope e = std::get<0>(*got);
    EXPECT_EQ(e.source, previous_rank());
    EXPECT_EQ(e.tag, 7);
    EXPECT_EQ(e.count, 3u);
    EXPECT_EQ(in[2].id, previous_rank());
    EXPECT_EQ(in[2].position[1], 2);
}

TEST(mpi_messages, two_large_messages_cross_in_send_receive) {
    std::vector<double> out(1 << 18, world().rank()), in(1 << 18);
    const mpi::envelope e =
        mpi::send_receive(world(), out, {next_rank()}, in, {previous_rank()}, block);
    EXPECT_EQ(e.count, in.size());
    EXPECT_EQ(in.back(), previous_rank());
}

TEST(mpi_messages, a_message_longer_than_the_memory_is_an_error_of_mpi) {
    std::array<int, 4> out{};
    std::array<int, 2> in{};
    std::error_code error;
    auto sent = mpi::send(world(), out, {next_rank(), 1}, coppice::use_future);
    mpi::receive(world(), in, {previous_rank(), 1}, block[error]);
    sent.get();
    EXPECT_EQ(error, mpi::errc::truncated) << error.message();
    EXPECT_STREQ(error.category().name(), "mpi");
}

TEST(mpi_messages, a_rank_that_is_not_there_is_an_error_and_not_the_end) {
    std::array<int, 1> out{};
    std::error_code error;
    mpi::send(world(), out, {world().size()}, block[error]);
    EXPECT_EQ(error, mpi::errc::invalid_rank) << error.message();
}

TEST(mpi_messages, a_probe_tells_the_size_and_leaves_the_message) {
    const std::vector<std::uint16_t> out(5, static_cast<std::uint16_t>(world().rank()));
    auto sent = mpi::send(world(), out, {next_rank(), 3}, coppice::use_future);
    const mpi::envelope told = mpi::probe<std::uint16_t>(world(), {mpi::any_source, 3}, block);
    EXPECT_EQ(told.count, 5u);
    std::vector<std::uint16_t> in;
    EXPECT_EQ(mpi::receive_all(world(), in, {told.source, 3}, block).count, 5u);
    EXPECT_EQ(in, std::vector<std::uint16_t>(5, static_cast<std::uint16_t>(previous_rank())));
    sent.get();
}

TEST(mpi_messages, a_message_of_no_whole_number_of_objects_is_an_error_and_stays) {
    const std::array<char, 30> out{};
    auto sent = mpi::send(world(), out, {next_rank(), 4}, coppice::use_future);
    const mpi::address from{previous_rank(), 4};
    std::vector<particle> structs;
    std::vector<std::int32_t> numbers;
    std::error_code error;
    mpi::probe<particle>(world(), from, block[error]);
    EXPECT_EQ(error, mpi::errc::partial_object) << error.message();
    mpi::probe<std::int32_t>(world(), from, block[error]);
    EXPECT_EQ(error, mpi::errc::partial_object);
    mpi::receive_all(world(), structs, from, block[error]);
    EXPECT_EQ(error, mpi::errc::partial_object);
    mpi::receive_all(world(), numbers, from, block[error]);
    EXPECT_EQ(error, mpi::errc::partial_object);
    std::vector<char> in;
    EXPECT_EQ(mpi::receive_all(world(), in, from, block).count, 30u);
    sent.get();
}

// The count of such a message would be 0 or too small, and look like that of another message.
template <class Sent, class Object>
void expect_no_whole_number(std::size_t sent, std::size_t room) {
    const std::vector<Sent> out(sent);
    std::vector<Object> in(room);
    const mpi::address to{next_rank(), 5}, from{previous_rank(), 5};
    std::error_code error;
    auto done = mpi::send(world(), out, to, coppice::use_future);
    mpi::receive(world(), in, from, block[error]);
    done.get();
    EXPECT_EQ(error, mpi::errc::partial_object) << error.message();
    mpi::send_receive(world(), out, to, in, from, block[error]);
    EXPECT_EQ(error, mpi::errc::partial_object) << error.message();
}

TEST(mpi_messages, a_message_of_no_whole_number_of_objects_is_an_error_of_the_receive) {
    expect_no_whole_number<char, std::int32_t>(1, 1);
    expect_no_whole_number<char, std::int32_t>(4095, 2000);
    expect_no_whole_number<std::int32_t, double>(3, 10);
    expect_no_whole_number<std::int16_t, particle>(17, 2);
    expect_no_whole_number<char, particle>(100'001, 4000);
    const std::array<double, 2> out{1, 2};  // four of the receiver's objects
    std::vector<std::int32_t> in(5);
    EXPECT_EQ(
        mpi::send_receive(world(), out, {next_rank(), 5}, in, {previous_rank(), 5}, block).count,
        4u);
}

TEST(mpi_messages, a_message_that_mpi_cannot_count_as_a_type_is_too_large_for_it) {
    const mpi::address from{previous_rank(), mpi_test::tag_of_large};
    std::error_code error;
    mpi::probe<char>(world(), from, block[error]);
    EXPECT_EQ(error, std::errc::value_too_large) << error.message();
    std::vector<particle> structs;
    mpi::receive_all(world(), structs, from, block[error]);
    EXPECT_EQ(error, std::errc::value_too_large) << error.message();
    EXPECT_EQ(mpi::probe<std::int32_t>(world(), from, block).count, std::size_t{3} << 28);
}

TEST(mpi_messages, memory_of_a_false_size_is_too_large_and_not_small) {
    particle one{};
    const std::span<const particle> false_size(&one, SIZE_MAX / sizeof(particle) + 2);
    std::error_code error;
    mpi::send(world(), false_size, {next_rank(), 5}, block[error]);
    EXPECT_EQ(error, std::errc::value_too_large) << error.message();
}

// Messages to this rank itself arrive in order.
TEST(mpi_messages, an_exchange_whose_send_is_invalid_takes_no_message) {
    const int self = world().rank();
    std::array<int, 1> one{1}, two{2}, in{};
    auto first = mpi::send(world(), one, {self, 6}, coppice::use_future);
    for (const mpi::address& to :
         {mpi::address{world().size(), 6}, mpi::address{-100, 6}, mpi::address{self, -2}}) {
        std::error_code error, expected;
        mpi::send(world(), one, to, block[expected]);
        mpi::send_receive(world(), one, to, in, {self, 6}, block[error]);
        EXPECT_EQ(error, expected) << error.message();
        EXPECT_EQ(error, to.tag < 0 ? mpi::errc::invalid_tag : mpi::errc::invalid_rank);
    }
    auto second = mpi::send(world(), two, {self, 6}, coppice::use_future);
    mpi::receive(world(), in, {self, 6}, block);
    EXPECT_EQ(in[0], 1);
    mpi::receive(world(), in, {self, 6}, block);
    EXPECT_EQ(in[0], 2);
    first.get();
    second.get();
}

TEST(mpi_messages, beyond_the_edge_of_a_grid_there_is_no_message_and_no_wait) {
    std::array<int, 1> out{1}, in{-1};
    const mpi::address none{MPI_PROC_NULL};
    mpi::send(world(), out, none, block);
    const mpi::envelope received = mpi::receive(world(), in, none, block);
    EXPECT_EQ(received.count, 0u);
    EXPECT_EQ(received.source, MPI_PROC_NULL);
    EXPECT_EQ(received.tag, MPI_ANY_TAG);
    EXPECT_EQ(mpi::send_receive(world(), out, none, in, none, block).source, MPI_PROC_NULL);
    EXPECT_EQ(mpi::probe<int>(world(), none, block).count, 0u);
    std::vector<int> nothing(3);
    EXPECT_EQ(mpi::receive_all(world(), nothing, none, block).count, 0u);
    EXPECT_EQ(in[0], -1);
}

TEST(mpi_messages, a_deadline_ends_a_receive_and_the_next_receive_gets_the_message) {
    std::array<int, 1> out{42}, in{};
    const auto none = wait_for(ex::write_env(
        mpi::receive(world(), in, {previous_rank(), 9}) | ex::then([](mpi::envelope) {}),
        ex::prop(ex::get_deadline, ex::instant(1))));
    EXPECT_FALSE(none.has_value());
    auto sent = mpi::send(world(), out, {next_rank(), 9}, coppice::use_future);
    mpi::receive(world(), in, {previous_rank(), 9}, block);
    sent.get();
    EXPECT_EQ(in[0], 42);
}

}  // namespace
