// io/simulation.hpp: the errors that it makes, at each system call and for files that are too long.
#include <coppice/io/datagram.hpp>
#include <coppice/io/file.hpp>
#include <coppice/io/resolver.hpp>
#include <coppice/io/signal_set.hpp>
#include <coppice/io/simulation.hpp>
#include <coppice/io/socket.hpp>
#include <coppice/io/timer.hpp>

#include "allocations.hpp"
#include "detached.hpp"
#include "rings.hpp"
#include "sanitizers.hpp"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>

#include <array>
#include <cstdlib>
#include <fstream>
#include <limits>
#include <optional>
#include <set>

namespace {

using namespace coppice;
using namespace coppice::internal;
using namespace std::chrono_literals;
using coppice::test::bytes_of;
using coppice::test::detached;

// Counts how often a coroutine of a scenario begins, and how often one ends, in whatever way.
struct tally {
    int begun = 0;
    int ended = 0;
    struct entry {
        explicit entry(tally& t) noexcept : all(t) { ++all.begun; }
        ~entry() { ++all.ended; }
        tally& all;
    };
};

// Uses every part of io once. Errors are expected anywhere; ends are counted.
struct everything {
    void run(io::simulation& world, io::context& loop) {
        guarded([&] { names_and_signals(world, loop); });
        guarded([&] { streams(loop); });
        guarded([&] { unix_streams(loop); });
        guarded([&] { datagrams(loop); });
        guarded([&] { files(loop); });
    }
    template <class F>
    void guarded(F f) {
        try {
            f();
        } catch (const std::system_error&) {
            ++errors;
        }
    }
    void note(std::error_code ec) { errors += ec && ec != std::errc::operation_canceled; }

    void streams(io::context& loop) {
        io::tcp::acceptor acceptor(loop, io::loopback(0));
        both_sides(loop, acceptor, io::tcp::socket(loop));
        loop.run();
    }
    void unix_streams(io::context& loop) {
        io::local::acceptor acceptor(loop, *io::endpoint::unix_path("@everything"));
        both_sides(loop, acceptor, io::local::socket(loop));
        loop.run();
    }
    template <class Acceptor, class Socket>
    void both_sides(io::context& loop, Acceptor& acceptor, Socket near) {
        accepting(loop, acceptor);
        connecting(loop, acceptor, std::move(near));
    }
    template <class Acceptor>
    detached accepting(io::context&, Acceptor& acceptor) {
        const tally::entry entry(all);
        std::error_code ec;
        auto far = co_await acceptor.accept(use_await[ec]);
        note(ec);
        acceptor.close();
        std::array<std::byte, 10> a{};
        std::array<std::byte, 300> b{};
        const std::array<io::mutable_buffer, 2> pieces{io::mutable_buffer(a),
                                                       io::mutable_buffer(b)};
        for (std::size_t n = 1; !ec && n != 0;) n = co_await far.receive(pieces, use_await[ec]);
        note(ec);
        if (!ec) co_await far.send(bytes_of("bye"), use_await[ec]);
        note(ec);
        note(far.shutdown(io::internal::shutdown_direction::both));
    }
    template <class Acceptor, class Socket>
    detached connecting(io::context& loop, Acceptor& acceptor, Socket near) {
        const tally::entry entry(all);
        std::error_code ec;
        const io::endpoint to = acceptor.local();
        co_await near.connect(to, use_await[ec]);
        note(ec);
        const std::array<io::const_buffer, 2> pieces{io::const_buffer(bytes_of("some ")),
                                                     io::const_buffer(bytes_of("pieces"))};
        if (!ec) note(near.set(io::keep_alive(true)));
        if (!ec) co_await near.send_all(pieces, use_await[ec]);
        note(ec);
        if (!ec) co_await near.send_all(bytes_of("and the rest"), use_await[ec]);
        note(ec);
        const std::error_code shut = near.shutdown(io::internal::shutdown_direction::send);
        note(shut);
        std::array<std::byte, 10> into{};
        if (!ec && !shut) co_await near.receive(into, use_await[ec]);
        note(ec);
        near.close();
        co_await io::timer(loop).wait_for(50ms);
        acceptor.close();  // if no client came
    }

    void datagrams(io::context& loop) {
        io::udp::socket near(loop, io::loopback(0)), far(loop, io::loopback(0));
        auto receive = [this](io::udp::socket& socket) -> detached {
            const tally::entry entry(all);
            std::array<std::byte, 64> into{};
            std::error_code ec;
            co_await socket.receive_from(into, use_await[ec]);
            note(ec);
        };
        auto send = [this](io::udp::socket& socket, io::udp::socket& to,
                           io::context& l) -> detached {
            const tally::entry entry(all);
            std::error_code ec;
            co_await socket.send_to(bytes_of("datagram"), to.local(), use_await[ec]);
            note(ec);
            co_await io::timer(l).wait_for(50ms);
            to.close();  // if the datagram was not received
        };
        receive(far);
        send(near, far, loop);
        loop.run();
    }

    void files(io::context& loop) {
        io::file f(loop, "a file", io::open_mode::truncate);
        auto use = [this](io::file& file) -> detached {
            const tally::entry entry(all);
            std::error_code ec;
            co_await file.write_at(0, bytes_of("content"), use_await[ec]);
            note(ec);
            co_await file.sync(use_await[ec]);
            note(ec);
            std::array<std::byte, 64> into{};
            co_await file.read_at(0, into, use_await[ec]);
            note(ec);
        };
        use(f);
        loop.run();
    }

    void names_and_signals(io::simulation& world, io::context& loop) {
        auto ask = [this](io::context& l) -> detached {
            const tally::entry entry(all);
            std::error_code ec;
            co_await io::resolver(l).resolve("localhost", 80, use_await[ec]);
            note(ec);
        };
        auto wait = [this](io::signal_set& set) -> detached {
            const tally::entry entry(all);
            std::error_code ec;
            for (int i = 0; i != 2 && !ec; ++i) co_await set.wait(use_await[ec]);
            note(ec);
        };
        ask(loop);
        guarded([&] {
            io::signal_set set(loop, {SIGUSR1, SIGUSR2});
            world.raise(SIGUSR1);
            world.raise(SIGUSR2, 5ms);
            wait(set);
            loop.run();
        });
        loop.run();
    }

    tally all;
    int errors = 0;
};

// The result of writing two bytes to a file, and the length of the file afterwards.
struct written {
    std::error_code error;
    std::size_t bytes = 0;
    std::uint64_t size = 0;
};
written write_two(io::context& loop, io::file& f, std::uint64_t offset) {
    written result;
    auto write = [&]() -> detached {
        result.bytes = co_await f.write_at(offset, bytes_of("ab"), use_await[result.error]);
    };
    write();
    loop.run();
    result.size = *f.size();
    return result;
}

TEST(simulation, a_file_that_would_be_longer_than_a_gibibyte_is_an_error_and_stays_as_it_is) {
    io::simulation world(1, io::simulated_faults::none());
    io::context loop(world);
    io::file f(loop, "a file", io::open_mode::truncate);
    EXPECT_EQ(write_two(loop, f, 0).bytes, 2u);
    constexpr std::uint64_t most = std::uint64_t{1} << 30;
    constexpr std::uint64_t last = std::numeric_limits<std::int64_t>::max();
    for (const std::uint64_t offset :
         {most - 1, most, most << 10, most << 20, last - 2, last - 1, last}) {
        const written w = write_two(loop, f, offset);
        EXPECT_EQ(w.error, std::errc::file_too_large) << offset;
        EXPECT_EQ(w.bytes, 0u) << offset;
        EXPECT_EQ(w.size, 2u) << offset;
    }
    for (const std::uint64_t size : {most + 1, most << 10, last, last + 1, ~std::uint64_t{0}}) {
        EXPECT_EQ(f.resize(size), std::errc::file_too_large) << size;
        EXPECT_EQ(*f.size(), 2u) << size;
    }
    EXPECT_EQ(world.content("a file"), "ab");
    EXPECT_FALSE(f.resize(1'000'000));
    EXPECT_EQ(write_two(loop, f, 1'000'000).size, 1'000'002u);
}

TEST(simulation, writing_no_bytes_far_beyond_the_end_does_not_extend_a_file) {
    io::simulation world(1, io::simulated_faults::none());
    io::context loop(world);
    io::file f(loop, "a file", io::open_mode::truncate);
    std::error_code ec;
    auto write = [&]() -> detached {
        EXPECT_EQ(co_await f.write_at(std::uint64_t{1} << 40, {}, use_await[ec]), 0u);
    };
    write();
    loop.run();
    EXPECT_FALSE(ec);
    EXPECT_EQ(*f.size(), 0u);
}

// Returns true if writing a file that memory cannot hold is an error that leaves the contents as
// they were.
bool survives_without_memory() {
    io::simulation world(1, io::simulated_faults::none());
    io::context loop(world);
    io::file f(loop, "a file", io::open_mode::truncate);
    if (write_two(loop, f, 0).bytes != 2) return false;
    long pages = 0;  // the size of the address space
    std::ifstream("/proc/self/statm") >> pages;
    const rlim_t most = static_cast<rlim_t>(pages) * 4096 + (rlim_t{64} << 20);
    const rlimit limit{most, most};
    if (::setrlimit(RLIMIT_AS, &limit) != 0) return false;
    const written w = write_two(loop, f, std::uint64_t{512} << 20);
    const std::error_code resized = f.resize(std::uint64_t{512} << 20);
    return w.error == std::errc::not_enough_memory && w.bytes == 0 && w.size == 2 &&
           resized == std::errc::not_enough_memory && world.content("a file") == "ab" &&
           write_two(loop, f, 2).size == 4;
}

TEST(simulation, a_file_too_large_for_memory_is_an_error_and_stays_as_it_is) {
    if (test::sanitized) GTEST_SKIP() << "the sanitizers have their own memory";
    EXPECT_EXIT(std::_Exit(survives_without_memory() ? 0 : 1), testing::ExitedWithCode(0), "");
}

TEST(simulation, a_failure_at_each_system_call_is_reported_and_leaks_nothing) {
    std::set<io::system_call> failed;
    for (std::uint64_t seed = 1; seed != 4; ++seed) {
        const io::simulated_faults faults =
            seed == 1 ? io::simulated_faults::none() : io::simulated_faults();
        for (std::uint64_t n = 1;; ++n) {
            SCOPED_TRACE(testing::Message() << "seed " << seed << ", call " << n);
            const std::size_t allocated = test::live_allocations();
            std::optional<io::system_call> came;
            {
                io::simulation world(seed, faults);
                world.fail_call(n);
                everything e;
                {
                    io::context loop(world);
                    e.run(world, loop);
                    EXPECT_EQ(world.open_descriptors(), 0u);
                }
                EXPECT_EQ(e.all.ended, e.all.begun);
                came = world.failed();
                EXPECT_EQ(e.errors != 0, came.has_value()) << e.errors << " errors";
            }
            EXPECT_EQ(test::live_allocations(), allocated);
            if (HasFailure()) return;
            if (!came) break;  // there is no n-th call: every call has failed once
            failed.insert(*came);
            ASSERT_LT(n, 1000u);
        }
    }
    EXPECT_EQ(failed.size(), 15u) << "a kind of call was never made";
}

}  // namespace
