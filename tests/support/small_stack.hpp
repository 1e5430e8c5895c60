// Runs a function on a thread whose stack has a known size.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>

#include <pthread.h>
#include <unistd.h>

namespace coppice::test {

// Runs f on a stack of `bytes`, or of the system's minimum if that is more: 16 KiB on x86-64,
// 128 KiB on AArch64. Blocks until f has returned.
template <class F>
void on_a_stack_of(std::size_t bytes, F f) {
    const auto least = static_cast<std::size_t>(std::max(::sysconf(_SC_THREAD_STACK_MIN), 0L));
    pthread_attr_t attributes;
    ASSERT_EQ(pthread_attr_init(&attributes), 0);
    ASSERT_EQ(pthread_attr_setstacksize(&attributes, std::max(bytes, least)), 0);
    pthread_t thread;
    const auto run = [](void* what) -> void* {
        (*static_cast<F*>(what))();
        return nullptr;
    };
    ASSERT_EQ(pthread_create(&thread, &attributes, run, &f), 0);
    ASSERT_EQ(pthread_join(thread, nullptr), 0);
    pthread_attr_destroy(&attributes);
}

}  // namespace coppice::test
