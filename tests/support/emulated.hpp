// For tests in a program built for an emulator (qemu-user), which is slow and lacks features.
#pragma once

namespace coppice::test {

#if defined(COPPICE_TEST_EMULATED)
inline constexpr bool emulated = true;
#else
inline constexpr bool emulated = false;
#endif

// The reason why tests are skipped there.
inline constexpr const char* no_filters_there = "the emulator lets no program filter its calls";
inline constexpr const char* no_threads_there =
    "the emulator aborts when a child starts a thread whose parent had threads as it forked";

// The style of a death test whose child must start from main(), without the threads of the tests
// before it. An emulated program cannot execute itself again, so its child is forked. That suffices
// for a test that CTest runs in a process of its own.
inline constexpr const char* style_of_new_process = emulated ? "fast" : "threadsafe";

// Returns how often a test repeats its work: a tenth of `rounds` when emulated, at least once.
constexpr int repeated(int rounds) {
    return emulated && rounds > 10 ? rounds / 10 : rounds;
}

}  // namespace coppice::test
