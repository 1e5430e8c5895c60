// Receive buffers that a loop lends out only while there is data in them.
#pragma once
// An idle connection holds no memory for its input: the loop's pool gives a buffer to an operation
// when bytes have arrived, and gets it back when they have been consumed.

#include <coppice/base/lifetime.hpp>

#include <cstddef>
#include <memory>
#include <new>
#include <span>
#include <utility>
#include <vector>

namespace coppice::io {

// Threads: its loop's. Cost: take and give are a pop and a push; a slab is allocated when none is
// free, and kept until the pool ends. What has never been taken has never been touched.
class buffer_pool : immovable {
public:
    static constexpr std::size_t buffer_bytes = 4096;

    // Errors: std::bad_alloc.
    std::byte* take() {
        if (free_ == nullptr) [[unlikely]]
            return take_fresh();
        free_buffer* const first = free_;
        free_ = first->next;
        return reinterpret_cast<std::byte*>(first);
    }
    // nullptr: there is no memory.
    std::byte* try_take() noexcept {
        try {
            return take();
        } catch (const std::bad_alloc&) {
            return nullptr;
        }
    }
    void give(std::byte* buffer) noexcept {
        free_ = ::new (static_cast<void*>(buffer)) free_buffer{free_};
    }

private:
    static constexpr std::size_t slab_buffers = 32;
    struct free_buffer {  // at the begin of its memory
        free_buffer* next;
    };
    std::byte* take_fresh();

    std::vector<std::unique_ptr<std::byte[]>> slabs_;
    std::size_t fresh_ = 0;  // of the last slab, at its end: never taken
    free_buffer* free_ = nullptr;
};

// Bytes in a buffer that goes back to its pool when this ends. Move-only. Threads: its loop's.
class pooled_buffer {
public:
    pooled_buffer() noexcept = default;
    // `size` bytes in `data`, a buffer that pool.take() has given.
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

    // Lifetime: until release() or the end.
    std::span<std::byte> bytes() const noexcept { return {data_, pool_ == nullptr ? 0 : size_}; }
    bool empty() const noexcept { return pool_ == nullptr || size_ == 0; }
    // Gives the buffer back to its pool now; nothing happens without one.
    void release() noexcept {
        if (pool_ != nullptr) std::exchange(pool_, nullptr)->give(data_);
    }

private:
    buffer_pool* pool_ = nullptr;
    std::byte* data_ = nullptr;
    std::size_t size_ = 0;
};

}  // namespace coppice::io
