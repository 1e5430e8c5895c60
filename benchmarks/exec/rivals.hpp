// The rivals of the exec benchmark; each function does its work `size` times and hashes the result.
#pragma once

#include <cstddef>
#include <cstdint>

namespace bench_exec {

// A value goes through three small functions: a pipeline, and the plain expression.
std::uint64_t then_coppice(std::size_t size);
std::uint64_t then_plain(std::size_t size);

// Several results are gathered: when_all, and a countdown and an array written by hand.
std::uint64_t gather_2_coppice(std::size_t size);
std::uint64_t gather_2_plain(std::size_t size);
std::uint64_t gather_10_coppice(std::size_t size);
std::uint64_t gather_10_plain(std::size_t size);

// Work is queued to a loop, `size` items, and run: run_loop, and Asio's io_context.
std::uint64_t queue_coppice(std::size_t size);
std::uint64_t queue_asio(std::size_t size);

// Work is started in a scope that waits for it: spawn and join; and new and delete with a count.
std::uint64_t spawn_coppice(std::size_t size);
std::uint64_t spawn_plain(std::size_t size);

// Ten operations that can be stopped are started together and stopped: when_all on its finite
// source, and the same on an inplace_stop_source. Also the size of their operation states.
std::uint64_t stop_10_finite(std::size_t size);
std::uint64_t stop_10_inplace(std::size_t size);
std::size_t stop_10_finite_bytes();
std::size_t stop_10_inplace_bytes();

}  // namespace bench_exec
