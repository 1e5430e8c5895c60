// base/internal/memory_limit.hpp: reads the machine's files in a folder that stands for the
// machine.
#include <coppice/base/internal/memory_limit.hpp>

#include <gtest/gtest.h>

#include <sys/resource.h>
#include <unistd.h>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>

namespace {

using coppice::internal::memory_limit;

// A folder with the files of a machine; removed at the end of the test.
class machine {
public:
    machine() {
        std::string name = (std::filesystem::temp_directory_path() / "memory-XXXXXX").string();
        if (::mkdtemp(name.data()) == nullptr) ADD_FAILURE() << "no folder: " << name;
        root_ = name;
    }
    machine(const machine&) = delete;
    ~machine() { std::filesystem::remove_all(root_); }

    machine& with(const std::string& path, const std::string& text) {
        const std::filesystem::path file = root_ + path;
        std::filesystem::create_directories(file.parent_path());
        std::ofstream(file) << text;
        return *this;
    }
    std::uint64_t limit() const { return memory_limit(root_); }

private:
    std::string root_;
};

TEST(memory_limit, is_unknown_on_a_machine_without_files) {
    EXPECT_EQ(machine().limit(), UINT64_MAX);
}

TEST(memory_limit, is_the_machines_memory_without_groups) {
    machine m;
    m.with("/proc/meminfo", "MemFree:  1 kB\nMemTotal:       2048 kB\n");
    EXPECT_EQ(m.limit(), 2048u * 1024);
}

TEST(memory_limit, of_version_2_is_the_smallest_of_the_group_and_its_ancestors) {
    machine m;
    m.with("/proc/meminfo", "MemTotal: 9999999 kB\n").with("/proc/self/cgroup", "0::/a/b/c\n");
    EXPECT_EQ(m.limit(), 9'999'999ull * 1024);
    m.with("/sys/fs/cgroup/a/b/c/memory.max", "max\n");
    EXPECT_EQ(m.limit(), 9'999'999ull * 1024);
    m.with("/sys/fs/cgroup/a/b/c/memory.max", "5000\n");
    EXPECT_EQ(m.limit(), 5000u);
    m.with("/sys/fs/cgroup/a/memory.max", "4000\n");
    EXPECT_EQ(m.limit(), 4000u);
    m.with("/sys/fs/cgroup/memory.max", "3000\n");
    EXPECT_EQ(m.limit(), 3000u);
}

TEST(memory_limit, of_version_1_is_that_of_the_memory_controller) {
    machine m;
    m.with("/proc/meminfo", "MemTotal: 100 kB\n")
        .with("/proc/self/cgroup", "5:cpu,cpuacct:/x\n4:memory:/docker/1\n0::/\n")
        .with("/sys/fs/cgroup/memory/docker/1/memory.limit_in_bytes", "70000\n")
        .with("/sys/fs/cgroup/memory/x/memory.limit_in_bytes", "1\n");
    EXPECT_EQ(m.limit(), 70'000u);
}

TEST(memory_limit, ignores_malformed_files) {
    machine m;
    m.with("/proc/meminfo", "MemTotal: none\n").with("/proc/self/cgroup", "\n:\nno group\n0::\n");
    EXPECT_EQ(m.limit(), UINT64_MAX);
    m.with("/proc/meminfo", "MemTotal: 18446744073709551615 kB\n");
    EXPECT_EQ(m.limit(), UINT64_MAX);
    m.with("/sys/fs/cgroup/memory.max", "99999999999999999999999\n");
    EXPECT_EQ(m.limit(), UINT64_MAX);
}

TEST(memory_limit, of_this_machine_is_within_the_address_space) {
    EXPECT_GT(memory_limit(), 1u << 20);
    rlimit space{};
    ASSERT_EQ(::getrlimit(RLIMIT_AS, &space), 0);
    if (space.rlim_cur != RLIM_INFINITY) EXPECT_LE(memory_limit(), space.rlim_cur);
}

}  // namespace
