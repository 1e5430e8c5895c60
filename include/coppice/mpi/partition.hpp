// partition: how memory is divided between the processes of a communicator; parted: both.
#pragma once

#include <coppice/mpi/internal/element.hpp>

#include <cstddef>
#include <span>
#include <vector>

namespace coppice::mpi {

class partition;

namespace internal {

struct partition_access;

}  // namespace internal

// Divides memory into parts that follow each other; part n belongs to process n. Counts are of
// objects.
//
// Threads: as a const container.
class partition {
public:
    // No parts.
    partition() = default;
    // Makes a part of so many objects for each count. Errors: std::bad_alloc; std::system_error
    // with value_too_large, if all parts have more than 2^31 - 1 objects together, which is what
    // MPI's calls can count.
    explicit partition(std::span<const std::size_t> counts);
    // Makes `parts` parts of `total` objects, none larger than another by more than one object.
    // Errors: as above. A number of parts below 1 stops the process.
    static partition even(std::size_t total, int parts);

    // Return how many parts and how many objects there are.
    int parts() const noexcept { return static_cast<int>(counts_.size()); }
    std::size_t total() const noexcept { return total_; }
    // Return how many objects part n has, and how many come before it. O(1).
    std::size_t count(int n) const noexcept {
        return static_cast<std::size_t>(counts_[static_cast<std::size_t>(n)]);
    }
    std::size_t offset(int n) const noexcept {
        return static_cast<std::size_t>(offsets_[static_cast<std::size_t>(n)]);
    }

private:
    friend internal::partition_access;
    std::vector<int> counts_;  // as MPI takes them
    std::vector<int> offsets_;
    std::size_t total_ = 0;
};

// Objects of which the receiver does not know how many come: the operation gives `objects` its
// size, and says in `parts` which are from which process.
template <transferable T>
struct parted {
    std::vector<T> objects;  // of all parts, one after the other
    partition parts;         // how many are from which process

    // Returns the objects of process n. Lifetime: until `objects` changes.
    std::span<T> part(int n) noexcept {
        return std::span<T>(objects).subspan(parts.offset(n), parts.count(n));
    }
    std::span<const T> part(int n) const noexcept {
        return std::span<const T>(objects).subspan(parts.offset(n), parts.count(n));
    }
};

namespace internal {

struct partition_access {
    static std::vector<int>& counts(partition& p) noexcept { return p.counts_; }
    static const int* counts(const partition& p) noexcept { return p.counts_.data(); }
    static const int* offsets(const partition& p) noexcept { return p.offsets_.data(); }
    // Makes room for so many parts. Errors: std::bad_alloc.
    static void resize(partition& p, std::size_t parts);
    // Derives the rest from counts that were received; false: they are too many together.
    [[nodiscard]] static bool derive(partition& p) noexcept;
};

}  // namespace internal

}  // namespace coppice::mpi
