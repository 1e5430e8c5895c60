// Reads a file chunk by chunk, computes a checksum of each on a pool, and writes them in order.
#include <coppice/coppice.hpp>

#include <csignal>
#include <deque>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <string>

#include <zlib.h>

using namespace coppice;
namespace ex = coppice::execution;
constexpr std::size_t chunk_bytes = 64 * 1024, in_flight_max = 16;

std::string checksum(const std::string& chunk) {
    const auto* const data = reinterpret_cast<const Bytef*>(chunk.data());
    return std::to_string(::crc32(0, data, static_cast<uInt>(chunk.size()))) + "\n";
}

// At most `in_flight_max` chunks are in memory. The first error of any stage, or a stop, ends the
// other stages: the pool finishes the chunks that it has begun, and the rest is dropped.
task<> write_checksums(io::file& in, io::file& out, thread_pool& pool) {
    co_await ex::scoped([&](auto scope) -> task<> {
        const auto begin = [&](std::string chunk) {
            auto work = ex::schedule(pool.get_scheduler()) |
                        ex::then([chunk = std::move(chunk)] { return checksum(chunk); });
            return ex::spawn_future(std::move(work), scope);
        };
        std::deque<decltype(begin({}))> in_flight;  // in the order of the file
        for (std::size_t read = 0, written = 0;;) {
            std::string chunk(chunk_bytes, '\0');
            chunk.resize(co_await in.read_at(read, std::as_writable_bytes(std::span(chunk))));
            read += chunk.size();
            const bool more = !chunk.empty();
            if (more) in_flight.push_back(begin(std::move(chunk)));
            if (in_flight.empty()) co_return;
            if (more && in_flight.size() < in_flight_max) continue;
            const std::string line = co_await std::move(in_flight.front());
            in_flight.pop_front();
            written += co_await out.write_at(written, std::as_bytes(std::span(line)));
        }
    });
}

void run(const std::string& from, const std::string& to) try {
    thread_pool pool;
    const auto work = [&](io::context& loop) -> task<> {
        io::file in(loop, from, io::open_mode::read_only), out(loop, to, io::open_mode::truncate);
        if (from == "/dev/urandom") std::raise(SIGINT);  // endless: stands for a user's Ctrl-C
        co_await write_checksums(in, out, pool);
    };
    std::cout << (io::run(work, {.stop_on = {SIGINT, SIGTERM}}) ? "done\n" : "stopped\n");
} catch (const std::exception& error) {
    std::cout << "failed: " << error.what() << '\n';
}

int main() {
    const std::string path = std::filesystem::temp_directory_path() / "coppice_81_pipeline";
    std::ofstream(path) << std::string(3 * chunk_bytes, 'a') << std::string(chunk_bytes + 1, 'b');
    run(path, path + ".sums");
    std::cout << std::ifstream(path + ".sums").rdbuf();
    run(path, "/dev/full");
    run("/dev/urandom", path + ".sums");
    for (const char* const name : {"", ".sums"}) std::filesystem::remove(path + name);
}
