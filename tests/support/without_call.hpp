// Runs tests of this executable again in a process that may not make a given system call.
#pragma once
// Programs test the system's features at their start or with their first object. So the child sets
// the filter and then executes the program again.

#include "call_filter.hpp"
#include "emulated.hpp"

#include <gtest/gtest.h>

#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <string>
#include <string_view>

namespace coppice::test {

// Returns true if this thread's calls end with `error`.
inline bool call_fails(unsigned call, int error) {
    return ::syscall(call, -1, 0, 0, 0, 0, 0) == -1 && errno == error;
}

// Returns true if the name matches the pattern: * stands for any characters and ? for one.
inline bool matches(std::string_view pattern, std::string_view name) {
    if (pattern.empty()) return name.empty();
    if (pattern[0] == '*') {
        return matches(pattern.substr(1), name) ||
               (!name.empty() && matches(pattern, name.substr(1)));
    }
    return !name.empty() && (pattern[0] == '?' || pattern[0] == name[0]) &&
           matches(pattern.substr(1), name.substr(1));
}

// Returns true if a test of this executable has a name that matches the pattern.
inline bool some_test_matches(std::string_view pattern) {
    const testing::UnitTest& all = *testing::UnitTest::GetInstance();
    for (int s = 0; s < all.total_test_suite_count(); ++s) {
        const testing::TestSuite& suite = *all.GetTestSuite(s);
        for (int t = 0; t < suite.total_test_count(); ++t) {
            const std::string name = std::string(suite.name()) + "." + suite.GetTestInfo(t)->name();
            if (matches(pattern, name)) return true;
        }
    }
    return false;
}

// Expects that each pattern of the filter before its exceptions matches a test. Otherwise a filter
// with an outdated name would pass without running a test.
inline void expect_matches_tests(std::string_view filter) {
    filter = filter.substr(0, filter.find('-'));
    while (!filter.empty()) {
        const std::string_view pattern = filter.substr(0, filter.find(':'));
        EXPECT_TRUE(pattern.empty() || some_test_matches(pattern)) << "no test matches " << pattern;
        filter.remove_prefix(std::min(pattern.size() + 1, filter.size()));
    }
}

// Expects that the tests that match `filter`, in the syntax of --gtest_filter, pass if the call
// fails with `error`, and that each of its patterns matches a test. Skips the calling test if the
// system has no filters.
inline void expect_passes_without(unsigned call, int error, const std::string& filter) {
    if (emulated) GTEST_SKIP() << no_filters_there;
    constexpr const char* mark = "COPPICE_TEST_WITHOUT_CALL";
    ASSERT_EQ(std::getenv(mark), nullptr) << "the filter names the test that started this process";
    expect_matches_tests(filter);
    constexpr int no_filters = 77;
    const std::string argument = "--gtest_filter=" + filter;
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
        if (!filter_calls(call, SECCOMP_RET_ERRNO | static_cast<unsigned>(error))) {
            ::_exit(no_filters);
        }
        if (!call_fails(call, error)) ::_exit(1);
        ::setenv(mark, "1", 1);
        ::execl("/proc/self/exe", "tests", argument.c_str(), "--gtest_brief=1", nullptr);
        ::_exit(1);
    }
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFEXITED(status)) << "ended by signal " << WTERMSIG(status);
    if (WEXITSTATUS(status) == no_filters) GTEST_SKIP() << "the system has no filters";
    EXPECT_EQ(WEXITSTATUS(status), 0) << "without call " << call << ": " << filter;
}

}  // namespace coppice::test
