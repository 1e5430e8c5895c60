// node_arena: memory for the nodes of a body, in blocks that are kept when the nodes are destroyed.
#pragma once

#include <coppice/base/lifetime.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <vector>

namespace coppice::internal {

// Threads: one at a time. Lifetime: the owner destroys what it made here before reset().
class node_arena : immovable {
public:
    // Returns memory. Errors: std::bad_alloc. Cost: an allocation when a block is full.
    void* allocate(std::size_t bytes, std::size_t alignment) {
        for (; current_ != blocks_.size(); ++current_, used_ = 0) {
            const block& b = blocks_[current_];
            const auto begin = reinterpret_cast<std::uintptr_t>(b.memory.get());
            const std::size_t at =
                ((begin + used_ + alignment - 1) & ~(std::uintptr_t(alignment) - 1)) - begin;
            if (at + bytes > b.size) continue;
            used_ = at + bytes;
            return b.memory.get() + at;
        }
        const std::size_t size = std::max(next_size_, bytes + alignment);
        blocks_.push_back({std::unique_ptr<std::byte[]>(new std::byte[size]), size});
        next_size_ = std::min(2 * next_size_, block_max);
        return allocate(bytes, alignment);
    }
    // Makes all memory free again, and keeps the blocks.
    void reset() noexcept { current_ = used_ = 0; }

private:
    struct block {
        std::unique_ptr<std::byte[]> memory;
        std::size_t size;
    };
    static constexpr std::size_t block_max = 1 << 16;  // bytes

    std::vector<block> blocks_;
    std::size_t current_ = 0;  // the block in use
    std::size_t used_ = 0;     // bytes of it
    std::size_t next_size_ = 1 << 10;
};

}  // namespace coppice::internal
