// Windows, and the calls that access them.
#include <coppice/mpi/error.hpp>
#include <coppice/mpi/internal/window_request.hpp>

#include "starting.hpp"

#include <algorithm>
#include <climits>
#include <cstring>
#include <system_error>

namespace coppice::mpi::internal {

window_state::window_state(const communicator& over, std::size_t count, std::size_t size,
                           std::size_t alignment)
    : own_(over.duplicate()), counts_(static_cast<std::size_t>(over.size())) {
    int returned = MPI_SUCCESS;
    engine& owner = communicator_access::owner(own_);
    owner.run([this, count, size, &returned]() noexcept { returned = open(count, size); });
    if (returned != MPI_SUCCESS) throw std::system_error(error_of(returned), "mpi::window");
    COPPICE_CHECK(reinterpret_cast<std::uintptr_t>(base_) % alignment == 0 || count == 0,
                  "mpi::window: MPI allocates memory that is less aligned than this type");
}

// Every process makes the same calls, whatever the others' counts are.
int window_state::open(std::size_t count, std::size_t size) noexcept {
    static_assert(sizeof(std::size_t) == sizeof(std::uint64_t));
    // MPI counts the bytes with a sign. No process has so many, so all fail.
    const MPI_Aint bytes = count > PTRDIFF_MAX / size ? -1 : static_cast<MPI_Aint>(count * size);
    int returned = ::MPI_Allgather(&count, 1, MPI_UINT64_T, counts_.data(), 1, MPI_UINT64_T,
                                   own_.native_handle());
    if (returned != MPI_SUCCESS) return returned;
    for (const std::size_t each : counts_) {
        if (each > PTRDIFF_MAX / size) return MPI_ERR_NO_MEM;
    }
    // Without this hint, windows of less than a page overlap under MPICH 4.0.2.
    MPI_Info hints = MPI_INFO_NULL;
    ::MPI_Info_create(&hints);
    ::MPI_Info_set(hints, "alloc_shared_noncontig", "true");
    returned = ::MPI_Win_allocate(bytes, static_cast<int>(size), hints, own_.native_handle(),
                                  &base_, &handle_);
    ::MPI_Info_free(&hints);
    if (returned != MPI_SUCCESS) return returned;
    ::MPI_Win_set_errhandler(handle_, MPI_ERRORS_RETURN);
    returned = ::MPI_Win_lock_all(MPI_MODE_NOCHECK, handle_);
    if (returned != MPI_SUCCESS) return returned;
    if (bytes != 0) std::memset(base_, 0, static_cast<std::size_t>(bytes));
    ::MPI_Win_sync(handle_);
    communicator_access::owner(own_).count_windows(1);
    return ::MPI_Barrier(own_.native_handle());
}

window_state::~window_state() {
    communicator_access::owner(own_).run([this]() noexcept {
        if (handle_ == MPI_WIN_NULL) return;
        ::MPI_Win_unlock_all(handle_);
        ::MPI_Win_free(&handle_);
        communicator_access::owner(own_).count_windows(-1);
    });
}

std::error_code window_request::range_error() const noexcept {
    if (call_.what == window_call::fence) return {};
    if (call_.rank < 0 || call_.rank >= call_.state->own().size()) return errc::invalid_rank;
    const memory& m = call_.what == window_call::get ? call_.into : call_.from;
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
    made.returned = access(made.each[0]);
    return made.returned == MPI_SUCCESS ? outcome::started : outcome::failed;
}

int window_request::access(MPI_Request& made) noexcept {
    const memory& from = call_.from;
    const memory& into = call_.into;
    const int rank = call_.rank;
    const MPI_Aint at = static_cast<MPI_Aint>(call_.offset);
    const MPI_Win over = call_.state->handle();
    const MPI_Datatype type = type_of(from.count != 0 ? from.type : into.type);
    const int out = static_cast<int>(from.count), in = static_cast<int>(into.count);
    switch (call_.what) {
        case window_call::put:
            return ::MPI_Rput(from.data, out, type, rank, at, out, type, over, &made);
        case window_call::get:
            return ::MPI_Rget(into.data, in, type, rank, at, in, type, over, &made);
        case window_call::accumulate:
            return ::MPI_Raccumulate(from.data, out, type, rank, at, out, type,
                                     operator_of(call_.op), over, &made);
        case window_call::fetch_accumulate:
            return ::MPI_Rget_accumulate(from.data, out, type, into.data, in, type, rank, at, out,
                                         type, operator_of(call_.op), over, &made);
        case window_call::flush:
            return ::MPI_Win_flush(rank, over);
        case window_call::fence:
            break;
    }
    ::MPI_Win_sync(over);
    const int returned = ::MPI_Win_flush_all(over);
    if (returned != MPI_SUCCESS) return returned;
    return ::MPI_Ibarrier(call_.state->own().native_handle(), &made);
}

void window_request::keep(const MPI_Status&) noexcept {
    if (call_.what == window_call::fence) ::MPI_Win_sync(call_.state->handle());
}

}  // namespace coppice::mpi::internal
