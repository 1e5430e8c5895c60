// Memory that streams receive into and send from: the caller's pieces, and buffers of the loop.
#pragma once
// A loop lends its buffers only while they hold data. An idle connection holds no memory for its
// input. The loop's pool lends a buffer to an operation when bytes have arrived, and gets it back
// when they have been consumed.

#include <coppice/base/lifetime.hpp>

#include <sys/uio.h>
#include <cstddef>
#include <memory>
#include <new>
#include <span>
#include <utility>
#include <vector>

namespace coppice::io {

// Pieces of memory for lists of pieces, in the kernel's form (iovec): a mutable_buffer is received
// into, a const_buffer is sent from.
class mutable_buffer {
public:
    mutable_buffer() noexcept = default;
    mutable_buffer(std::span<std::byte> bytes) noexcept : kernels_{bytes.data(), bytes.size()} {}
    std::size_t size() const noexcept { return kernels_.iov_len; }

private:
    iovec kernels_{};
};
class const_buffer {
public:
    const_buffer() noexcept = default;
    const_buffer(std::span<const std::byte> bytes) noexcept
        : kernels_{const_cast<std::byte*>(bytes.data()), bytes.size()} {}
    std::size_t size() const noexcept { return kernels_.iov_len; }
    const iovec& kernels() const noexcept { return kernels_; }

private:
    iovec kernels_{};
};
static_assert(sizeof(mutable_buffer) == sizeof(iovec) && sizeof(const_buffer) == sizeof(iovec));

// A pool of buffers of one size.
// Threads: the loop's only. Cost: take() and give() are a pop and a push. The pool allocates a slab
// when no buffer is free, and keeps it until the pool is destroyed. A buffer that was never taken
// was never touched, so the kernel need not back it with memory.
class buffer_pool : immovable {
public:
    static constexpr std::size_t buffer_bytes = 4096;

    // Returns a buffer of buffer_bytes bytes. Errors: std::bad_alloc.
    std::byte* take() {
        if (free_ == nullptr) [[unlikely]]
            return take_fresh();
        free_buffer* const first = free_;
        free_ = first->next;
        return reinterpret_cast<std::byte*>(first);
    }
    // Returns a buffer, or nullptr if there is no memory.
    std::byte* try_take() noexcept {
        try {
            return take();
        } catch (const std::bad_alloc&) {
            return nullptr;
        }
    }
    // Takes back a buffer that take() or try_take() returned.
    void give(std::byte* buffer) noexcept {
        free_ = ::new (static_cast<void*>(buffer)) free_buffer{free_};
    }

private:
    static constexpr std::size_t slab_buffers = 32;
    struct free_buffer {  // stored at the start of a free buffer
        free_buffer* next;
    };
    std::byte* take_fresh();

    std::vector<std::unique_ptr<std::byte[]>> slabs_;
    std::size_t fresh_ = 0;  // buffers at the end of the last slab that were never taken
    free_buffer* free_ = nullptr;
};

// Bytes in a buffer that returns to its pool when this object is destroyed. Move-only. Threads: the
// loop's only.
class pooled_buffer {
public:
    pooled_buffer() noexcept = default;
    // Owns `data`, a buffer from pool.take(), whose first `size` bytes are the contents.
    pooled_buffer(buffer_pool& pool, std::byte* data, std::size_t size) noexcept
        : pool_(&pool), data_(data), size_(size) {}
    pooled_buffer(pooled_buffer&& other) noexcept
        : pool_(std::exchange(other.pool_, nullptr)), data_(other.data_), size_(other.size_) {}
    pooled_buffer& operator=(pooled_buffer&& other) noexcept {
        release();
        pool_ = std::exchange(other.pool_, nullptr);
        data_ = other.data_;
        size_ = other.size_;
        return *this;
    }
    ~pooled_buffer() { release(); }

    // Returns the contents. Lifetime: valid until release() or destruction.
    std::span<std::byte> bytes() const noexcept { return {data_, pool_ == nullptr ? 0 : size_}; }
    // Returns true if there are no bytes.
    bool empty() const noexcept { return pool_ == nullptr || size_ == 0; }
    // Returns the buffer to its pool now. Does nothing if there is no buffer.
    void release() noexcept {
        if (pool_ != nullptr) std::exchange(pool_, nullptr)->give(data_);
    }

private:
    buffer_pool* pool_ = nullptr;
    std::byte* data_ = nullptr;
    std::size_t size_ = 0;
};

}  // namespace coppice::io
