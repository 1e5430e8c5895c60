// lent_memory: blocks that MPI accesses in place of the program's memory.
#pragma once
// MPI cannot cancel a send or a collective. If such an operation is given up because a process has
// failed, MPI, another process, or a network adapter may still access its memory. So an environment
// that watches for failures gives MPI copies, and after a failure it never frees them.

#include <coppice/base/lifetime.hpp>
#include <coppice/mpi/internal/namespaces.hpp>

#include <bit>
#include <cstddef>
#include <cstdlib>
#include <new>

namespace coppice::mpi::internal {

// Sizes are rounded up to powers of two, and a block that was given back is used again. So a
// program of a steady number of operations does not allocate. Some blocks of the smallest size are
// spares: only requests that other processes wait for take them. Threads: the owner.
class lent_memory : immovable {
public:
    // Errors: std::bad_alloc.
    lent_memory() {
        for (std::size_t n = 0; n != spares; ++n) {
            void* const spare = make(size_min);
            if (spare == nullptr) {
                free_all();
                throw std::bad_alloc();
            }
            give_back(spare);
        }
    }
    ~lent_memory() { free_all(); }

    // Returns at least `size` bytes that are aligned for every type; nullptr if memory is missing.
    void* take(std::size_t size, bool takes_spares = false) noexcept {
        if (size > size_max) return nullptr;
        const std::size_t rounded = std::bit_ceil(size < size_min ? size_min : size);
        block*& first = free_[std::countr_zero(rounded)];
        const bool is_small = rounded == size_min;
        if (first == nullptr || (is_small && !takes_spares && small_ <= spares))
            return make(rounded);
        block* const taken = first;
        first = taken->next;
        if (is_small) --small_;
        return taken + 1;
    }
    void give_back(void* memory) noexcept {
        block* const given = static_cast<block*>(memory) - 1;
        given->next = free_[std::countr_zero(given->size)];
        free_[std::countr_zero(given->size)] = given;
        if (given->size == size_min) ++small_;
    }

private:
    // Stands before the memory.
    struct alignas(std::max_align_t) block {
        explicit block(std::size_t s) noexcept : size(s) {}
        std::size_t size;
        block* next = nullptr;  // of the free blocks of this size
    };
    static constexpr std::size_t size_min = 64;
    static constexpr std::size_t size_max = std::size_t{1} << 47;
    static constexpr std::size_t spares = 16;

    static void* make(std::size_t rounded) noexcept {
        void* const made = std::malloc(sizeof(block) + rounded);
        return made == nullptr ? nullptr : ::new (made) block(rounded) + 1;
    }
    void free_all() noexcept {
        for (block* first : free_) {
            while (first != nullptr) {
                block* const next = first->next;
                std::free(first);
                first = next;
            }
        }
    }

    block* free_[48] = {};   // of 2^n bytes each
    std::size_t small_ = 0;  // free blocks of the smallest size
};

}  // namespace coppice::mpi::internal
