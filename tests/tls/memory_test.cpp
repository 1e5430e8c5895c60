// What a tls::stream allocates: nothing itself in steady state, and nothing of OpenSSL's if it
// keeps its buffers; and what happens when OpenSSL has no memory.
#include "streams.hpp"

#include <coppice/base/internal/atomic.hpp>

#include "allocations.hpp"
#include "sanitizers.hpp"

#include <gtest/gtest.h>

#include <openssl/crypto.h>
#include <array>
#include <cstdlib>
#include <optional>

namespace {

using namespace coppice;
using namespace coppice::test;
using coppice::internal::atomic;
using coppice::internal::relaxed;

// Every allocation of OpenSSL goes through here. Only the thread that sets it up lets calls fail.
atomic<std::size_t> calls{0};
atomic<std::size_t> large{0};     // of them, those of a record's buffer
atomic<std::size_t> fails_at{0};  // 0: never

void* allocate(std::size_t size, const char*, int) {
    const std::size_t n = calls.fetch_add(1, relaxed) + 1;
    if (size >= 4096) large.fetch_add(1, relaxed);
    return n == fails_at.load(relaxed) ? nullptr : std::malloc(size);
}
void* reallocate(void* memory, std::size_t size, const char*, int) {
    const std::size_t n = calls.fetch_add(1, relaxed) + 1;
    return n == fails_at.load(relaxed) ? nullptr : std::realloc(memory, size);
}
void give_back(void* memory, const char*, int) {
    std::free(memory);
}
// OpenSSL takes these only before its own first allocation.
[[maybe_unused]] const bool taken =
    CRYPTO_set_mem_functions(&allocate, &reallocate, &give_back) == 1;

struct allocated {
    std::size_t ours = 0;
    std::size_t buffers = 0;  // of OpenSSL
};
// What a hundred questions and answers allocate, after the first ten.
task<> ask_and_answer(joined_streams& s, allocated& count) {
    std::array<std::byte, 100> bytes;
    std::optional<allocation_count> ours;
    for (int i = 0; i != 110; ++i) {
        if (i == 10) {
            ours.emplace();
            count.buffers = large.load(relaxed);
        }
        co_await s.client.send_all(bytes_in("question"));
        EXPECT_EQ(co_await s.server.receive(bytes), 8u);
        co_await s.server.send(bytes_in("answer"));
        EXPECT_EQ(co_await s.client.receive(bytes), 6u);
    }
    count.ours = ours->so_far();
    count.buffers = large.load(relaxed) - count.buffers;
}

// OpenSSL 3.0 itself allocates a few bytes for each record, whatever it is told.
TEST(tls_memory, an_exchange_allocates_no_buffer_if_openssl_keeps_its_own) {
    ASSERT_TRUE(taken);
    io::context loop(io::backend::epoll);
    usual u;
    u.server.keep_buffers = u.client.keep_buffers = true;
    joined_streams both(loop, u);
    ASSERT_TRUE(run_on(loop, both.shake()));
    allocated count;
    ASSERT_TRUE(run_on(loop, ask_and_answer(both, count)));
    if (!sanitized) {
        EXPECT_EQ(count.ours, 0u);
    }
    EXPECT_EQ(count.buffers, 0u);
}

TEST(tls_memory, a_handshake_without_memory_is_an_error_at_every_allocation) {
    ASSERT_TRUE(taken);
    const usual u;
    const tls::client_context of_client(u.client);
    const tls::server_context of_server(u.server);
    bool succeeded = false;
    for (std::size_t n = 1; !succeeded; n += n < 200 ? 1 : 17) {
        try {
            calls.store(0, relaxed);
            fails_at.store(n, relaxed);
            joined_engines both(tls::engine(of_client, "server.example"), tls::engine(of_server));
            both.shake();
            fails_at.store(0, relaxed);
            succeeded = both.is_ready() && calls.load(relaxed) < n;
            // An optional part of OpenSSL's may go without; otherwise one side has said an error.
            if (both.is_ready()) continue;
            EXPECT_TRUE(both.client_end.error || both.server_end.error) << n;
        } catch (const std::bad_alloc&) {
            fails_at.store(0, relaxed);
        } catch (const std::system_error&) {
            fails_at.store(0, relaxed);
        }
        ASSERT_LT(n, 100'000u);
    }
}

}  // namespace
