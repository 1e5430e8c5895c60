// window_request: the requests of window.hpp; window_state: the memory that they access.
#pragma once

#include <coppice/base/lifetime.hpp>
#include <coppice/mpi/communicator.hpp>
#include <coppice/mpi/internal/element.hpp>
#include <coppice/mpi/internal/named_request.hpp>
#include <coppice/mpi/internal/request.hpp>

#include <mpi.h>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <system_error>
#include <vector>

namespace coppice::mpi::internal {

class window_state : immovable {
public:
    window_state(const communicator& over, std::size_t count, std::size_t size,
                 std::size_t alignment);
    ~window_state();
    void* base() const noexcept { return base_; }
    int rank() const noexcept { return own_.rank(); }
    std::size_t count(int rank) const noexcept {
        return rank < 0 || rank >= own_.size() ? 0 : there(rank).count;
    }
    // Returns where an object of a process is in its memory, in bytes.
    MPI_Aint displacement(int rank, std::size_t offset) const noexcept {
        return static_cast<MPI_Aint>(there(rank).skipped + offset * size_);
    }
    const communicator& own() const noexcept { return own_; }
    MPI_Win handle() const noexcept { return handle_; }

private:
    // The memory of a process.
    struct share {
        std::size_t count;
        std::size_t skipped;  // bytes before the first object, so that it is aligned
    };
    using shares = std::vector<share>;
    // What MPI writes when it makes a window.
    struct opened {
        void* base = nullptr;
        MPI_Win handle = MPI_WIN_NULL;
    };
    std::error_code open(std::size_t count, std::size_t alignment) noexcept;
    int open(std::size_t count, std::size_t alignment, opened& made, shares& all) noexcept;
    int make(MPI_Aint bytes, opened& made) noexcept;
    bool fits(std::size_t count, std::size_t alignment) const noexcept;
    const share& there(int rank) const noexcept {
        return (*shares_)[static_cast<std::size_t>(rank)];
    }

    // Made before the communicator: a process without memory has started nothing. Shared with the
    // owner's call of MPI that writes it, which does not return if a process fails.
    std::shared_ptr<shares> shares_;
    std::size_t size_;  // of an object
    communicator own_;  // for the barriers of fences
    std::byte* base_ = nullptr;
    MPI_Win handle_ = MPI_WIN_NULL;
};

enum class window_call : std::uint8_t {
    put,
    get,
    accumulate,
    fetch_accumulate,
    compare_exchange,
    flush,
    fence
};

struct window_arguments {
    window_arguments(window_state& w, window_call c, int to, std::size_t at) noexcept
        : owner(&communicator_access::owner(w.own())), state(&w), what(c), rank(to), offset(at) {}
    engine* owner;
    window_state* state;
    window_call what;
    integer_reduction op = reduction::sum;  // any
    int rank;
    std::size_t offset;
    memory from;
    memory into;
};

class window_request : public request {
public:
    using arguments = window_arguments;
    using value_type = void;
    static constexpr const char* name = "operation of a window";
    static constexpr bool can_cancel = false;
    explicit window_request(const window_arguments& a) noexcept
        : request(*a.owner, a.state->own().native_handle(), can_cancel, true), call_(a) {}

protected:
    ~window_request() = default;
    // Tells the memory, if the request has it in itself.
    void use(const memory& from, const memory& into) noexcept {
        call_.from = from;
        call_.into = into;
    }

private:
    outcome start(handles& made) noexcept final;
    void keep(const MPI_Status&) noexcept final;
    void return_results() noexcept;
    std::error_code range_error() const noexcept;
    static int access(window_arguments a, MPI_Request& made) noexcept;

    window_arguments call_;
    void* results_ = nullptr;  // the program's memory, of which call_.into may be a copy
};

template <class T>
struct exchange_arguments : window_arguments {
    T desired;
    T expected;
};

// The request of compare_exchange(), which has its integers in itself.
template <class T>
class exchange_request : public window_request {
public:
    using arguments = exchange_arguments<T>;
    using value_type = T;
    explicit exchange_request(const arguments& a) noexcept
        : window_request(a), given_{a.desired, a.expected} {
        use(memory_of(std::span<T>(given_)), memory_of(std::span<T>(&before_, 1)));
    }
    T take() const noexcept { return before_; }

protected:
    ~exchange_request() = default;

private:
    T given_[2];
    T before_{};
};

}  // namespace coppice::mpi::internal
