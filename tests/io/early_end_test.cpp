// Multishot requests that the kernel ends early: after each of their completions, and in each way.
#include <coppice/io/socket.hpp>

#include "allocations.hpp"
#include "detached.hpp"
#include "rings.hpp"
#include "seen_calls.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cerrno>
#include <optional>
#include <set>
#include <string>

namespace {

using namespace coppice;
using namespace coppice::internal;
namespace uring = coppice::io::uring;
using coppice::test::bytes_of;
using coppice::test::detached;
using coppice::test::open_files;

// How a multishot request (a "shot") ends early.
enum class way {
    after_one,   // it brings one completion, and says that this was the last
    no_buffers,  // it fails with ENOBUFS at once, as if all buffers were full
    after_more,  // after a completion it ends with `error` and nothing else
};

// Makes the kernel's calls, but ends the n-th shot early, or the shot of the n-th completion; all
// of them if n is 0. It does only what the kernel could have done: it changes and loses nothing
// that has come.
class ending_calls final : public test::seen_calls {
public:
    ending_calls(way how, int error, int n) noexcept : how_(how), error_(error), n_(n) {}
    int planted() const noexcept { return planted_; }

private:
    // The kernel's struct io_uring_sync_cancel_reg.
    struct cancel_registration {
        std::uint64_t user_data = 0;
        std::int32_t fd = -1;
        std::uint32_t flags = 0;
        uring::kernel_timespec timeout{-1, -1};
        std::uint64_t pad[4]{};
    };
    static_assert(sizeof(cancel_registration) == 64);
    static constexpr std::uint32_t register_sync_cancel = 24;

    void see(uring::sqe& entry) noexcept override {
        const bool receives = test::receives_shots(entry);
        if (!receives && !test::accepts_shots(entry)) return;
        // For an accept, ENOBUFS is not an early end but an error, which the caller gets.
        if (receives || error_ != ENOBUFS) shots_.insert(entry.user_data);
        if (how_ == way::after_more || (how_ == way::no_buffers && !receives)) return;
        if (++count_ != n_ && n_ != 0) return;
        ++planted_;
        if (how_ == way::after_one) {
            entry.ioprio = 0;
        } else {
            entry.buf_group = 1;  // a group without buffers
        }
    }
    void see(int ring, uring::cqe& entry) noexcept override {
        if (how_ != way::after_more || !shots_.contains(entry.user_data)) return;
        if ((entry.flags & uring::cqe_more) == 0) {
            if (entry.result != -ECANCELED || ending_.erase(entry.user_data) == 0) return;
            entry.result = -error_;
            ++planted_;
        } else if (++count_ == n_ || n_ == 0) {
            cancel_registration shot;
            shot.user_data = entry.user_data;
            ending_.insert(entry.user_data);
            (void)uring_calls::register_with(ring, register_sync_cancel, &shot, 1);
        }
    }

    const way how_;
    const int error_;
    const int n_;
    int count_ = 0;
    int planted_ = 0;
    std::set<std::uint64_t> shots_;   // by user_data
    std::set<std::uint64_t> ending_;  // canceled by this object
};

// Clients that send pieces of all sizes and receive everything back in order. Some connect
// together, and some when others have left.
struct conversation {
    static constexpr int clients = 5;
    static constexpr int messages = 4;

    static std::string message(int client, int number) {
        std::string text(static_cast<std::size_t>((client * 131 + number * 3571) % 9000 + 1), ' ');
        for (std::size_t i = 0; i != text.size(); ++i) {
            text[i] = static_cast<char>('!' + (i * 7 + static_cast<std::size_t>(client)) % 90);
        }
        return text;
    }
    void run(io::context& loop) {
        io::tcp::acceptor acceptor(loop, io::loopback(0));
        serve(acceptor);
        for (int i = 0; i != 3; ++i) talk(loop, acceptor.local(), i);
        loop.run();
    }
    detached serve(io::tcp::acceptor& acceptor) {
        for (int i = 0; i != clients; ++i) echo(co_await acceptor.accept());
        ++ended;
    }
    // Receives with both kinds of receive, and sends back what came.
    detached echo(io::tcp::socket socket) {
        std::array<std::byte, 700> small;
        for (bool pooled = true;; pooled = !pooled) {
            std::error_code ec;
            std::size_t n = 0;
            if (pooled) {
                const io::pooled_buffer buffer = co_await socket.receive_pooled(use_await[ec]);
                n = buffer.bytes().size();
                if (n != 0) co_await socket.send_all(buffer.bytes(), use_await[ec]);
            } else {
                n = co_await socket.receive(small, use_await[ec]);
                if (n != 0) co_await socket.send_all(std::span(small).first(n), use_await[ec]);
            }
            failed += ec ? 1 : 0;
            if (ec || n == 0) break;
        }
        ++ended;
    }
    detached talk(io::context& loop, io::endpoint to, int client) {
        {
            io::tcp::socket socket(loop);
            co_await socket.connect(to);
            for (int i = 0; i != messages; ++i) {
                const std::string text = message(client, i);
                co_await socket.send_all(bytes_of(text));
                std::string back(text.size(), '\0');
                for (std::size_t got = 0; got != back.size();) {
                    std::error_code ec;
                    const std::size_t n = co_await socket.receive(
                        std::as_writable_bytes(std::span(back)).subspan(got), use_await[ec]);
                    failed += ec || n == 0 ? 1 : 0;
                    if (ec || n == 0) break;
                    got += n;
                }
                whole += back == text ? 1 : 0;
            }
        }
        ++ended;
        if (client < clients - 3) talk(loop, to, client + 3);
    }

    int whole = 0;
    int failed = 0;
    int ended = 0;
};

// Returns how many early ends were planted: n = 0 plants all, otherwise only the n-th, if it
// exists.
int planted(way how, int error, int n) {
    const int files = open_files();
    const std::size_t allocated = test::live_allocations();
    int ends = 0;
    {
        ending_calls calls(how, error, n);
        conversation c;
        {
            io::context loop(calls);
            c.run(loop);
        }
        EXPECT_EQ(c.whole, conversation::clients * conversation::messages);
        EXPECT_EQ(c.failed, 0);
        EXPECT_EQ(c.ended, 2 * conversation::clients + 1);
        ends = calls.planted();
    }
    EXPECT_EQ(open_files(), files);
    EXPECT_EQ(test::live_allocations(), allocated);
    return ends;
}

void plant_at_each(way how, int error, int least) {
    int n = 1;
    for (; n != 1000; ++n) {
        SCOPED_TRACE(n);
        const int ends = planted(how, error, n);
        EXPECT_LE(ends, 1);
        if (ends == 0 || testing::Test::HasFailure()) break;
    }
    EXPECT_GT(n, least) << "too few ends to prove anything";
    EXPECT_LT(n, 1000);
}

TEST(early_ends, of_a_shot_after_its_first_completion_lose_nothing) {
    plant_at_each(way::after_one, 0, conversation::clients);
    EXPECT_GT(planted(way::after_one, 0, 0), conversation::clients * conversation::messages);
}

TEST(early_ends, for_lack_of_buffers_before_any_bytes_lose_nothing) {
    plant_at_each(way::no_buffers, 0, conversation::clients - 1);
}

TEST(early_ends, after_each_completion_lose_nothing) {
    for (const int error : {ECANCELED, ENOBUFS, EINTR, EAGAIN}) {
        SCOPED_TRACE(error);
        plant_at_each(way::after_more, error, conversation::clients);
        EXPECT_GT(planted(way::after_more, error, 0), conversation::clients);
    }
}

}  // namespace
