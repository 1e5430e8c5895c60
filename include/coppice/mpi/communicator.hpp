// communicator: the processes that operations are between.
#pragma once

#include <coppice/base/internal/check.hpp>
#include <coppice/mpi/internal/engine.hpp>

#include <mpi.h>
#include <cstddef>
#include <system_error>
#include <utility>

namespace coppice::mpi {

class environment;
class communicator;

namespace internal {

struct communicator_access;

}  // namespace internal

// The other end of a message: a rank of the communicator, and a tag from 0 to at least 32767, which
// both ends give. A receive may take messages of any_source and of any_tag.
struct address {
    int rank;     // from 0 to the communicator's size - 1, or any_source
    int tag = 0;  // from 0, or any_tag
};
// For receives and probes.
inline constexpr int any_source = MPI_ANY_SOURCE;
inline constexpr int any_tag = MPI_ANY_TAG;
// The color of split() for a process that is to be in none of the new communicators.
inline constexpr int no_color = MPI_UNDEFINED;

// What is known of a message that has come.
struct envelope {
    int source;
    int tag;
    std::size_t count;  // in objects of the receiver's type
};

// A group of processes, numbered from 0, whose messages no other communicator receives.
//
// Operations on one communicator start in the order in which their functions are called, if these
// calls are ordered. All processes must start collective operations on it in the same order.
//
// Threads: any may start operations, concurrently. Lifetime: the environment outlives it, and it
// outlives its operations. Empty: one that was moved from, or that split() has returned to a
// process with no_color. It only tells that it is empty, is assigned, and is destroyed; an
// operation on it stops the process.
class communicator {
public:
    communicator(communicator&& other) noexcept
        : engine_(std::exchange(other.engine_, nullptr)),
          handle_(other.handle_),
          rank_(other.rank_),
          size_(other.size_),
          is_ours_(other.is_ours_) {}
    communicator& operator=(communicator&& other) noexcept {
        std::swap(engine_, other.engine_);
        std::swap(handle_, other.handle_);
        std::swap(rank_, other.rank_);
        std::swap(size_, other.size_);
        std::swap(is_ours_, other.is_ours_);
        return *this;
    }
    // Frees the communicator, unless it is the world or empty.
    ~communicator();

    // Returns false if it is empty.
    explicit operator bool() const noexcept { return engine_ != nullptr; }
    // Return the number of this process, and how many there are.
    int rank() const noexcept { return rank_; }
    int size() const noexcept { return size_; }

    // Makes a communicator of the same processes. Collective: every process calls it. Blocks: until
    // all have called it, and the environment's other operations with it; call it while a program
    // starts. Errors: std::system_error. If a process has failed, this communicator is revoked, and
    // the new one too, if any process has got it. Threads: any but the environment's own.
    communicator duplicate() const;
    // Makes a communicator of the processes that give the same color, which is 0 or more, ordered
    // by key and then by rank. A process that gives no_color gets an empty one. Collective, also
    // for that process. Blocks, errors, and threads are those of duplicate(). Errors: also
    // invalid_argument, for another color below 0: the process has sent nothing then, and may call
    // again, for which the others wait.
    communicator split(int color, int key = 0) const;

    // Ends all operations on this communicator, except agree(), with errc::process_failed, in all
    // of its processes: what is pending ends soon, and what starts later ends at once. An operation
    // that finds a process that has failed does the same. Other communicators are not concerned,
    // also those made of this one. Does not wait for other processes. Errors: std::system_error,
    // operation_not_supported if the environment cannot recover. Threads: any. Source: ULFM.
    void revoke() const;
    // Makes a communicator of the processes of this one that have not failed, in the order of their
    // ranks, and revokes this one. Collective: every process that lives calls it, and gets an equal
    // one, also if others fail meanwhile. Blocks and threads: as duplicate(). Errors: those of
    // revoke().
    communicator shrink() const;

    // Returns MPI's handle, for call().
    MPI_Comm native_handle() const noexcept { return handle_; }

private:
    friend environment;
    friend internal::communicator_access;
    communicator() noexcept = default;
    communicator(internal::engine& owner, MPI_Comm handle, bool is_ours);
    // `ends_alike`: MPI's call succeeds at all processes that live, or fails at all.
    template <class Make>
    communicator made_by(Make make, const char* what, bool ends_alike) const;
    std::error_code check_made(int returned, MPI_Comm made) const noexcept;
    void check_can_recover(const char* what) const;

    internal::engine* engine_ = nullptr;
    MPI_Comm handle_ = MPI_COMM_NULL;
    int rank_ = 0;
    int size_ = 0;
    bool is_ours_ = false;  // not the world: freed at the end
};

namespace internal {

struct communicator_access {
    static engine& owner(const communicator& c) noexcept {
        COPPICE_CHECK(c.engine_ != nullptr,
                      "mpi: the communicator is empty: it was moved from, or is of a process that "
                      "gave split() no_color");
        return *c.engine_;
    }
};

}  // namespace internal

}  // namespace coppice::mpi
