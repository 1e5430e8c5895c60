// io/whole_file.hpp in a simulation: what stops, deadlines, and failing system calls leave behind.
#include <coppice/io/file.hpp>
#include <coppice/io/simulation.hpp>
#include <coppice/io/timer.hpp>
#include <coppice/io/whole_file.hpp>
#include <coppice/token/block.hpp>

#include "outcome.hpp"
#include "rings.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

namespace {

using namespace coppice;
using namespace std::chrono_literals;
namespace ex = coppice::execution;
using coppice::test::bytes_of;
using coppice::test::outcome;
using coppice::test::outcome_receiver;

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

constexpr const char* name = "/data/x";
const std::string old_text = lot(5'000);
const std::string new_text = lot(9'000).substr(1'000);

// Writes old_text, then new_text under `hindrance`. Afterwards the file holds one or the other.
template <class Hinder>
outcome write_hindered(io::simulation& world, io::context& loop, Hinder hinder) {
    io::write_file(loop, name, bytes_of(old_text), block);
    const std::size_t open = world.open_descriptors();
    outcome ended;
    hinder(ended);
    EXPECT_EQ(ended.ends(), 1);
    const std::string_view left = world.content(name);
    EXPECT_TRUE(left == old_text || left == new_text);
    EXPECT_EQ(world.open_descriptors(), open);
    if (ended.values == 1) {
        EXPECT_EQ(left, new_text);
    }
    if (ended.stops == 1) {
        EXPECT_EQ(left, old_text);
    }
    return ended;
}

// Also when a stopped write or flush succeeds anyway, and while the folder is flushed.
TEST(whole_file_simulated, a_stopped_or_late_write_keeps_the_old_file_or_is_a_success) {
    int whole = 0, stopped = 0, whole_though_stopped = 0;
    for (std::uint64_t seed = 1; seed != 400; ++seed) {
        const auto after = std::chrono::microseconds(seed * 131 % 10'000);
        const bool by_deadline = seed % 2 == 0;
        bool came = false;
        io::simulation world(seed);
        io::context loop(world);
        const outcome ended = write_hindered(world, loop, [&](outcome& o) {
            inplace_stop_source source;
            const ex::instant deadline =
                by_deadline ? ex::instant(loop.now() + after) : ex::instant::never();
            auto op =
                ex::connect(io::write_file(loop, name, bytes_of(new_text), {.sync = seed % 3 == 0}),
                            outcome_receiver(o, source.get_token(), deadline));
            ex::start(op);
            io::timer timer(loop);
            timer.wait_for(after, [&](std::error_code) {
                came = o.ends() == 0;
                if (!by_deadline) source.request_stop();
            });
            loop.run();
        });
        EXPECT_EQ(ended.errors, 0) << ended.error.message();
        (ended.values == 1 ? whole : stopped) += 1;
        whole_though_stopped += came && ended.values == 1;
    }
    EXPECT_GT(whole, 0);
    EXPECT_GT(stopped, 0);
    EXPECT_GT(whole_though_stopped, 0);
}

TEST(whole_file_simulated, whichever_call_fails_the_file_is_the_old_one_or_the_new_one) {
    for (const bool sync : {false, true}) {
        int failures = 0;
        for (std::uint64_t n = 1;; ++n) {
            io::simulation world(3, io::simulated_faults::none());
            io::context loop(world);
            const outcome ended = write_hindered(world, loop, [&](outcome& o) {
                world.fail_call(n);
                auto op =
                    ex::connect(io::write_file(loop, name, bytes_of(new_text), {.sync = sync}),
                                outcome_receiver(o));
                ex::start(op);
                loop.run();
            });
            if (!world.failed()) break;
            failures += ended.errors;
        }
        EXPECT_GE(failures, sync ? 5 : 3);
    }
}

TEST(whole_file_simulated, a_file_that_grows_or_shrinks_is_read_to_the_end_found) {
    int longer = 0, shorter = 0;
    const std::string text = lot(20'000);
    for (std::uint64_t seed = 1; seed != 200; ++seed) {
        io::simulation world(seed);
        io::context loop(world);
        io::file f(loop, name, io::open_mode::create);
        f.write_all(0, bytes_of(std::string_view(text).substr(0, 10'000)), block);
        std::string read;
        f.read_all([&](std::error_code ec, std::string bytes) {
            EXPECT_FALSE(ec);
            read = std::move(bytes);
        });
        io::timer timer(loop);
        timer.wait_for(std::chrono::microseconds(seed * 17 % 4'000), [&](std::error_code) {
            if (seed % 2 == 0) {
                EXPECT_FALSE(f.resize(100));
            } else {
                f.write_all(10'000, bytes_of(std::string_view(text).substr(10'000)),
                            [](std::error_code) {});
            }
        });
        loop.run();
        EXPECT_EQ(read, text.substr(0, read.size()));
        EXPECT_GE(read.size(), seed % 2 == 0 ? 100u : 10'000u);
        longer += read.size() > 10'000;
        shorter += read.size() < 10'000;
    }
    EXPECT_GT(longer, 0);
    EXPECT_GT(shorter, 0);
}

TEST(whole_file_simulated, a_stop_ends_reading_and_writing_between_two_pieces) {
    int ends[2] = {0, 0};
    const std::string text = lot(30'000);
    std::string memory(text.size(), ' ');
    for (std::uint64_t seed = 1; seed != 150; ++seed) {
        io::simulation world(seed);
        io::context loop(world);
        io::file f(loop, name, io::open_mode::create);
        f.write_all(0, bytes_of(text), block);
        inplace_stop_source source;
        outcome read, filled, written;
        auto a = ex::connect(f.read_all(), outcome_receiver(read, source.get_token()));
        auto b = ex::connect(f.read_all(0, std::as_writable_bytes(std::span(memory))),
                             outcome_receiver(filled, source.get_token()));
        auto c = ex::connect(f.write_all(0, bytes_of(text)),
                             outcome_receiver(written, source.get_token()));
        ex::start(a);
        ex::start(b);
        ex::start(c);
        io::timer timer(loop);
        timer.wait_for(std::chrono::microseconds(seed * 37 % 9'000),
                       [&](std::error_code) { source.request_stop(); });
        loop.run();
        for (const outcome& o : {read, filled, written}) {
            EXPECT_EQ(o.ends(), 1);
            EXPECT_EQ(o.errors, 0);
            ends[o.stops] += 1;
        }
        EXPECT_EQ(f.read_all(block), text);
    }
    EXPECT_GT(ends[0], 0);
    EXPECT_GT(ends[1], 0);
}

TEST(whole_file_simulated, closing_the_file_or_ending_the_context_cancels_it) {
    for (const bool close : {true, false}) {
        io::simulation world(1);
        std::optional<io::context> loop(std::in_place, world);
        std::optional<io::file> f(std::in_place, *loop, name, io::open_mode::create);
        f->write_all(0, bytes_of(old_text), block);
        outcome read, whole, written;
        auto a = ex::connect(f->read_all(), outcome_receiver(read));
        auto b = ex::connect(io::read_file(*loop, name), outcome_receiver(whole));
        auto c =
            ex::connect(io::write_file(*loop, name, bytes_of(new_text)), outcome_receiver(written));
        ex::start(a);
        ex::start(b);
        ex::start(c);
        if (close) {
            f.reset();
            loop->run();
            EXPECT_EQ(whole.values, 1);
            EXPECT_EQ(written.values, 1);
        } else {
            EXPECT_FALSE(loop->drain(0ms));
            EXPECT_EQ(whole.error, std::errc::operation_canceled);
            EXPECT_EQ(written.error, std::errc::operation_canceled);
            EXPECT_EQ(world.content(name), old_text);
            f.reset();
        }
        EXPECT_EQ(read.error, std::errc::operation_canceled);
        EXPECT_EQ(read.ends() + whole.ends() + written.ends(), 3);
    }
}

}  // namespace
