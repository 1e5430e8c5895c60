// What waits in an event loop: operations, descriptors, and the codes that describe them to a ring.
#pragma once

#include <coppice/base/internal/namespaces.hpp>
#include <coppice/base/intrusive.hpp>
#include <coppice/base/lifetime.hpp>
#include <coppice/io/endpoint.hpp>

#include <sys/socket.h>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

namespace coppice::io::internal {

// Something that completes on a loop's thread; embedded in the object that waits for it. complete()
// is called once for each start or post. The operation may be destroyed when complete() returns.
struct operation : immovable {
    explicit operation(void (*function)(operation*) noexcept) noexcept : complete(function) {}
    void (*complete)(operation*) noexcept;
    operation* next = nullptr;  // used by the queue that holds the operation
};
// Operations that wait for a turn, oldest first.
using operation_queue = intrusive_queue<operation, &operation::next>;

// The order matters: reading operations first, then writing ones, then operations on files.
enum class opcode : std::uint8_t {
    accept,           // result: the new file descriptor
    receive,          // into data/size; result: bytes, 0 at the end of the stream
    receive_pooled,   // data becomes a buffer of the context's pool if result > 0
    receive_message,  // into what message describes; result: bytes
    read,             // read(2), of the eventfd of a signal_set
    connect,          // to peer
    send,             // from data/size; result: bytes taken by the kernel
    send_message,     // what message describes; result: bytes taken by the kernel
    read_at,          // into data/size from offset of a file; result: bytes, 0 at its end
    write_at,         // from data/size to offset of a file; result: bytes
    sync,             // flushes a file to its disk
};

// Returns true for operations on files, of which any number may be pending on one descriptor.
constexpr bool is_file_operation(opcode code) noexcept {
    return code >= opcode::read_at;
}
// For the other operations: returns true for those that wait until the file accepts bytes, or is
// connected.
constexpr bool is_writing(opcode code) noexcept {
    return code >= opcode::connect;
}

class event_loop;
struct descriptor;
struct of_one_file;  // the tag of a descriptor's list of file operations

// An operation on a descriptor. The ring owns it from start to complete().
struct ring_operation : operation, list_hook<of_one_file> {
    ring_operation(void (*function)(operation*) noexcept, opcode what) noexcept
        : operation(function), code(what) {}
    descriptor* on = nullptr;
    std::byte* data = nullptr;
    std::size_t size = 0;
    union {  // the operation's code says which member is valid
        std::uint64_t offset = 0;
        const sockaddr* peer;  // of a connect; the kernel reads it
        msghdr* message;
    };
    socklen_t peer_size = 0;
    int result = 0;  // >= 0, or a negative errno
    opcode code;
    bool cancelled = false;  // cancel() was called since the start; used only by the ring
    // the result is known, and finish() will be called; used only by the ring
    bool ended = false;
};

// An open file in a loop. Slots are reused, and never freed before the context, so that a late
// event finds either the same file or a slot marked closed. A descriptor is also an operation:
// posting it carries a close() to its loop. `next` also links the free slots.
struct descriptor : operation {
    descriptor() noexcept : operation(&close_late) {}
    static void close_late(operation* op) noexcept;

    int fd = -1;
    std::uint32_t generation = 0;  // counts the files that have used this slot
    event_loop* owner = nullptr;
    std::unique_ptr<const std::string> name;  // of a file: the path as given, for messages
    ring_operation* reading = nullptr;        // at most one pending operation in each direction
    ring_operation* writing = nullptr;
    intrusive_list<ring_operation, of_one_file> file_operations;
    bool readable = false;  // epoll: a read may succeed; cleared by EAGAIN and short reads
    bool writable = false;
    bool hung_up = false;   // epoll: the end of the stream was reported
    bool closing = false;   // close() was called and an operation is still pending
    bool attached = false;  // the ring knows it
    bool waits = true;      // operations may have to wait; false for regular files

    // For all operations except those on files.
    ring_operation*& slot(opcode code) noexcept { return is_writing(code) ? writing : reading; }
    bool is_pending(const ring_operation& op) noexcept {
        return is_file_operation(op.code) ? op.linked() : slot(op.code) == &op;
    }
    bool idle() const noexcept {
        return reading == nullptr && writing == nullptr && file_operations.empty();
    }
    // Visits the pending operations. `visit` may end operations, but must not start any.
    template <class Visit>
    void for_each_pending(Visit visit) {
        if (reading != nullptr) visit(*reading);
        if (writing != nullptr) visit(*writing);
        file_operations.for_each(visit);
    }
};

}  // namespace coppice::io::internal
