// Whether this program was built to run under an emulator (qemu-user); for what one lacks or slows.
#pragma once

namespace coppice::test {

#if defined(COPPICE_TEST_EMULATED)
inline constexpr bool emulated = true;
#else
inline constexpr bool emulated = false;
#endif

// Why tests are skipped there.
inline constexpr const char* no_filters_there = "the emulator lets no program filter its calls";
inline constexpr const char* no_threads_there =
    "the emulator aborts when a child starts a thread whose parent had threads as it forked";

// The style of a death test whose child is to start from main(), without the threads of the tests
// before it. No emulated program can execute itself anew: there the child is forked, which does for
// a test that CTest runs in a process of its own.
inline constexpr const char* style_of_new_process = emulated ? "fast" : "threadsafe";

// How often a test repeats what it does: under the emulator a tenth of `rounds`, at least once.
constexpr int repeated(int rounds) {
    return emulated && rounds > 10 ? rounds / 10 : rounds;
}

}  // namespace coppice::test
