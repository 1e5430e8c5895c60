// What io allocates: whole files and connects by text when memory runs out, and copies, which
// allocate nothing.
#include <coppice/io/copy.hpp>
#include <coppice/io/file.hpp>
#include <coppice/io/tcp.hpp>
#include <coppice/io/whole_file.hpp>
#include <coppice/token/block.hpp>

#include "allocations.hpp"
#include "rings.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <new>
#include <span>
#include <string>
#include <system_error>
#include <thread>

namespace {

using namespace coppice;
using coppice::test::bytes_of;

class io_memory_on : public testing::TestWithParam<io::backend> {
protected:
    ~io_memory_on() override { std::remove(path.c_str()); }
    // Calls `act` on another thread, again and again, each time with the next allocation failing,
    // until no allocation fails. Returns how often one failed. `act` must succeed or fail for lack
    // of memory.
    int fail_each_allocation(const std::function<std::error_code()>& act) {
        int failures = 0;
        for (std::size_t n = 1;; ++n) {
            if (!test::fail_allocation(n)) {  // a sanitizer has its own operator new
                EXPECT_FALSE(act());
                return 1;
            }
            std::error_code error;
            std::thread([&] {
                try {
                    error = act();
                } catch (const std::bad_alloc&) {
                    error = std::make_error_code(std::errc::not_enough_memory);
                } catch (const std::system_error& e) {
                    error = e.code();
                }
            }).join();
            const bool failed = test::allocation_has_failed();
            if (error) {
                EXPECT_TRUE(failed);
                EXPECT_TRUE(error == std::errc::not_enough_memory ||
                            error == std::errc::resource_unavailable_try_again)
                    << error.message();
                ++failures;
            }
            if (!failed) return failures;
        }
    }
    const std::string path = testing::TempDir() + "coppice_io_memory_test_" +
                             std::to_string(::getpid()) + "_" + test::ring_name({GetParam(), 0});
    io::context loop{GetParam()};
};
INSTANTIATE_TEST_SUITE_P(rings, io_memory_on, test::real_rings, test::ring_name);

TEST_P(io_memory_on, whole_files_fail_without_memory_and_leave_the_file_whole) {
    const std::string old_text(10'000, 'o'), new_text(20'000, 'n');
    std::error_code ec;
    io::write_file(loop, path, bytes_of(old_text), block);
    const int files = test::open_files();
    EXPECT_GT(fail_each_allocation([&] {
                  const std::string read = io::read_file(loop, path, block[ec]);
                  EXPECT_TRUE(ec || read == old_text);
                  return ec;
              }),
              0);
    EXPECT_GT(fail_each_allocation([&] {
                  io::file f(loop, path, io::open_mode::read_only);
                  const std::string read = f.read_all(block[ec]);
                  EXPECT_TRUE(ec || read == old_text);
                  return ec;
              }),
              0);
    EXPECT_GT(fail_each_allocation([&] {
                  io::write_file(loop, path, bytes_of(new_text), {.sync = true}, block[ec]);
                  return ec;
              }),
              0);
    EXPECT_EQ(io::read_file(loop, path, block), new_text);
    EXPECT_EQ(test::open_files(), files);
}

TEST_P(io_memory_on, a_connect_by_text_fails_without_memory_and_leaves_nothing_open) {
    const io::tcp::acceptor acceptor = io::tcp::listen(loop, "127.0.0.1:0");
    const std::string to = acceptor.local().to_string();
    const int files = test::open_files();
    std::error_code ec;
    EXPECT_GT(fail_each_allocation([&] {
                  (void)io::tcp::connect(loop, to, block[ec]);
                  return ec;
              }),
              0);
    EXPECT_EQ(test::open_files(), files);
}

TEST_P(io_memory_on, a_copy_allocates_nothing_once_its_loop_has_buffers) {
    io::tcp::acceptor acceptor = io::tcp::listen(loop, "127.0.0.1:0");
    io::tcp::socket near = io::tcp::connect(loop, acceptor.local().to_string(), block);
    io::tcp::socket far = acceptor.accept(block);
    std::array<std::byte, 64> memory{};
    const auto talk = [&] {
        near.send_all(memory, block);
        for (std::size_t left = memory.size(); left != 0;) {
            left -= near.receive(std::span(memory).first(left), block);
        }
    };
    std::uint64_t count = 0;
    io::copy(far, far, [&](std::error_code, std::uint64_t n) { count = n; });
    talk();
    const test::allocation_count allocated;
    for (int i = 0; i != 100; ++i) talk();
    EXPECT_EQ(allocated.so_far(), 0u);
    near.shutdown_send();
    loop.run();
    EXPECT_EQ(count, 101 * memory.size());
}

}  // namespace
