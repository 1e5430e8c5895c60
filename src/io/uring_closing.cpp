// How operations, files, and requests of the io_uring ring end before they have a result.
#include "uring_ring.hpp"

#include "uring_entries.hpp"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>
#include <array>
#include <span>

namespace coppice::io::uring {

void uring_ring::detach(descriptor& d) noexcept {
    if (accept_stream* const a = accepts_.find(d.fd)) {
        const std::uint64_t request = accept_name(*a);
        close_file(d.fd, accepts_.end(*a), request);
        return;
    }
    receive_stream* const s = streams_.find(d.fd);
    if (s != nullptr) {
        s->drop(buffers_);
        s->end = receive_stream::open;
        s->one_by_one = false;
        ++s->generation;
    }
    const bool armed = s != nullptr && std::exchange(s->armed, false);
    if (armed) s->cancelling = false;
    close_file(d.fd, armed, armed ? stream_name(d.fd, s->generation - 1) : ignored);
}

void uring_ring::cancel(ring_operation& op) noexcept {
    if (std::exchange(op.cancelled, true)) return;
    if (receive_stream* const s = streams_.find(op.on->fd); s != nullptr && s->waiting == &op) {
        s->waiting = nullptr;  // the stream continues: its bytes are for the next receive
        op.result = -ECANCELED;
        end_later(op);
        return;
    }
    if (accept_stream* const a = accepts_.find(op.on->fd); a != nullptr && a->waiting == &op) {
        a->waiting = nullptr;
        op.result = -ECANCELED;
        end_later(op);
        if (issuer_ == this_thread()) end_shot(*a);
        return;
    }
    if (issuer_ == this_thread()) {
        submit_cancel(op);
    } else {
        cancelled_.push_back(&op);  // no thread runs the loop now; poll() or enter() will look
    }
}

void uring_ring::end_shot(int fd, receive_stream& s) noexcept {
    if (s.armed && !std::exchange(s.cancelling, true)) {
        submit_cancel_of(stream_name(fd, s.generation));
    }
}

void uring_ring::doubt(int fd, receive_stream& s) noexcept {
    if (!streams_.has_doubted()) look_in(look_delay);
    streams_.doubt(fd, s);
}

void uring_ring::look() noexcept {
    std::array<pollfd, looks_max> files;
    nfds_t count = 0;
    while (count != files.size() && streams_.has_doubted()) {
        files[count++] = {streams_.next_doubted(), POLLRDHUP, 0};
    }
    const bool blind = ::poll(files.data(), count, 0) < 0;
    for (const pollfd& file : std::span(files).first(count)) {
        const bool gone = (file.revents & (POLLRDHUP | POLLHUP | POLLERR)) != 0;
        if (gone || blind) end_shot(file.fd, *streams_.find(file.fd));
    }
    if (streams_.has_doubted()) look_in(no_delay);  // the loop's other work comes first
}

void uring_ring::look_in(const kernel_timespec& delay) noexcept {
    sqe& entry = ring_->next_entry();
    ask_time(entry, delay, 0);
    entry.user_data = looking;
}

void uring_ring::close_file(int fd, bool armed, std::uint64_t request) noexcept {
    const bool here = issuer_ == this_thread();
    if (armed && !here) ::shutdown(fd, SHUT_RDWR);
    ::close(fd);
    if (!armed || !here) return;
    submit_cancel_of(request);
    ring_->submit(0, nullptr);
}

}  // namespace coppice::io::uring
