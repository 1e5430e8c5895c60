// Asio: post to an io_context, in the same batches as run_loop.
#include "rivals.hpp"

#include "../harness.hpp"

#include <algorithm>

#include <asio.hpp>

namespace bench_exec {

std::uint64_t queue_asio(std::size_t size) {
    std::uint64_t ran = 0;
    asio::io_context context(1);
    constexpr std::size_t batch = 64;
    for (std::size_t done = 0; done < size; done += batch) {
        const std::size_t now = std::min(batch, size - done);
        for (std::size_t i = 0; i != now; ++i) asio::post(context, [&ran] { ++ran; });
        context.restart();
        context.run();
    }
    return bench::hash().add(ran).value();
}

}  // namespace bench_exec
