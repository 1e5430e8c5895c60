// Windows, and the calls that access them.
#include <coppice/mpi/error.hpp>
#include <coppice/mpi/internal/window_request.hpp>

#include "starting.hpp"

#include <array>
#include <climits>
#include <cstring>
#include <system_error>

namespace coppice::mpi::internal {

namespace {

// Processes may have different codes for an error, but the same classes.
int class_of(int returned) noexcept {
    int found = MPI_ERR_OTHER;
    ::MPI_Error_class(returned, &found);
    return found;
}

// Collective.
int free_window(engine& owner, MPI_Win handle) noexcept {
    return owner.call_waiting([handle]() mutable noexcept {
        ::MPI_Win_unlock_all(handle);
        return ::MPI_Win_free(&handle);
    });
}

}  // namespace

window_state::window_state(const communicator& over, std::size_t count, std::size_t size,
                           std::size_t alignment)
    : shares_(std::make_shared<shares>(static_cast<std::size_t>(over.size()))),
      size_(size),
      own_(over.duplicate()) {
    std::error_code error = errc::process_failed;
    engine& owner = communicator_access::owner(own_);
    owner.run([this, count, alignment, &error]() noexcept { error = open(count, alignment); });
    if (error) throw std::system_error(error, "mpi::window");
}

// What MPI writes is on the stack of this thread, which stays there if a process fails, or is kept
// from there. Nothing is allocated: the other processes wait for this one.
std::error_code window_state::open(std::size_t count, std::size_t alignment) noexcept {
    const std::shared_ptr<shares> kept = shares_;
    opened made;
    const int returned = open(count, alignment, made, *kept);
    base_ = static_cast<std::byte*>(made.base);
    handle_ = made.handle;
    if (handle_ != MPI_WIN_NULL) base_ += there(rank()).skipped;
    return error_of(returned);
}

// MPI counts the bytes with a sign.
bool window_state::fits(std::size_t count, std::size_t alignment) const noexcept {
    return count <= (PTRDIFF_MAX - alignment) / size_;
}

// Every process makes the same calls, whatever the others' counts are. MPI may align the memory
// less than the type needs, so there is room to skip some bytes.
int window_state::open(std::size_t count, std::size_t alignment, opened& made,
                       shares& all) noexcept {
    static_assert(sizeof(share) == 2 * sizeof(std::uint64_t));
    engine& owner = communicator_access::owner(own_);
    const MPI_Comm over = own_.native_handle();
    const auto gather = [&owner, &all, over](share own) noexcept {
        return owner.call_waiting([own, into = all.data(), over]() noexcept {
            return ::MPI_Allgather(&own, 2, MPI_UINT64_T, into, 2, MPI_UINT64_T, over);
        });
    };
    int returned = gather({count, 0});
    if (returned != MPI_SUCCESS) return returned;
    for (const share& each : all) {  // no process has so many, so all fail
        if (!fits(each.count, alignment)) return MPI_ERR_NO_MEM;
    }
    const std::size_t bytes = count == 0 ? 0 : count * size_ + alignment - 1;
    // The largest of all processes is the result at each. A process that has failed would otherwise
    // leave the others with a window, and it may not be used before all have cleared their memory.
    std::array<int, 2> worst{class_of(make(static_cast<MPI_Aint>(bytes), made)),
                             made.handle == MPI_WIN_NULL};
    const std::size_t beyond = reinterpret_cast<std::uintptr_t>(made.base) % alignment;
    returned = gather({count, count == 0 || beyond == 0 ? 0 : alignment - beyond});
    if (returned != MPI_SUCCESS) worst[0] = class_of(returned);
    returned = owner.call_waiting([&worst, over]() noexcept {
        return ::MPI_Allreduce(MPI_IN_PLACE, worst.data(), 2, MPI_INT, MPI_MAX, over);
    });
    if (returned == MPI_SUCCESS) returned = worst[0];
    if (returned == MPI_SUCCESS) {
        owner.count_windows(1);
    } else {
        // To free a window waits for all, so it stays if a process has none.
        if (worst[1] == 0) (void)free_window(owner, made.handle);
        made.handle = MPI_WIN_NULL;
    }
    return returned;
}

int window_state::make(MPI_Aint bytes, opened& made) noexcept {
    engine& owner = communicator_access::owner(own_);
    const MPI_Comm over = own_.native_handle();
    // Without this hint, windows of less than a page overlap under MPICH 4.0.2.
    MPI_Info hints = MPI_INFO_NULL;
    ::MPI_Info_create(&hints);
    ::MPI_Info_set(hints, "alloc_shared_noncontig", "true");
    int returned = owner.call_waiting([bytes, hints, over, &made]() noexcept {
        return ::MPI_Win_allocate(bytes, 1, hints, over, &made.base, &made.handle);
    });
    ::MPI_Info_free(&hints);
    if (returned != MPI_SUCCESS) {
        made.handle = MPI_WIN_NULL;
        return returned;
    }
    ::MPI_Win_set_errhandler(made.handle, MPI_ERRORS_RETURN);
    returned = owner.call_waiting(
        [&made]() noexcept { return ::MPI_Win_lock_all(MPI_MODE_NOCHECK, made.handle); });
    if (returned != MPI_SUCCESS) return returned;
    if (bytes != 0) std::memset(made.base, 0, static_cast<std::size_t>(bytes));
    return ::MPI_Win_sync(made.handle);
}

window_state::~window_state() {
    engine& owner = communicator_access::owner(own_);
    COPPICE_CHECK(!owner.is_current() || !owner.is_watched(),
                  "mpi::window ends on the environment's thread, which watches for failures: end "
                  "it on another one");
    owner.run([this, &owner]() noexcept {
        if (handle_ == MPI_WIN_NULL) return;
        (void)free_window(owner, handle_);
        owner.count_windows(-1);
    });
}

std::error_code window_request::range_error() const noexcept {
    if (call_.what == window_call::fence) return {};
    if (call_.rank < 0 || call_.rank >= call_.state->own().size()) return errc::invalid_rank;
    const bool is_of_into =
        call_.what == window_call::get || call_.what == window_call::compare_exchange;
    const memory& m = is_of_into ? call_.into : call_.from;
    const std::size_t there = call_.state->count(call_.rank);
    if (call_.offset > there || m.count / m.unit > there - call_.offset) return errc::out_of_range;
    if (m.count > INT_MAX) return std::make_error_code(std::errc::value_too_large);
    return {};
}

request::outcome window_request::start(handles& made) noexcept {
    if (const std::error_code error = range_error()) {
        fail(error);
        return outcome::failed;
    }
    results_ = call_.into.data;
    if (!lend_copy(call_.from) || !lend_space(call_.into)) return outcome::failed;
    MPI_Request handle = MPI_REQUEST_NULL;
    made.returned = access(call_, handle);
    made.each[0] = handle;
    if (call_.what == window_call::compare_exchange && made.returned == MPI_SUCCESS)
        return_results();
    return made.returned == MPI_SUCCESS ? outcome::started : outcome::failed;
}

// The functions that are called use copies on the stack of this thread: if one waits for a process
// that has failed, the request is destroyed meanwhile, and the call does not return here.
int window_request::access(window_arguments a, MPI_Request& made) noexcept {
    engine& owner = *a.owner;
    const memory from = a.from, into = a.into;
    const int rank = a.rank;
    const MPI_Aint at = a.what == window_call::fence ? 0 : a.state->displacement(rank, a.offset);
    const MPI_Win over = a.state->handle();
    const MPI_Comm all = a.state->own().native_handle();
    const MPI_Datatype type = type_of(from.count != 0 ? from.type : into.type);
    const int out = static_cast<int>(from.count), in = static_cast<int>(into.count);
    const int returned = owner.call_waiting([&]() noexcept {
        switch (a.what) {
            case window_call::put:
                return ::MPI_Rput(from.data, out, type, rank, at, out, type, over, &made);
            case window_call::get:
                return ::MPI_Rget(into.data, in, type, rank, at, in, type, over, &made);
            case window_call::accumulate:
                return ::MPI_Raccumulate(from.data, out, type, rank, at, out, type,
                                         operator_of(a.op), over, &made);
            case window_call::fetch_accumulate:
                return ::MPI_Rget_accumulate(from.data, out, type, into.data, in, type, rank, at,
                                             out, type, operator_of(a.op), over, &made);
            case window_call::compare_exchange: {
                // The second of the two integers. MPI has no request for this call.
                const void* const expected =
                    static_cast<const std::byte*>(from.data) + size_in_bytes(from) / 2;
                const int compared =
                    ::MPI_Compare_and_swap(from.data, expected, into.data, type, rank, at, over);
                return compared != MPI_SUCCESS ? compared : ::MPI_Win_flush_local(rank, over);
            }
            case window_call::flush:
                return ::MPI_Win_flush(rank, over);
            case window_call::fence:
                break;
        }
        ::MPI_Win_sync(over);
        return ::MPI_Win_flush_all(over);
    });
    if (a.what != window_call::fence || returned != MPI_SUCCESS) return returned;
    return ::MPI_Ibarrier(all, &made);
}

void window_request::keep(const MPI_Status&) noexcept {
    if (call_.what == window_call::fence) ::MPI_Win_sync(call_.state->handle());
    return_results();
}

void window_request::return_results() noexcept {
    if (results_ != call_.into.data)
        std::memcpy(results_, call_.into.data, size_in_bytes(call_.into));
}

}  // namespace coppice::mpi::internal
