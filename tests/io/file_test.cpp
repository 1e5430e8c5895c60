// io/file.hpp on every ring, and the workers that perform its calls where the ring has no files.
#include <coppice/io/file.hpp>
#include <coppice/io/timer.hpp>

#include "detached.hpp"
#include "outcome.hpp"
#include "rings.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <cstdint>
#include <cstdio>
#include <limits>
#include <optional>
#include <string>
#include <vector>

namespace {

using namespace coppice;
using namespace std::chrono_literals;
namespace ex = coppice::execution;
using coppice::test::bytes_of;
using coppice::test::detached;
using coppice::test::outcome;
using coppice::test::outcome_receiver;
using coppice::test::text_of;

class file_on : public testing::TestWithParam<io::backend> {
protected:
    ~file_on() override { std::remove(path.c_str()); }
    const std::string path = testing::TempDir() + "coppice_file_test_" +
                             std::to_string(::getpid()) + "_" + test::ring_name({GetParam(), 0});
    io::context loop{GetParam()};
};
INSTANTIATE_TEST_SUITE_P(rings, file_on, test::all_rings, test::ring_name);

detached write_all(io::file& f, std::uint64_t offset, std::string text) {
    for (std::size_t done = 0; done != text.size();) {
        done += co_await f.write_at(offset + done, bytes_of(text).subspan(done));
    }
}
detached read_all(io::file& f, std::uint64_t offset, std::string& into) {
    for (std::size_t done = 0; done != into.size();) {
        const std::size_t n = co_await f.read_at(
            offset + done, std::as_writable_bytes(std::span(into)).subspan(done));
        if (n == 0) into.resize(done);
        done += n;
    }
}

TEST_P(file_on, what_is_written_at_an_offset_is_read_there) {
    io::file f(loop, path, io::open_mode::create_only);
    // Several writes at once, not in order of their offsets.
    write_all(f, 6, "world");
    write_all(f, 0, "hello ");
    loop.run();
    EXPECT_EQ(f.size().value(), 11u);
    std::string whole(100, ' '), part(3, ' ');
    read_all(f, 0, whole);
    read_all(f, 6, part);
    bool synced = false;
    auto sync = [&]() -> detached {
        co_await f.sync();
        synced = true;
    };
    sync();
    loop.run();
    EXPECT_EQ(whole, "hello world");
    EXPECT_EQ(part, "wor");
    EXPECT_TRUE(synced);
    EXPECT_FALSE(f.resize(5));
    EXPECT_EQ(f.size().value(), 5u);
}

TEST_P(file_on, opening_fails_as_its_mode_says) {
    EXPECT_THROW(io::file(loop, path, io::open_mode::read_only), std::system_error);
    EXPECT_THROW(io::file(loop, path, io::open_mode::read_write), std::system_error);
    {
        io::file made(loop, path, io::open_mode::create);
        write_all(made, 0, "x");
        loop.run();
    }
    EXPECT_THROW(io::file(loop, path, io::open_mode::create_only), std::system_error);
    EXPECT_EQ(io::file(loop, path, io::open_mode::read_only).size().value(), 1u);
    EXPECT_EQ(io::file(loop, path, io::open_mode::truncate).size().value(), 0u);
}

TEST_P(file_on, a_regular_file_is_not_opened_as_non_blocking) {
    if (GetParam() == io::backend::sim) GTEST_SKIP() << "the simulation has no such files";
    const auto answers_at_once = [](const io::file& f) {
        return (::fcntl(f.native(), F_GETFL) & O_NONBLOCK) != 0;
    };
    for (const io::open_mode mode : {io::open_mode::create_only, io::open_mode::read_only,
                                     io::open_mode::read_write, io::open_mode::truncate}) {
        EXPECT_FALSE(answers_at_once(io::file(loop, path, mode)));
    }
    EXPECT_FALSE(answers_at_once(io::file(loop, "/proc/version", io::open_mode::read_only)));
    EXPECT_TRUE(answers_at_once(io::file(loop, "/dev/zero", io::open_mode::read_only)));
}

TEST_P(file_on, many_operations_are_pending_on_one_file_at_once) {
    io::file f(loop, path, io::open_mode::truncate);
    constexpr int count = 300;  // more than a submission queue holds
    for (int i = 0; i != count; ++i) {
        write_all(f, static_cast<std::uint64_t>(i) * 4, std::to_string(1000 + i));
    }
    loop.run();
    std::vector<std::string> read(count, std::string(4, ' '));
    for (int i = 0; i != count; ++i) {
        read_all(f, static_cast<std::uint64_t>(i) * 4, read[static_cast<std::size_t>(i)]);
    }
    loop.run();
    for (int i = 0; i != count; ++i) {
        EXPECT_EQ(read[static_cast<std::size_t>(i)], std::to_string(1000 + i));
    }
}

TEST_P(file_on, a_stop_or_the_end_of_the_file_ends_each_operation_once) {
    std::optional<io::file> f(std::in_place, loop, path, io::open_mode::truncate);
    std::vector<std::byte> memory(1 << 20);
    inplace_stop_source source;
    outcome ended[8];
    using operation = ex::connect_result_t<decltype(f->write_at(0, memory)), outcome_receiver>;
    std::array<std::optional<operation>, 8> ops;
    struct make {
        io::file& f;
        std::span<const std::byte> bytes;
        outcome_receiver receiver;
        operator operation() { return ex::connect(f.write_at(0, bytes), receiver); }
    };
    for (std::size_t i = 0; i != ops.size(); ++i) {
        ops[i].emplace(make{*f, memory, outcome_receiver(ended[i], source.get_token())});
        ex::start(*ops[i]);
    }
    auto stop = [&]() -> detached {
        co_await loop.get_scheduler().schedule();
        source.request_stop();
        f.reset();  // closes the file under the operations
    };
    stop();
    loop.run();
    // Each write was done before the stop, or was stopped, or found the file closed.
    for (const outcome& o : ended) EXPECT_EQ(o.ends(), 1);
}

TEST_P(file_on, a_read_of_a_closed_file_is_an_error) {
    io::file f(loop, path, io::open_mode::truncate);
    f.close();
    std::error_code ec;
    auto read = [&]() -> detached {
        std::array<std::byte, 1> one;
        co_await f.read_at(0, one, use_await[ec]);
    };
    read();
    loop.run();
    EXPECT_EQ(ec, std::errc::bad_file_descriptor);
}

TEST_P(file_on, an_offset_that_no_file_has_is_an_error_and_touches_nothing) {
    io::file f(loop, path, io::open_mode::truncate);
    write_all(f, 0, "precious");
    loop.run();
    constexpr std::uint64_t last = std::numeric_limits<std::int64_t>::max();
    for (const std::uint64_t offset :
         {last + 1, last + 4096, ~std::uint64_t{0} - 1, ~std::uint64_t{0}}) {
        std::error_code writing, reading;
        std::size_t done = 0;
        std::array<std::byte, 4> bytes{};
        auto use = [&]() -> detached {
            done += co_await f.write_at(offset, bytes_of("JUNK"), use_await[writing]);
            done += co_await f.read_at(offset, bytes, use_await[reading]);
        };
        use();
        loop.run();
        EXPECT_EQ(writing, std::errc::invalid_argument) << offset;
        EXPECT_EQ(reading, std::errc::invalid_argument) << offset;
        EXPECT_EQ(done, 0u);
        EXPECT_EQ(bytes, (std::array<std::byte, 4>{}));
    }
    std::string whole(100, ' ');
    read_all(f, 0, whole);
    loop.run();
    EXPECT_EQ(whole, "precious");
}

}  // namespace
