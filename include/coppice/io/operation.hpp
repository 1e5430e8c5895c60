// What waits in an event loop: operations, descriptors, and the words that describe them to a ring.
#pragma once

#include <coppice/base/intrusive.hpp>
#include <coppice/base/lifetime.hpp>
#include <coppice/io/endpoint.hpp>

#include <cstddef>
#include <cstdint>

namespace coppice::io {

class context;

// Something that completes on a loop's thread; embedded in whoever waits for it.
// complete() is called once for each start or post; the operation may be gone when it returns.
struct operation : immovable {
    explicit operation(void (*function)(operation*) noexcept) noexcept : complete(function) {}
    void (*complete)(operation*) noexcept;
    operation* next = nullptr;  // owned by the queue that holds the operation
};
using operation_queue = intrusive_queue<operation, &operation::next>;

enum class opcode : std::uint8_t {
    accept,          // result: the new file descriptor; peer is filled
    connect,         // to peer
    receive,         // into data/size; result: bytes, 0 at the end of the stream
    receive_pooled,  // data becomes a buffer of the context's pool if result > 0
    send,            // from data/size; result: bytes taken by the kernel
    read,            // read(2), for eventfd and signalfd
};

struct descriptor;

// An operation on a descriptor. The ring owns it from start to complete().
struct ring_operation : operation {
    ring_operation(void (*function)(operation*) noexcept, opcode what) noexcept
        : operation(function), code(what) {}
    descriptor* on = nullptr;
    std::byte* data = nullptr;
    std::size_t size = 0;
    int result = 0;  // >= 0, or a negative errno
    opcode code;
    bool cancelled = false;  // cancel() was called since the start; owned by the ring
    socklen_t peer_size = 0;
    sockaddr_storage* peer = nullptr;  // accept: written; connect: read
};

// An open file in a loop. Slots are recycled, never freed before the context, so that a late event
// finds either the same file or a slot that says it is closed.
struct descriptor : immovable {
    int fd = -1;
    context* owner = nullptr;
    ring_operation* reading = nullptr;  // at most one pending operation for each direction
    ring_operation* writing = nullptr;
    bool readable = false;  // epoll: reading may succeed; cleared by EAGAIN and short reads
    bool writable = false;
    bool hung_up = false;  // epoll: the end of the stream has been announced
    bool closing = false;  // close() was called and an operation is still pending
    descriptor* next = nullptr;

    ring_operation*& pending(opcode code) noexcept {
        return code == opcode::send || code == opcode::connect ? writing : reading;
    }
    bool idle() const noexcept { return reading == nullptr && writing == nullptr; }
};

}  // namespace coppice::io
