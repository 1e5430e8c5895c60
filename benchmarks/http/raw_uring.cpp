// The floor with io_uring: one issuer, deferred task work, multishot accept and receive into a ring
// of buffers, one enter per batch, and one send of constants per buffer received.
#include "raw_loop.hpp"
#include "rivals.hpp"

#include "../raw_uring.hpp"

#include <unistd.h>
#include <cerrno>
#include <string>

namespace bench_http {

using namespace coppice::io::uring;
using namespace raw_uring;

void serve_raw_uring() {
    const int listener = listen_on_loopback();
    loop ring;
    std::string answers;  // as many as a buffer of requests can ask for
    for (std::size_t i = 0; i != buffer_bytes / 18; ++i) answers += constant_answer;
    accept(ring, listener);
    for (;;) {
        ring.enter(1);
        ring.take([&](const cqe& entry) {
            const auto what = static_cast<kind>(entry.user_data & 255);
            const int fd = static_cast<int>(entry.user_data >> 8 & 0xffffff);
            const bool again = (entry.flags & more_to_come) == 0;
            if (what == kind::accept) {
                if (entry.result >= 0) receive(ring, entry.result);
                if (again) accept(ring, listener);
            } else if (what == kind::send) {
                // That ends the receive, whose completion closes the socket.
                if (entry.user_data >> 32 != 0) ::shutdown(fd, SHUT_RDWR);
            } else if (entry.result > 0) {
                const auto id = static_cast<std::uint16_t>(entry.flags >> cqe_buffer_shift);
                const std::string_view bytes(ring.buffer(id),
                                             static_cast<std::size_t>(entry.result));
                const std::size_t size = count_heads(bytes) * constant_answer.size();
                const bool close = wants_close(bytes);
                ring.lend(id);
                if (size != 0) send(ring, fd, std::string_view(answers).substr(0, size), close);
                if (again) receive(ring, fd);
            } else if (entry.result == -ENOBUFS) {
                receive(ring, fd);
            } else {
                ::close(fd);
            }
        });
    }
}

}  // namespace bench_http
