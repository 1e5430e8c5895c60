// object_tree: how reduce_object() and all_reduce_object() pass objects from process to process.
#pragma once
// In level n of the tree, each process whose rank is a multiple of 2^(n + 1) takes what the process
// 2^n ranks above has combined, and combines it with its own. So each object is that of consecutive
// ranks, and process 0 has the whole in the end. From there the result goes to the root, or down
// the same tree to all processes.
//
// A level is three collective calls, each of which moves bytes between the two processes of each
// pair only. They are collective because a message could match a receive of the program:
//
//   head      giver to taker   the size of the object, and its first bytes
//   verdict   taker to giver   whether it has memory, unless the head had all bytes
//   body      giver to taker   the bytes, if it has
//
// No call allocates, because the other processes wait for this one. A process that has failed goes
// on, and tells in its head that it has no object. So process 0 and the root hear of each failure.
// Source: the binomial tree of MPICH's reductions (Thakur, Rabenseifner, and Gropp 2005).

#include <coppice/mpi/communicator.hpp>
#include <coppice/mpi/internal/bytes.hpp>
#include <coppice/mpi/internal/initiation.hpp>
#include <coppice/mpi/internal/parts_request.hpp>
#include <coppice/mpi/partition.hpp>
#include <coppice/token/use_await.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <span>
#include <utility>

namespace coppice::mpi::internal {

// Threads: one at a time.
class object_tree {
public:
    // The result goes to all processes. Errors: std::bad_alloc, if there is no memory for the
    // sizes, of which there are four for each process.
    explicit object_tree(const communicator& over);
    // It goes to one process.
    object_tree(const communicator& over, int root);

    // Throws std::system_error with invalid_root if there is no such process.
    void check_root() const;
    // Begins the next level. Returns false if there is none.
    bool enter_next_level() noexcept;
    // Returns true if this process gives an object in this level, whose bytes are not there yet.
    bool needs_message() const noexcept { return gives_ && !is_written_ && !has_failed(); }
    // Takes these bytes. Errors: value_too_large.
    void write(bytes message);
    // The calls of a level, in this order.
    enum class part : std::uint8_t { head, verdict, body };
    static constexpr part parts[] = {part::head, part::verdict, part::body};
    // Returns a sender of the call.
    auto pass(part which, const communicator& over) noexcept {
        prepare(which);
        set_count(out_parts_, out_.size());
        set_count(in_parts_, in_.size());
        parts_arguments a(over, parts_kind::all_to_all);
        a.from = memory_of(out_);
        a.into = memory_of(in_);
        a.from_parts = &out_parts_;
        a.into_parts = &in_parts_;
        a.holds_others = true;
        return initiate<parts_request>(a, use_await);
    }
    // Returns true if an object has come in this level.
    bool has_come() const noexcept { return takes_ && !has_failed(); }
    std::span<const std::byte> came() const noexcept { return came_; }
    // Returns true if it is the result, and not one to combine.
    bool is_result() const noexcept { return !goes_up_; }
    // Gives what has come to others in later levels.
    void pass_on() noexcept {
        message_.swap(came_);
        is_written_ = true;
    }
    // Returns true if this process is one that the result goes to.
    bool gets_result() const noexcept { return is_for_all_ || root_ == rank_; }
    // Keeps the exception of this process, if it is not null.
    void note(std::exception_ptr failure) noexcept {
        if (failure) failure_ = std::move(failure);
    }
    const std::exception_ptr& failure() const noexcept { return failure_; }

private:
    static constexpr std::uint64_t no_object = UINT64_MAX;
    // With what MPI's copies need, it has the size of a spare block (lent_memory.hpp).
    struct head {
        std::uint64_t size;
        std::array<std::byte, 40> first;
        // Returns true if there is an object with more bytes.
        bool is_part() const noexcept { return size != no_object && size > first.size(); }
    };

    bool has_failed() const noexcept { return failure_ != nullptr || has_heard_of_failure_; }
    void enter_level(bool is_down) noexcept;
    void pair(std::int64_t giver, std::int64_t taker) noexcept;
    void prepare(part which) noexcept;
    void prepare_head() noexcept;
    void prepare_verdict() noexcept;
    void prepare_body() noexcept;
    void make_room() noexcept;
    void set_count(partition& of, std::size_t count) const noexcept;

    int rank_;
    int size_;
    int root_ = -1;
    bool is_for_all_ = false;
    std::int64_t step_ = 0;  // ranks between the processes of a pair
    bool goes_up_ = true;
    int partner_ = 0;
    bool gives_ = false;
    bool takes_ = false;
    bool is_written_ = false;  // message_ is what this process gives
    bool has_room_ = false;
    bool has_heard_of_failure_ = false;  // of another process
    std::exception_ptr failure_;
    bytes message_;
    bytes came_;
    head given_{};
    head taken_{};
    std::span<const std::byte> out_;  // what the next call gives and takes
    std::span<std::byte> in_;
    partition out_parts_;
    partition in_parts_;
};

}  // namespace coppice::mpi::internal
