// io_uring on kernels that fail: too old, forbidden, out of memory, interrupted, or with tiny
// queues.
#include <coppice/io/internal/uring_calls.hpp>
#include <coppice/io/socket.hpp>
#include <coppice/io/timer.hpp>

#include "detached.hpp"
#include "rings.hpp"
#include "without_call.hpp"

#include "../../src/io/uring_abi.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cerrno>
#include <memory>
#include <string>
#include <thread>

namespace {

using namespace coppice;
using namespace std::chrono_literals;
using coppice::test::bytes_of;
using coppice::test::detached;
using coppice::test::open_files;

// Makes the kernel's calls, except for those that a test makes fail.
struct failing_calls final : io::internal::uring_calls {
    int setup(std::uint32_t entries, void* parameters) noexcept override {
        if (setups++ >= setups_max) return -setup_error;
        auto& p = *static_cast<io::uring::params*>(parameters);
        if (small != 0) {
            entries = small;
            p.cq_entries = small;
        }
        const int fd = uring_calls::setup(entries, parameters);
        p.features &= ~missing;
        return fd;
    }
    int enter(int ring, std::uint32_t submit, std::uint32_t least, std::uint32_t flags,
              const void* argument, std::size_t size) noexcept override {
        ++enters;
        if (enters > enters_max) return -refusal;
        if (enter_error != 0 && enters % 3 != 0) return -enter_error;
        return uring_calls::enter(ring, submit, least, flags, argument, size);
    }
    int register_with(int ring, std::uint32_t what, void* argument,
                      std::uint32_t count) noexcept override {
        if (what == refused) return -EINVAL;
        return uring_calls::register_with(ring, what, argument, count);
    }

    int setups_max = 1000;  // later setups fail
    int setup_error = ENOMEM;
    int setups = 0;
    std::uint32_t small = 0;    // entries of both queues; 0: as many as asked for
    std::uint32_t missing = 0;  // features that the kernel lacks
    std::uint32_t refused = ~0u;
    int enter_error = 0;       // of two enters in three
    int enters_max = 1 << 30;  // later enters fail with `refusal`
    int refusal = EPERM;
    int enters = 0;
};

// `count` clients send a greeting to one server over the context, and get it back.
void exchange(io::context& loop, int count) {
    int served = 0;
    int answered = 0;
    io::tcp::acceptor acceptor(loop, io::loopback(0));
    auto serve = [&](io::tcp::socket socket) -> detached {
        std::size_t got = 0;
        while (got != 5) {
            const io::pooled_buffer buffer = co_await socket.receive_pooled();
            got += buffer.bytes().size();
            co_await socket.send_all(buffer.bytes());
        }
        ++served;
    };
    auto server = [&]() -> detached {
        for (int i = 0; i != count; ++i) serve(co_await acceptor.accept());
    };
    auto client = [&]() -> detached {
        io::tcp::socket socket(loop);
        co_await socket.connect(acceptor.local());
        co_await socket.send_all(bytes_of("hello"));
        std::array<std::byte, 8> back;
        std::size_t got = 0;
        while (got != 5) got += co_await socket.receive(std::span(back).subspan(got));
        answered += test::text_of(std::span(back).first(5)) == "hello" ? 1 : 0;
    };
    server();
    for (int i = 0; i != count; ++i) client();
    loop.run();
    EXPECT_EQ(served, count);
    EXPECT_EQ(answered, count);
}

TEST(uring_calls, a_setup_that_fails_is_an_error_and_leaves_nothing_open) {
    const int before = open_files();
    for (const int error : {ENOSYS, EPERM, EINVAL, ENOMEM, EMFILE}) {
        failing_calls calls;
        calls.setups_max = 0;
        calls.setup_error = error;
        try {
            const io::context loop(calls);
            ADD_FAILURE() << "made without a ring";
        } catch (const std::system_error& e) {
            EXPECT_EQ(e.code(), std::error_code(error, std::system_category()));
        }
    }
    EXPECT_EQ(open_files(), before);
}

TEST(uring_calls, a_kernel_without_what_is_needed_is_an_error_and_leaves_nothing_open) {
    const int before = open_files();
    const auto refuses = [](failing_calls& calls) {
        try {
            const io::context loop(calls);
            return false;
        } catch (const std::system_error&) {
            return true;
        }
    };
    for (const std::uint32_t feature :
         {io::uring::feature_single_mmap, io::uring::feature_nodrop, io::uring::feature_ext_arg}) {
        failing_calls calls;
        calls.missing = feature;
        EXPECT_TRUE(refuses(calls)) << feature;
    }
    failing_calls calls;
    calls.refused = io::uring::register_pbuf_ring;
    EXPECT_TRUE(refuses(calls));
    EXPECT_EQ(open_files(), before);
}

TEST(uring_calls, a_ring_that_cannot_be_entered_is_an_error_and_leaves_nothing_open) {
    const int before = open_files();
    for (const int error : {EPERM, EACCES, ENOSYS, EINVAL, EOPNOTSUPP, 0}) {
        failing_calls calls;
        calls.enters_max = 0;
        calls.refusal = error;
        try {
            const io::context loop(calls);
            ADD_FAILURE() << "made without a ring";
        } catch (const std::system_error& e) {
            EXPECT_EQ(e.code().value(), error != 0 ? error : ENOSYS);
            EXPECT_NE(std::string(e.what()).find("io_uring_enter"), std::string::npos) << e.what();
        }
    }
    EXPECT_EQ(open_files(), before);
}

TEST(uring_calls, a_kernel_that_forbids_enter_while_the_loop_runs_stops_the_process) {
    EXPECT_DEATH(
        {
            failing_calls calls;
            calls.enters_max = 10;
            io::context loop(calls);
            exchange(loop, 20);
        },
        "does not let io_uring be entered");
}

bool is_forbidden(unsigned call) {
    return coppice::test::call_fails(call, EPERM) || coppice::test::call_fails(call, ENOSYS);
}

TEST(uring_sandbox, a_context_that_may_choose_takes_epoll_where_a_call_is_forbidden) {
    const bool forbidden = is_forbidden(SYS_io_uring_setup) || is_forbidden(SYS_io_uring_enter) ||
                           is_forbidden(SYS_io_uring_register);
    io::context loop;
    exchange(loop, 5);
    if (!forbidden) return;
    EXPECT_EQ(loop.kind(), io::backend::epoll);
    EXPECT_THROW((void)std::make_unique<io::context>(io::backend::uring), std::system_error);
}
void passes_in_a_sandbox(unsigned call) {
    for (const int error : {EPERM, ENOSYS}) {
        coppice::test::expect_passes_without(call, error, "uring_sandbox.*takes_epoll*");
    }
}
TEST(uring_sandbox, that_forbids_io_uring_setup) {
    passes_in_a_sandbox(SYS_io_uring_setup);
}
TEST(uring_sandbox, that_forbids_io_uring_enter) {
    passes_in_a_sandbox(SYS_io_uring_enter);
}
TEST(uring_sandbox, that_forbids_io_uring_register) {
    passes_in_a_sandbox(SYS_io_uring_register);
}

TEST(uring_calls, a_context_that_may_choose_takes_epoll_instead) {
    failing_calls forbidden;
    forbidden.setups_max = 0;
    forbidden.setup_error = EPERM;
    failing_calls old;
    old.refused = io::uring::register_pbuf_ring;
    failing_calls closed;
    closed.enters_max = 0;
    for (failing_calls* const calls : {&forbidden, &old, &closed}) {
        io::context loop(*calls, io::backend::automatic);
        EXPECT_EQ(loop.kind(), io::backend::epoll);
        exchange(loop, 5);
    }
}

TEST(uring_calls, interrupted_and_refused_enters_lose_nothing) {
    for (const int error : {EINTR, EAGAIN, EBUSY}) {
        failing_calls calls;
        calls.enter_error = error;
        io::context loop(calls);
        exchange(loop, 20);
        EXPECT_GT(calls.enters, 20);
    }
}

// With two entries, most submissions find the queue full, and most completions overflow.
TEST(uring_calls, full_queues_lose_nothing) {
    for (const std::uint32_t small : {1u, 2u, 8u}) {
        failing_calls calls;
        calls.small = small;
        io::context loop(calls);
        exchange(loop, 100);
    }
}

TEST(uring_calls, full_queues_and_interrupted_enters_lose_nothing) {
    failing_calls calls;
    calls.small = 4;
    calls.enter_error = EINTR;
    io::context loop(calls);
    exchange(loop, 30);
}

TEST(uring_calls, a_move_to_another_thread_without_memory_stops_the_process) {
    EXPECT_DEATH(
        {
            failing_calls calls;
            calls.setups_max = 1;
            io::context loop(calls);
            loop.run();
            std::thread([&] { loop.run(); }).join();
        },
        "no memory to move an io_uring");
}

}  // namespace
