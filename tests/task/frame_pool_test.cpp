// task/internal/frame_pool.hpp: reuse, alignment, bounds, other threads, and the end of a thread.
#include <coppice/task/internal/frame_pool.hpp>

#include "allocations.hpp"
#include "sanitizers.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <set>
#include <thread>
#include <vector>

namespace {

using coppice::internal::frame_pool;

bool is_aligned(const void* frame) {
    return reinterpret_cast<std::uintptr_t>(frame) % frame_pool::class_bytes == 0;
}

TEST(frame_pool, reuses_the_frame_of_a_class_that_was_freed_last) {
    void* const small = frame_pool::allocate(100);
    void* const other = frame_pool::allocate(128);
    void* const large = frame_pool::allocate(129);
    EXPECT_TRUE(is_aligned(small) && is_aligned(other) && is_aligned(large));
    frame_pool::deallocate(small, 100);
    frame_pool::deallocate(large, 129);
    frame_pool::deallocate(other, 128);
    EXPECT_EQ(frame_pool::allocate(65), other);
    EXPECT_EQ(frame_pool::allocate(128), small);
    EXPECT_EQ(frame_pool::allocate(192), large);
    frame_pool::deallocate(other, 65);
    frame_pool::deallocate(small, 128);
    frame_pool::deallocate(large, 192);
}

TEST(frame_pool, an_allocation_of_any_size_has_that_many_bytes) {
    for (std::size_t bytes = 1; bytes <= frame_pool::pooled_bytes_max + 200; bytes += 37) {
        for (int round = 0; round != 2; ++round) {
            void* const frame = frame_pool::allocate(bytes);
            EXPECT_TRUE(is_aligned(frame));
            std::memset(frame, 0xee, bytes);
            frame_pool::deallocate(frame, bytes);
        }
    }
}

TEST(frame_pool, keeps_a_bounded_number_of_frames_and_frees_the_rest) {
    static constexpr std::size_t many = frame_pool::frames_per_class_max + 50;
    std::thread([] {
        std::vector<void*> frames(many);
        for (void*& frame : frames) frame = frame_pool::allocate(64);
        EXPECT_EQ(std::set<void*>(frames.begin(), frames.end()).size(), frames.size());
        const std::size_t live = coppice::test::live_allocations();
        for (void* frame : frames) frame_pool::deallocate(frame, 64);
        // What the sanitizers allocate for a thread's end is counted too.
        const std::size_t kept = live - coppice::test::live_allocations();
        if (!coppice::test::sanitized) {
            EXPECT_EQ(kept, 50u - 1u);  // 1 is the stack
        }
        coppice::test::allocation_count allocations;
        for (std::size_t i = 0; i != frame_pool::frames_per_class_max; ++i) {
            frames[i] = frame_pool::allocate(64);
        }
        EXPECT_EQ(allocations.so_far(), 0u);
        frames[many - 1] = frame_pool::allocate(64);
        EXPECT_EQ(allocations.so_far(), 1u);
        for (std::size_t i = 0; i != frame_pool::frames_per_class_max; ++i) {
            frame_pool::deallocate(frames[i], 64);
        }
        frame_pool::deallocate(frames[many - 1], 64);
    }).join();
}

// Constructed before the thread pools its first frame, so destroyed after the thread's pool.
struct frees_last {
    ~frees_last() {
        frame_pool::deallocate(frame, 64);
        frame_pool::deallocate(frame_pool::allocate(64), 64);
    }
    void* frame = nullptr;
};

TEST(frame_pool, the_end_of_a_thread_frees_all_of_its_frames) {
    const auto run = [] {
        std::thread([] {
            static thread_local frees_last last;
            last.frame = frame_pool::allocate(64);
            for (const std::size_t bytes : {64u, 100u, 1000u, 2048u}) {
                void* const one = frame_pool::allocate(bytes);
                void* const two = frame_pool::allocate(bytes);
                frame_pool::deallocate(one, bytes);
                frame_pool::deallocate(two, bytes);
            }
        }).join();
    };
    run();  // what the first thread allocates for itself stays allocated
    const std::size_t live = coppice::test::live_allocations();
    run();
    if (!coppice::test::sanitized) {
        EXPECT_EQ(coppice::test::live_allocations(), live);
    }
}

TEST(frame_pool, a_frame_stays_with_the_thread_that_freed_it) {
    void* const frame = frame_pool::allocate(700);
    std::thread([&] {
        frame_pool::deallocate(frame, 700);
        EXPECT_EQ(frame_pool::allocate(700), frame);
        frame_pool::deallocate(frame, 700);
    }).join();
}

}  // namespace
