// The floor with io_uring: one issuer, deferred task work, multishot accept and receive into a ring
// of buffers, one enter per batch, and one send of constants per buffer received.
#include "raw_loop.hpp"
#include "rivals.hpp"

#include "../../src/io/uring_abi.hpp"

#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include <coppice/base/atomic.hpp>

namespace bench_http {

namespace {

using namespace coppice::io::uring;
using coppice::acquire;
using coppice::atomic;
using coppice::release;

constexpr std::uint32_t buffers = 256;
constexpr std::uint32_t buffer_bytes = 4096;
constexpr std::uint16_t multishot_accept = 1u << 0;
constexpr std::uint16_t multishot_receive = 1u << 1;
constexpr std::uint32_t more_to_come = 1u << 1;

enum class kind : std::uint64_t { accept, receive, send };
std::uint64_t name(kind what, std::uint64_t fd, std::uint64_t buffer = 0) {
    return static_cast<std::uint64_t>(what) | fd << 8 | buffer << 32;
}

template <class T>
atomic<T>& shared(void* at) {
    return *static_cast<atomic<T>*>(at);
}

class loop {
public:
    loop() {
        params p{};
        p.flags = setup_single_issuer | setup_defer_taskrun | setup_cqsize | setup_submit_all;
        p.cq_entries = 4096;
        fd_ = static_cast<int>(::syscall(syscall_setup, 256, &p));
        if (fd_ < 0) {
            std::perror("io_uring_setup");
            std::exit(1);
        }
        const std::size_t size = p.cq_off.cqes + p.cq_entries * sizeof(cqe);
        ring_ = static_cast<char*>(map(size, MAP_SHARED, fd_, offset_sq_ring));
        sqes_ = static_cast<sqe*>(map(p.sq_entries * sizeof(sqe), MAP_SHARED, fd_, offset_sqes));
        p_ = p;
        auto* const array = reinterpret_cast<std::uint32_t*>(ring_ + p.sq_off.array);
        for (std::uint32_t i = 0; i != p.sq_entries; ++i) array[i] = i;
        places_ = static_cast<provided_buffer*>(
            map(buffers * sizeof(provided_buffer), MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
        buffer_ring_registration registration{};
        registration.ring_addr = reinterpret_cast<std::uint64_t>(places_);
        registration.ring_entries = buffers;
        ::syscall(syscall_register, fd_, register_pbuf_ring, &registration, 1);
        for (std::uint16_t id = 0; id != buffers; ++id) lend(id);
    }

    sqe& next() {
        if (tail_ - shared<std::uint32_t>(ring_ + p_.sq_off.head).load(acquire) == p_.sq_entries) {
            enter(0);
        }
        sqe& entry = sqes_[tail_++ & (p_.sq_entries - 1)];
        std::memset(&entry, 0, sizeof entry);
        return entry;
    }
    void enter(unsigned least) {
        shared<std::uint32_t>(ring_ + p_.sq_off.tail).store(tail_, release);
        const std::uint32_t queued =
            tail_ - shared<std::uint32_t>(ring_ + p_.sq_off.head).load(acquire);
        ::syscall(syscall_enter, fd_, queued, least, enter_getevents, nullptr, 0);
    }
    void lend(std::uint16_t id) {
        provided_buffer& place = places_[lent_++ & (buffers - 1)];
        place.addr = reinterpret_cast<std::uint64_t>(buffer(id));
        place.len = buffer_bytes;
        place.bid = id;
        shared<std::uint16_t>(&places_->resv).store(lent_, release);
    }
    char* buffer(std::uint64_t id) { return memory_.data() + id * buffer_bytes; }

    template <class Visit>
    void take(Visit visit) {
        auto& head = shared<std::uint32_t>(ring_ + p_.cq_off.head);
        const std::uint32_t tail = shared<std::uint32_t>(ring_ + p_.cq_off.tail).load(acquire);
        auto* const cqes = reinterpret_cast<cqe*>(ring_ + p_.cq_off.cqes);
        std::uint32_t at = head.load(coppice::relaxed);
        for (; at != tail; ++at) visit(cqes[at & (p_.cq_entries - 1)]);
        head.store(at, release);
    }

private:
    static void* map(std::size_t size, int flags, int fd, std::uint64_t offset) {
        return ::mmap(nullptr, size, PROT_READ | PROT_WRITE, flags, fd, static_cast<off_t>(offset));
    }
    int fd_ = -1;
    char* ring_ = nullptr;
    sqe* sqes_ = nullptr;
    params p_{};
    std::uint32_t tail_ = 0;
    provided_buffer* places_ = nullptr;
    std::uint16_t lent_ = 0;
    std::vector<char> memory_ = std::vector<char>(buffers * buffer_bytes);
};

void accept(loop& ring, int listener) {
    sqe& entry = ring.next();
    entry.opcode = op::accept;
    entry.fd = listener;
    entry.ioprio = multishot_accept;
    entry.user_data = name(kind::accept, 0);
}
void receive(loop& ring, int fd) {
    sqe& entry = ring.next();
    entry.opcode = op::recv;
    entry.fd = fd;
    entry.ioprio = multishot_receive;
    entry.flags = sqe_buffer_select;
    entry.user_data = name(kind::receive, static_cast<std::uint64_t>(fd));
}
// The name's last part says whether the connection ends with this answer.
void send(loop& ring, int fd, std::string_view answers, bool close) {
    sqe& entry = ring.next();
    entry.opcode = op::send;
    entry.fd = fd;
    entry.addr = reinterpret_cast<std::uint64_t>(answers.data());
    entry.len = static_cast<std::uint32_t>(answers.size());
    entry.op_flags = MSG_NOSIGNAL;
    entry.user_data = name(kind::send, static_cast<std::uint64_t>(fd), close);
}

}  // namespace

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
                // The receive ends with it, and closes.
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
