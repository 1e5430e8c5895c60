// io/whole_file.hpp, and the operations of io/file.hpp that continue until everything is done.
#include <coppice/io/file.hpp>
#include <coppice/io/whole_file.hpp>
#include <coppice/token/block.hpp>

#include "allocations.hpp"
#include "detached.hpp"
#include "rings.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <thread>
#include <vector>

namespace {

using namespace coppice;
using namespace std::chrono_literals;
namespace fs = std::filesystem;
using coppice::test::bytes_of;
using coppice::test::detached;
using coppice::test::text_of;

// Returns bytes in which no two places look the same.
std::string lot(std::size_t size) {
    std::string text(size, ' ');
    std::uint32_t state = 1;
    for (char& c : text) {
        state = state * 1664525 + 1013904223;
        c = static_cast<char>(state >> 24);
    }
    return text;
}

std::string content(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
}

template <class F>
std::string what_is_thrown(F f) {
    try {
        f();
    } catch (const std::system_error& error) {
        return error.what();
    }
    return "nothing";
}

class whole_file_on : public testing::TestWithParam<io::backend> {
protected:
    whole_file_on() { fs::create_directory(folder); }
    ~whole_file_on() override { fs::remove_all(folder); }
    std::size_t files_there() const {
        return static_cast<std::size_t>(
            std::distance(fs::directory_iterator(folder), fs::directory_iterator()));
    }
    const bool real = GetParam() != io::backend::sim;
    const std::string folder = testing::TempDir() + "coppice_whole_file_" +
                               std::to_string(::getpid()) + "_" + test::ring_name({GetParam(), 0});
    const std::string path = folder + "/x";
    io::context loop{GetParam()};
};
INSTANTIATE_TEST_SUITE_P(rings, whole_file_on, test::all_rings, test::ring_name);

TEST_P(whole_file_on, what_is_written_is_read_back_however_long_it_is) {
    for (const std::size_t size : {0u, 1u, 4095u, 4096u, 4097u, 3u * 1024 * 1024 + 5}) {
        const std::string text = lot(size);
        io::write_file(loop, path, bytes_of(text), block);
        EXPECT_EQ(io::read_file(loop, path, block), text) << size;
        const std::vector<std::byte> same =
            io::read_file<std::vector<std::byte>>(loop, path, block);
        EXPECT_EQ(text_of(same), text) << size;
    }
}

TEST_P(whole_file_on, write_all_and_read_all_continue_until_all_is_done) {
    const std::string text = lot(2u * 1024 * 1024 + 7);
    io::file f(loop, path, io::open_mode::create_only);
    f.write_all(3, bytes_of(text), block);
    EXPECT_EQ(f.size().value(), text.size() + 3);
    EXPECT_EQ(f.read_all({.offset = 3}, block), text);
    EXPECT_EQ(f.read_all(block), std::string(3, '\0') + text);
    std::string part(text.size() - 10, ' ');
    EXPECT_EQ(f.read_all(13, std::as_writable_bytes(std::span(part)), block), part.size());
    EXPECT_EQ(part, text.substr(10));
    EXPECT_EQ(f.read_all(text.size(), std::as_writable_bytes(std::span(part)), block), 3u);
    EXPECT_EQ(f.read_all(0, std::span<std::byte>(), block), 0u);
    f.write_all(0, std::span<const std::byte>(), block);
}

TEST_P(whole_file_on, at_and_beyond_the_end_there_is_nothing_to_read) {
    io::file f(loop, path, io::open_mode::create_only);
    EXPECT_EQ(f.read_all(block), "");
    f.write_all(0, bytes_of("four"), block);
    EXPECT_EQ(f.read_all({.offset = 3}, block), "r");
    EXPECT_EQ(f.read_all({.offset = 4}, block), "");
    EXPECT_EQ(f.read_all({.offset = std::uint64_t{1} << 62}, block), "");
    std::error_code ec;
    EXPECT_EQ(f.read_all({.offset = ~std::uint64_t{0}}, block[ec]), "");
    EXPECT_EQ(ec, std::errc::invalid_argument);
    f.write_all(~std::uint64_t{0}, bytes_of("x"), block[ec]);
    EXPECT_EQ(ec, std::errc::invalid_argument);
    std::byte one{};
    EXPECT_EQ(f.read_all(~std::uint64_t{0}, std::span(&one, 1), block[ec]), 0u);
    EXPECT_EQ(ec, std::errc::invalid_argument);
    EXPECT_EQ(f.size().value(), 4u);
}

TEST_P(whole_file_on, a_file_of_more_than_size_max_is_too_large) {
    io::write_file(loop, path, bytes_of(lot(10'000)), block);
    std::error_code ec;
    for (const std::size_t max : {0u, 1u, 4096u, 9'999u}) {
        EXPECT_EQ(io::read_file(loop, path, {.size_max = max}, block[ec]), "");
        EXPECT_EQ(ec, std::errc::file_too_large) << max;
    }
    for (const std::size_t max : {std::size_t{10'000}, std::size_t{10'001}, SIZE_MAX}) {
        EXPECT_EQ(io::read_file(loop, path, {.size_max = max}, block[ec]).size(), 10'000u);
        EXPECT_FALSE(ec) << max;
    }
    EXPECT_EQ(io::read_file(loop, path, {.offset = 9'000, .size_max = 1'000}, block).size(),
              1'000u);
    EXPECT_EQ(io::read_file(loop, path, {.offset = 10'000, .size_max = 0}, block), "");
}

TEST_P(whole_file_on, files_that_report_no_size_or_have_no_end_are_read_too) {
    if (!real) GTEST_SKIP() << "the simulation has no such files";
    EXPECT_EQ(io::read_file(loop, "/proc/version", block), content("/proc/version"));
    EXPECT_GT(io::read_file(loop, "/proc/self/maps", block).size(), 4096u);
    EXPECT_EQ(io::read_file(loop, "/dev/null", block), "");
    std::error_code ec;
    (void)io::read_file(loop, "/dev/zero", {.size_max = 100'000}, block[ec]);
    EXPECT_EQ(ec, std::errc::file_too_large);
    std::string zeros(70'000, 'x');
    io::file endless(loop, "/dev/zero", io::open_mode::read_only);
    EXPECT_EQ(endless.read_all(0, std::as_writable_bytes(std::span(zeros)), block), zeros.size());
    EXPECT_EQ(zeros, std::string(zeros.size(), '\0'));
}

TEST_P(whole_file_on, a_path_that_is_no_regular_file_is_an_error_and_blocks_nothing) {
    if (!real) GTEST_SKIP() << "the simulation has regular files alone";
    const std::string pipe = folder + "/pipe";
    ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
    std::error_code ec;
    (void)io::read_file(loop, pipe, block[ec]);
    EXPECT_EQ(ec, std::errc::invalid_seek);
    EXPECT_THROW(io::file(loop, pipe, io::open_mode::read_only), std::system_error);
    (void)io::read_file(loop, folder, block[ec]);
    EXPECT_EQ(ec, std::errc::is_a_directory);
    for (const std::string& to : {pipe, folder, folder + "/", std::string("/dev/null")}) {
        io::write_file(loop, to, bytes_of("x"), block[ec]);
        EXPECT_TRUE(ec) << to;
    }
    EXPECT_TRUE(fs::is_fifo(pipe));
    EXPECT_TRUE(fs::is_character_file("/dev/null"));
    EXPECT_EQ(files_there(), 1u);
}

TEST_P(whole_file_on, bad_names_are_errors_and_leave_nothing_behind) {
    std::error_code ec;
    using namespace std::string_literals;
    for (const std::string& name :
         {""s, folder + "/none/x", folder + "/a\0b"s, folder + "/" + std::string(300, 'n')}) {
        (void)io::read_file(loop, name, block[ec]);
        EXPECT_TRUE(ec) << name;
        // in a simulation any name is a good one
        if (!real && name.find('\0') == name.npos) continue;
        io::write_file(loop, name, bytes_of("x"), block[ec]);
        EXPECT_TRUE(ec) << name;
    }
    EXPECT_EQ(files_there(), 0u);
}

TEST_P(whole_file_on, a_written_file_replaces_the_old_one_and_open_files_keep_theirs) {
    io::write_file(loop, path, bytes_of("old"), {.permissions = 0600}, block);
    io::file old(loop, path, io::open_mode::read_only);
    io::write_file(loop, path, bytes_of("new"), {.sync = true, .permissions = 0640}, block);
    EXPECT_EQ(old.read_all(block), "old");
    EXPECT_EQ(io::read_file(loop, path, block), "new");
    if (!real) return;
    struct stat about{};
    ASSERT_EQ(::stat(path.c_str(), &about), 0);
    EXPECT_EQ(about.st_mode & 0777, 0640u & ~(::umask(::umask(0)) & 0777u));
    EXPECT_EQ(files_there(), 1u);
}

TEST_P(whole_file_on, many_writers_of_one_name_leave_what_one_of_them_wrote) {
    int ended = 0;
    std::vector<std::string> texts;
    for (char c = 'a'; c != 'u'; ++c) texts.emplace_back(50'000, c);
    for (const std::string& text : texts) {
        io::write_file(loop, path, bytes_of(text), [&](std::error_code ec) {
            EXPECT_FALSE(ec);
            ++ended;
        });
    }
    loop.run();
    EXPECT_EQ(ended, 20);
    const std::string left = io::read_file(loop, path, block);
    EXPECT_NE(std::find(texts.begin(), texts.end(), left), texts.end());
    if (real) {
        EXPECT_EQ(files_there(), 1u);
    }
}

TEST_P(whole_file_on, a_read_of_a_closed_file_does_not_read_the_file_in_its_slot) {
    const std::string other = folder + "/y";
    io::write_file(loop, path, bytes_of("four"), block);
    io::write_file(loop, other, bytes_of("much more"), block);
    std::error_code ec;
    io::file f(loop, path, io::open_mode::read_only);
    f.read_all({.size_max = 4}, [&](std::error_code e, const std::string&) { ec = e; });
    f.close();
    const io::file next(loop, other, io::open_mode::read_only);
    loop.run();
    EXPECT_EQ(ec, std::errc::operation_canceled);
}

TEST_P(whole_file_on, a_write_for_which_there_is_no_memory_leaves_nothing_behind) {
    if (!real) GTEST_SKIP() << "a simulation does not go on without memory";
    bool all_work = false;
    for (std::size_t n = 1; !all_work; ++n) {
        io::context fresh(GetParam());
        std::error_code ec;
        if (!test::fail_allocation(n)) GTEST_SKIP() << "a sanitizer owns operator new";
        std::thread([&] { io::write_file(fresh, path, bytes_of("x"), block[ec]); }).join();
        all_work = !test::allocation_has_failed();
        if (!all_work && ec) {
            EXPECT_EQ(ec, std::errc::not_enough_memory) << n;
            EXPECT_EQ(files_there(), 0u) << n;
        }
        fs::remove(path);
    }
}

TEST_P(whole_file_on, errors_name_the_operation_and_the_path) {
    const std::string none = folder + "/none/x";
    const std::string why = ": No such file or directory";
    if (real) {
        EXPECT_EQ(what_is_thrown([&] { io::file(loop, none, io::open_mode::create); }),
                  "open " + none + why);
        EXPECT_EQ(what_is_thrown([&] { io::write_file(loop, none, {}, block); }),
                  "write_file " + none + why);
    }
    EXPECT_EQ(what_is_thrown([&] { (void)io::read_file(loop, none, block); }),
              "read_file " + none + why);
    EXPECT_EQ(what_is_thrown([&] {
                  auto future = io::read_file(loop, none, use_future);
                  loop.run();
                  (void)future.get();
              }),
              "read_file " + none + why);
    io::file f(loop, path, io::open_mode::create);
    const std::string bad_offset = path + ": Invalid argument";
    constexpr std::uint64_t beyond = ~std::uint64_t{0};
    std::byte one{};
    const std::span<std::byte> some(&one, 1);
    EXPECT_EQ(what_is_thrown([&] { (void)f.read_at(beyond, some, block); }),
              "read_at " + bad_offset);
    EXPECT_EQ(what_is_thrown([&] { (void)f.write_at(beyond, some, block); }),
              "write_at " + bad_offset);
    EXPECT_EQ(what_is_thrown([&] { f.write_all(beyond, some, block); }), "write_all " + bad_offset);
    EXPECT_EQ(what_is_thrown([&] { (void)f.read_all(beyond, some, block); }),
              "read_all " + bad_offset);
    EXPECT_EQ(what_is_thrown([&] { (void)f.read_all({.offset = beyond}, block); }),
              "read_all " + bad_offset);
    std::string awaited;
    auto wait = [&]() -> detached {
        try {
            co_await f.write_all(beyond, some);
        } catch (const std::system_error& error) {
            awaited = error.what();
        }
    };
    wait();
    loop.run();
    EXPECT_EQ(awaited, "write_all " + bad_offset);
    f.close();
    EXPECT_EQ(what_is_thrown([&] { (void)f.read_all(block); }), "read_all: Bad file descriptor");
}

}  // namespace
