// No path leads out of a root: one table of hostile paths, with openat2 and without it.
#include <coppice/base/internal/atomic.hpp>
#include <coppice/http/files.hpp>

#include "file_root.hpp"
#include "without_call.hpp"

#include <gtest/gtest.h>

#include <sys/socket.h>
#include <sys/sysmacros.h>
#include <sys/un.h>
#include <sys/wait.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <string>
#include <thread>

namespace {

using namespace coppice;
using namespace coppice::internal;
using namespace coppice::test;
namespace fs = std::filesystem;

class hostile_path : public testing::Test {
protected:
    void SetUp() override {
        root.write("a.txt", "inside");
        root.write("sub/b.txt", "inside");
        root.write("...", "inside");
        fs::create_symlink(root.base / "secret", root.path / "out");
        fs::create_symlink("../secret", root.path / "out_relative");
        fs::create_symlink("..", root.path / "up");
        fs::create_symlink("/", root.path / "top");
        fs::create_symlink("/proc/self/root", root.path / "magic");
        fs::create_symlink("loop", root.path / "loop");
        fs::create_symlink("a.txt", root.path / "in");
        fs::create_symlink("sub", root.path / "in_directory");
        fs::create_symlink("sub/../a.txt", root.path / "in_and_out_and_in");
    }
    // Each is refused, without a byte of the secret.
    void expect_hidden(const http::files& files, const std::string& path) const {
        const http::response answer = ask(files, path);
        EXPECT_TRUE(answer.status() == 404 || answer.status() == 400)
            << path.substr(0, 80) << ": " << answer.status();
        EXPECT_EQ(answer.body().find("secret"), std::string_view::npos) << path.substr(0, 80);
        EXPECT_EQ(answer.body().find("root:"), std::string_view::npos) << path.substr(0, 80);
    }
    http::files files_of(bool hidden) const {
        http::files_options options;
        options.hidden = hidden;
        return http::files(root.path.string(), options);
    }
    file_root root;
};

TEST_F(hostile_path, no_spelling_leads_out) {
    const std::string long_name(5000, 'x');
    for (const bool hidden : {false, true}) {
        const http::files files = files_of(hidden);
        EXPECT_EQ(ask(files, "a.txt").body(), "inside");
        EXPECT_EQ(ask(files, "sub/b.txt").body(), "inside");
        EXPECT_EQ(ask(files, "sub//b.txt").body(), "inside");
        for (const std::string& path : {std::string("../secret"),
                                        std::string("%2e%2e/secret"),
                                        std::string("%2E%2e%2fsecret"),
                                        std::string("..%2fsecret"),
                                        std::string(".%2e/secret"),
                                        std::string("%252e%252e/secret"),
                                        std::string("%252e%252e%252fsecret"),
                                        std::string("..%5csecret"),
                                        std::string("sub/../../secret"),
                                        std::string("sub/..%2f..%2fsecret"),
                                        std::string("sub/../a.txt"),
                                        std::string("./../secret"),
                                        std::string("a.txt/../../secret"),
                                        std::string("nothing/../../secret"),
                                        std::string("/etc/passwd"),
                                        std::string("%2fetc%2fpasswd"),
                                        std::string("//etc/passwd"),
                                        std::string(".."),
                                        std::string("../"),
                                        std::string("../public/a.txt"),
                                        std::string("..;/secret"),
                                        std::string(".../../../secret"),
                                        std::string("%c0%ae%c0%ae/secret"),
                                        std::string("sub"),
                                        std::string("sub/"),
                                        std::string("sub/."),
                                        std::string("."),
                                        std::string(""),
                                        std::string("a.txt/"),
                                        std::string("a.txt/."),
                                        std::string("a.txt%00"),
                                        std::string("a.txt%00.html"),
                                        std::string("%00"),
                                        std::string("..%00/secret"),
                                        std::string("nothing"),
                                        std::string("nothing/nothing"),
                                        std::string(255, 'x'),
                                        std::string(256, 'x'),
                                        std::string(4095, 'x'),
                                        std::string(4096, 'x'),
                                        long_name,
                                        long_name + "/a.txt",
                                        std::string("sub/") + long_name}) {
            expect_hidden(files, path);
        }
        // Longer than any path that the system permits; each part is short.
        std::string deep;
        for (int i = 0; i != 3000; ++i) deep += "s/";
        expect_hidden(files, deep + "a.txt");
    }
    EXPECT_EQ(ask(files_of(true), "...").body(), "inside");
    EXPECT_EQ(ask(files_of(true), "./sub/./b.txt").body(), "inside");
}

TEST_F(hostile_path, no_link_leads_out) {
    for (const bool hidden : {false, true}) {
        const http::files files = files_of(hidden);
        for (const char* const path :
             {"out", "out_relative", "up", "up/secret", "up/public/a.txt", "top/etc/passwd",
              "magic/etc/passwd", "loop", "loop/a.txt", "in/", "in_directory",
              "in_directory/up/secret", "sub/up/secret", "in_directory/../../secret"}) {
            expect_hidden(files, path);
        }
        // Links that stay inside are served if the kernel resolves them, and refused otherwise.
        const int inside = files.follows_links() ? 200 : 404;
        EXPECT_EQ(ask(files, "in").status(), inside);
        EXPECT_EQ(ask(files, "in_directory/b.txt").status(), inside);
        EXPECT_EQ(ask(files, "in_and_out_and_in").status(), inside);
    }
}

TEST_F(hostile_path, what_is_not_a_regular_file_is_404_and_blocks_no_thread) {
    ASSERT_EQ(::mkfifo((root.path / "fifo").c_str(), 0600), 0);
    const int listener = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ASSERT_GE(listener, 0);
    sockaddr_un name{};
    name.sun_family = AF_UNIX;
    const std::string socket_path = (root.path / "socket").string();
    ASSERT_LT(socket_path.size(), sizeof name.sun_path);
    std::memcpy(name.sun_path, socket_path.c_str(), socket_path.size() + 1);
    ASSERT_EQ(::bind(listener, reinterpret_cast<sockaddr*>(&name), sizeof name), 0);
    const http::files files = files_of(false);
    expect_hidden(files, "fifo");
    expect_hidden(files, "socket");
    if (::mknod((root.path / "device").c_str(), S_IFCHR | 0600, ::makedev(1, 5)) == 0) {
        expect_hidden(files, "device");  // of endless zeros
    }
    ::close(listener);
}

// Exchanges the names of two files, again and again, until it is destroyed.
class swapper {
public:
    swapper(fs::path one, fs::path other)
        : thread_([this, one = std::move(one), other = std::move(other)] {
              const fs::path between = one.string() + ".between";
              while (!ended_.load(relaxed)) {
                  fs::rename(one, between);
                  fs::rename(other, one);
                  fs::rename(between, other);
                  swaps_.fetch_add(1, relaxed);
              }
          }) {}
    ~swapper() {
        ended_.store(true, relaxed);
        thread_.join();
    }
    int swaps() const { return swaps_.load(relaxed); }

private:
    atomic<bool> ended_{false};  // relaxed: joined afterwards
    atomic<int> swaps_{0};       // relaxed: a count
    std::thread thread_;
};

TEST_F(hostile_path, a_link_that_replaces_a_directory_meanwhile_leads_nowhere) {
    root.write("../outside/f", "secret");
    root.write("x/f", "inside");
    fs::create_directory_symlink(root.base / "outside", root.path / "y");
    const http::files files = files_of(false);
    const swapper swapping(root.path / "x", root.path / "y");
    for (int i = 0; i < 2000 || (swapping.swaps() < 100 && i < 50'000); ++i) {
        const http::response answer = ask(files, i % 2 == 0 ? "x/f" : "y/f");
        ASSERT_TRUE(answer.status() == 404 || answer.body() == "inside") << answer.body();
    }
}

TEST_F(hostile_path, a_link_that_replaces_a_file_meanwhile_leads_nowhere) {
    root.write("x", "inside");
    fs::create_symlink(root.base / "secret", root.path / "y");
    const http::files files = files_of(false);
    const swapper swapping(root.path / "x", root.path / "y");
    for (int i = 0; i < 2000 || (swapping.swaps() < 100 && i < 50'000); ++i) {
        const http::response answer = ask(files, i % 2 == 0 ? "x" : "y");
        ASSERT_TRUE(answer.status() == 404 || answer.body() == "inside") << answer.body();
    }
}

// Repeats the tests where the kernel does not resolve paths for the server.
TEST(files_without_openat2, refuse_the_same_paths_on_an_old_kernel) {
    expect_passes_without(SYS_openat2, ENOSYS, "hostile_path.*:file_options.*:gzip_siblings.*");
}
TEST(files_without_openat2, refuse_the_same_paths_in_a_sandbox) {
    expect_passes_without(SYS_openat2, EPERM, "hostile_path.*:file_options.*:gzip_siblings.*");
}
TEST(files_without_openat2, serve_as_with_openat2) {
    expect_passes_without(SYS_openat2, EPERM,
                          "ways/files_on.*/epoll_single:ways/files_on.*/uring_multi");
}

// What a child process found: 0 means success.
template <class F>
int outcome_in_child(F f) {
    const pid_t child = ::fork();
    if (child == 0) ::_exit(f());
    int status = 0;
    EXPECT_EQ(::waitpid(child, &status, 0), child);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

TEST(files_without_openat2, continue_to_serve_in_a_sandbox_that_is_entered_later) {
    constexpr int no_filters = 77;
    file_root root;
    root.write("a.txt", "inside");
    std::filesystem::create_symlink(root.base / "secret", root.path / "out");
    const http::files files(root.path.string());
    const int outcome = outcome_in_child([&] {
        if (!filter_calls(SYS_openat2, SECCOMP_RET_ERRNO | EPERM)) return no_filters;
        if (ask(files, "a.txt").body() != "inside") return 1;
        return ask(files, "out").status() == 404 ? 0 : 2;
    });
    if (outcome == no_filters) GTEST_SKIP() << "the system has no filters";
    EXPECT_EQ(outcome, 0);
}

TEST(files_without_openat2, report_that_they_follow_no_links) {
    constexpr int no_filters = 77;
    file_root root;
    const int outcome = outcome_in_child([&] {
        if (!filter_calls(SYS_openat2, SECCOMP_RET_ERRNO | ENOSYS)) return no_filters;
        return http::files(root.path.string()).follows_links() ? 1 : 0;
    });
    if (outcome == no_filters) GTEST_SKIP() << "the system has no filters";
    EXPECT_EQ(outcome, 0);
}

}  // namespace
