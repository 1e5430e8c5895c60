// The floor with io_uring: one issuer, deferred task work, multishot accept and receive into a ring
// of buffers, and one enter per batch.
#include "rivals.hpp"

#include "../raw_uring.hpp"

#include <unistd.h>
#include <cerrno>

namespace bench_echo {

using namespace coppice::io::uring;
using namespace raw_uring;

void serve_raw_uring() {
    const int listener = listen_on_loopback();
    loop ring;
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
                ring.lend(static_cast<std::uint16_t>(entry.user_data >> 32));
            } else if (entry.result > 0) {
                const std::uint64_t buffer = entry.flags >> cqe_buffer_shift;
                send(ring, fd, {ring.buffer(buffer), static_cast<std::size_t>(entry.result)},
                     buffer);
                if (again) receive(ring, fd);
            } else if (entry.result == -ENOBUFS) {
                receive(ring, fd);
            } else {
                ::close(fd);
            }
        });
    }
}

}  // namespace bench_echo
