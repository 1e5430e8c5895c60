// The memory for encrypted records, which a thread keeps for its next operation.
#include <coppice/io/internal/record_memory.hpp>
#include <coppice/io/secure_engine.hpp>

#include <gtest/gtest.h>

#include <cstring>
#include <thread>
#include <vector>

namespace {

using namespace coppice;
using io::internal::record_memory;

TEST(record_memory, a_thread_takes_again_what_it_gave_last) {
    record_memory first;
    ASSERT_TRUE(first.acquire());
    EXPECT_EQ(first.all().size(), io::secure_engine::room_min);
    std::memset(first.all().data(), 1, first.all().size());
    const std::byte* const place = first.all().data();
    ASSERT_TRUE(first.acquire());
    EXPECT_EQ(first.all().data(), place);
    first.release();
    EXPECT_FALSE(first.is_there());
    EXPECT_TRUE(first.all().empty());
    record_memory second;
    ASSERT_TRUE(second.acquire());
    EXPECT_EQ(second.all().data(), place);
}

TEST(record_memory, any_thread_gives_back_any_number) {
    std::vector<std::byte*> taken;
    for (int i = 0; i != 20; ++i) taken.push_back(io::internal::take_record_memory());
    std::thread giver([&taken] {
        for (std::byte* const memory : taken) io::internal::give_record_memory(memory);
    });
    giver.join();
    record_memory own;
    EXPECT_TRUE(own.acquire());
}

}  // namespace
