// Bytes that a multishot receive has brought before the program asked for them; for uring_ring.hpp.
#pragma once
// A socket's first receive_pooled arms one request that brings every buffer that fills, without a
// further submission. Bytes that come while no receive is pending wait here, in order, for the next
// receive of any kind. If too many buffers wait (waiting_max), the request is canceled. Further
// bytes then wait in the kernel, and that holds the peer back.
//
// States, by descriptor number:
//   idle     not armed, nothing waits: a receive of another kind goes to the kernel itself
//   armed    the kernel has the request; an operation may wait for it
//   ended    not armed; `end` says why: every receive reports an end (0), the next one an error
//
// A program that gets long messages asks for one buffer at a time (one_by_one). The stream is idle
// when that has come, and the program receives the rest of the message into its own memory.
//
// The number of a closed file is used again; `generation` distinguishes the completions of the two.
//
// A request may stay silent although its peer is gone. When bytes and a reset (for a local socket:
// an end) arrive together while the request is being armed, the kernel is woken once for both,
// takes the bytes, and waits for more. This was measured on Linux 6.18; kernels without the fix of
// liburing's issue 1549 may do it whenever both arrive between two turns. A stream that brings
// bytes is therefore doubted: the ring looks at it once, a moment later. If its peer is gone, the
// request is canceled, and the next request tells how the stream ended.

#include <coppice/io/buffer.hpp>
#include <coppice/io/internal/operation.hpp>

#include <sys/uio.h>
#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <memory>
#include <new>
#include <span>
#include <utility>
#include <vector>

namespace coppice::io {

// Stored at the end of each buffer that the kernel may fill.
struct filled_buffer {
    filled_buffer* next = nullptr;
    std::uint32_t begin = 0;  // the bytes before it have been taken
    std::uint32_t end = 0;
    // bytes that fit before this structure
    static constexpr std::size_t capacity = buffer_pool::buffer_bytes - 16;

    static filled_buffer& in(std::byte* buffer) noexcept {
        return *std::launder(reinterpret_cast<filled_buffer*>(buffer + capacity));
    }
    static filled_buffer& make(std::byte* buffer, std::size_t size) noexcept {
        filled_buffer* const made = ::new (static_cast<void*>(buffer + capacity)) filled_buffer();
        made->end = static_cast<std::uint32_t>(size);
        return *made;
    }
    std::byte* bytes() noexcept { return reinterpret_cast<std::byte*>(this) - capacity; }
};
static_assert(sizeof(filled_buffer) == buffer_pool::buffer_bytes - filled_buffer::capacity);

struct receive_stream {
    static constexpr std::int16_t open = 1;
    static constexpr unsigned waiting_max = 8;
    static constexpr int no_file = -1;
    static constexpr int not_doubted = -2;

    std::uint32_t generation = 0;
    int next_doubted = not_doubted;  // the next doubted stream's number; no_file: this is the last
    // 0: the end of the stream; negative: an error that no receive has reported
    std::int16_t end = open;
    std::uint16_t count = 0;  // at most the number of lent buffers
    bool armed = false;
    bool cancelling = false;
    bool served = false;      // `waiting` has its result
    bool one_by_one = false;  // the next request brings one buffer only
    filled_buffer* first = nullptr;
    filled_buffer* last = nullptr;
    internal::ring_operation* waiting = nullptr;

    bool in_use() const noexcept { return armed || first != nullptr || end != open; }

    void push(filled_buffer& b) noexcept {
        (first == nullptr ? first : last->next) = &b;
        last = &b;
        ++count;
    }
    filled_buffer* pop() noexcept {
        filled_buffer* const b = first;
        if (b != nullptr) {
            first = b->next;
            --count;
        }
        return b;
    }
    void drop(buffer_pool& pool) noexcept {
        while (filled_buffer* const b = pop()) pool.give(b->bytes());
    }

    // Takes a buffer that has come. A waiting pooled receive gets it as it is; otherwise it is
    // queued.
    void take(std::byte* data, int size) noexcept {
        if (waiting != nullptr && !served && first == nullptr &&
            waiting->code == opcode::receive_pooled) [[likely]] {
            waiting->data = data;
            waiting->result = size;
            served = true;
        } else {
            push(filled_buffer::make(data, static_cast<std::size_t>(size)));
        }
    }

    // Gives the operation what is there. Returns false if there is nothing yet.
    bool serve(internal::ring_operation& op, buffer_pool& pool) noexcept {
        return (first != nullptr || end != open) && serve_what_waits(op, pool);
    }

private:
    [[gnu::noinline]] bool serve_what_waits(internal::ring_operation& op,
                                            buffer_pool& pool) noexcept {
        if (first == nullptr) {
            op.result = end;
            // -ENOMEM stays: bytes were lost, so the stream cannot continue
            if (end < 0 && end != -ENOMEM) end = open;
            return true;
        }
        if (op.code == opcode::receive_pooled) {
            filled_buffer& b = *pop();
            const std::size_t size = b.end - b.begin;
            op.data = b.bytes();
            if (b.begin != 0) std::memmove(op.data, op.data + b.begin, size);
            op.result = static_cast<int>(size);
        } else if (op.code == opcode::receive) {
            op.result = static_cast<int>(copy({op.data, op.size}, pool));
        } else {
            std::size_t copied = 0;
            for (const iovec& piece : std::span(op.message->msg_iov, op.message->msg_iovlen)) {
                copied += copy({static_cast<std::byte*>(piece.iov_base), piece.iov_len}, pool);
            }
            op.result = static_cast<int>(copied);
        }
        return true;
    }

    std::size_t copy(std::span<std::byte> into, buffer_pool& pool) noexcept {
        std::size_t copied = 0;
        while (first != nullptr && copied != into.size()) {
            filled_buffer& b = *first;
            const std::size_t size = std::min<std::size_t>(into.size() - copied, b.end - b.begin);
            std::memcpy(into.data() + copied, b.bytes() + b.begin, size);
            copied += size;
            b.begin += static_cast<std::uint32_t>(size);
            if (b.begin == b.end) pool.give(pop()->bytes());
        }
        return copied;
    }
};

static_assert(sizeof(receive_stream) <= 40 || sizeof(void*) != 8);  // one for each idle connection

// The streams of a ring, by descriptor number. Threads: the loop's.
class receive_streams {
public:
    // Returns nullptr if this file has none yet.
    receive_stream* find(int fd) const noexcept {
        const auto index = static_cast<std::size_t>(fd);
        if (index / slab_streams >= slabs_.size()) [[unlikely]]
            return nullptr;
        return &slabs_[index / slab_streams][index % slab_streams];
    }
    // Returns nullptr if there is no memory.
    receive_stream* find_or_make(int fd) noexcept {
        receive_stream* const s = find(fd);
        return s != nullptr ? s : make(fd);
    }
    // Called when the kernel's ring is gone: no stream is armed or doubted any longer.
    void disarm_all() noexcept {
        while (has_doubted()) (void)next_doubted();
        for (const auto& slab : slabs_) {
            for (std::size_t i = 0; i != slab_streams; ++i) {
                slab[i].armed = slab[i].cancelling = false;
            }
        }
    }

    void doubt(int fd, receive_stream& s) noexcept { s.next_doubted = std::exchange(doubted_, fd); }
    bool has_doubted() const noexcept { return doubted_ != receive_stream::no_file; }
    // Removes a stream from the doubted ones and returns its number. There must be one. Its file
    // may have been closed since.
    int next_doubted() noexcept {
        const int fd = doubted_;
        doubted_ = std::exchange(find(fd)->next_doubted, receive_stream::not_doubted);
        return fd;
    }

private:
    [[gnu::cold, gnu::noinline]] receive_stream* make(int fd) noexcept {
        try {
            while (static_cast<std::size_t>(fd) / slab_streams >= slabs_.size()) {
                slabs_.push_back(std::make_unique<receive_stream[]>(slab_streams));
            }
        } catch (const std::bad_alloc&) {
            return nullptr;
        }
        return find(fd);
    }

    static constexpr std::size_t slab_streams = 128;
    std::vector<std::unique_ptr<receive_stream[]>> slabs_;
    int doubted_ = receive_stream::no_file;  // the stream doubted last
};

}  // namespace coppice::io
