// The floor of an echo with io_uring: one issuer, deferred task work, one enter per batch. Each
// frame is received into its connection's own memory, unmasked there, and sent back from there. A
// multishot receive into a ring of buffers costs as much for 64 bytes, and more for 16 KiB.
#include "raw_echo.hpp"
#include "rivals.hpp"

#include "../http/raw_loop.hpp"
#include "../raw_uring.hpp"

#include <unistd.h>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace bench_edge {

using namespace coppice::io::uring;
using namespace raw_uring;

namespace {

class echo_server {
public:
    explicit echo_server(int listener) : listener_(listener) {}

    [[noreturn]] void run() {
        accept(ring_, listener_);
        for (;;) {
            ring_.enter(1);
            ring_.take([this](const cqe& entry) { take(entry); });
        }
    }

private:
    raw_peer& peer(int fd) {
        const auto at = static_cast<std::size_t>(fd);
        if (at >= peers_.size()) peers_.resize(at + 1);
        if (peers_[at] == nullptr) peers_[at] = std::make_unique<raw_peer>();
        return *peers_[at];
    }
    void receive_into(int fd, raw_peer& p) {
        abi::sqe& entry = ring_.next();
        entry.opcode = abi::op::recv;
        entry.fd = fd;
        entry.addr = reinterpret_cast<std::uint64_t>(p.bytes.data() + p.have);
        entry.len = static_cast<std::uint32_t>(p.bytes.size() - p.have);
        entry.user_data = name(kind::receive, static_cast<std::uint64_t>(fd));
    }
    void take(const cqe& entry) {
        const auto what = static_cast<kind>(entry.user_data & 255);
        const int fd = static_cast<int>(entry.user_data >> 8 & 0xffffff);
        if (what == kind::accept) {
            if (entry.result >= 0) receive_into(entry.result, peer(entry.result));
            if ((entry.flags & more_to_come) == 0) accept(ring_, listener_);
        } else if (what == kind::receive && entry.result > 0) {
            raw_peer& p = peer(fd);
            p.have += static_cast<std::size_t>(entry.result);
            const std::string_view answer = raw_answer(p);
            if (!answer.empty()) send(ring_, fd, answer, 0);
            receive_into(fd, p);
        } else if (what == kind::receive) {
            peers_[static_cast<std::size_t>(fd)].reset();
            ::close(fd);
        }
    }

    int listener_;
    loop ring_;
    std::vector<std::unique_ptr<raw_peer>> peers_;  // by descriptor
};

}  // namespace

void serve_raw_echo_uring() {
    echo_server(bench_http::listen_on_loopback()).run();
}

}  // namespace bench_edge
