// The calls of MPI that requests start.
#include <coppice/mpi/error.hpp>
#include <coppice/mpi/internal/named_request.hpp>

#include "recovery.hpp"
#include "starting.hpp"

#include <algorithm>
#include <climits>
#include <cstring>

namespace coppice::mpi::internal {

MPI_Datatype type_of(element type) noexcept {
    static const MPI_Datatype types[] = {MPI_BYTE,     MPI_INT8_T,  MPI_INT16_T,  MPI_INT32_T,
                                         MPI_INT64_T,  MPI_UINT8_T, MPI_UINT16_T, MPI_UINT32_T,
                                         MPI_UINT64_T, MPI_FLOAT,   MPI_DOUBLE,   MPI_LONG_DOUBLE};
    return types[static_cast<int>(type)];
}

MPI_Op operator_of(integer_reduction op) noexcept {
    const MPI_Op operators[] = {MPI_SUM, MPI_PROD, MPI_MIN,  MPI_MAX, MPI_BAND,
                                MPI_BOR, MPI_BXOR, MPI_LAND, MPI_LOR};
    return operators[op.index()];
}

namespace {

int count_of(const memory& m) noexcept {
    return static_cast<int>(m.count);
}

// Returns `from`, or MPI's word for memory that is both input and output.
const void* unless_same(const memory& from, const memory& into) noexcept {
    return from.data == into.data ? MPI_IN_PLACE : from.data;
}

// The largest tag of the implementation.
int find_tag_max() noexcept {
    int found = 0;
    int* tag_max = nullptr;
    ::MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, &tag_max, &found);
    return found != 0 ? *tag_max : INT_MAX;
}

// Returns what MPI_Isend would say about its destination.
int check_destination(const call_arguments& call) noexcept {
    static const int tag_max = find_tag_max();
    int size = 0;
    ::MPI_Comm_size(call.over, &size);
    if ((call.to_rank < 0 || call.to_rank >= size) && call.to_rank != MPI_PROC_NULL)
        return MPI_ERR_RANK;
    if (call.to_tag < 0 || call.to_tag > tag_max) return MPI_ERR_TAG;
    return MPI_SUCCESS;
}

// The processes of a collective must agree about this: one that did not start would hold the
// others. So what only the root uses does not count, and the total of gather and scatter is
// computed at all. MPI gets only the count of a part, but Open MPI 4.1 multiplies it by a rank as
// an int.
bool is_too_large(const call_arguments& call) noexcept {
    std::size_t count = std::max(call.from.count, call.into.count);
    int parts = 1;
    if (call.what == kind::gather || call.what == kind::reduce) count = call.from.count;
    if (call.what == kind::scatter) count = call.into.count;
    if (call.what == kind::gather || call.what == kind::scatter) ::MPI_Comm_size(call.over, &parts);
    return count > static_cast<std::size_t>(INT_MAX / parts);
}

}  // namespace

request::outcome call_request::start(handles& made) noexcept {
    if (is_too_large(call_)) {
        fail(std::make_error_code(std::errc::value_too_large));
        return outcome::failed;
    }
    if (call_.what == kind::probe || call_.what == kind::receive_all) {
        bool found = false;
        made.returned = look(call_.what == kind::receive_all, made, found);
        if (made.returned == MPI_SUCCESS && !found) return outcome::again;
    } else {
        if (!lend_memory()) return outcome::failed;
        made.returned =
            call_.what < kind::barrier ? start_message(made) : start_collective(made.each[0]);
    }
    const bool has_started = made.each[0] != MPI_REQUEST_NULL;
    return made.returned == MPI_SUCCESS && (!error() || has_started) ? outcome::started
                                                                     : outcome::failed;
}

bool call_request::lend_memory() noexcept {
    if (!uses_copies()) return true;
    int rank = 0;
    ::MPI_Comm_rank(call_.over, &rank);
    const bool is_root = rank == call_.to_rank;
    // What MPI does not use at this process, the program may use meanwhile.
    if (!is_root && (call_.what == kind::reduce || call_.what == kind::gather))
        call_.into.count = 0;
    if (!is_root && call_.what == kind::scatter) call_.from.count = 0;
    const bool gives = is_root && call_.what == kind::broadcast;
    if (!gives) results_ = call_.into;
    return lend_copy(call_.from) && (gives ? lend_copy(call_.into) : lend_space(call_.into));
}

void call_request::return_results() noexcept {
    if (results_.data == nullptr) return;
    memory result = call_.into;
    if (receives()) result.count = std::min(result.count, seen_.count * result.unit);
    if (result.count != 0) std::memcpy(results_.data, result.data, size_in_bytes(result));
    call_.into = results_;
}

request::outcome agree_request::start(handles& made) noexcept {
    memory lent{agreed_, 1, element::i32, 1};
    made.returned = MPI_SUCCESS;
    if (owner().recovers()) {
        made.returned = agree(over_, agreed_, &made.each[0]);
    } else {
        hold_others(true);
        if (!lend_copy(lent)) return outcome::failed;
        agreed_ = static_cast<int*>(lent.data);
        made.returned =
            ::MPI_Iallreduce(MPI_IN_PLACE, agreed_, 1, MPI_INT, MPI_BAND, over_, &made.each[0]);
    }
    return made.returned == MPI_SUCCESS ? outcome::started : outcome::failed;
}

void agree_request::keep(const MPI_Status&) noexcept {
    bits_ = *agreed_;
}

// ULFM ends an agreement with this error if a process has failed that this one did not know of. The
// others have agreed nevertheless.
std::error_code agree_request::error() const noexcept {
    const std::error_code error = request::error();
    return owner().recovers() && error == errc::process_failed ? std::error_code() : error;
}

// A receive that has started may match a message, so the send is checked before.
int call_request::start_message(handles& made) noexcept {
    const int send_at = call_.what == kind::send_receive ? 1 : 0;
    int returned = send_at == 0 ? MPI_SUCCESS : check_destination(call_);
    if (call_.what != kind::send && returned == MPI_SUCCESS) {
        returned = ::MPI_Irecv(call_.into.data, count_of(call_.into), type_of(call_.into.type),
                               call_.source.rank, call_.source.tag, call_.over, &made.each[0]);
    }
    if (call_.what == kind::receive || returned != MPI_SUCCESS) return returned;
    returned = ::MPI_Isend(call_.from.data, count_of(call_.from), type_of(call_.from.type),
                           call_.to_rank, call_.to_tag, call_.over, &made.each[send_at]);
    if (returned == MPI_SUCCESS || send_at == 0) return returned;
    // MPI has no memory for the send, or has failed. The request ends with the receive.
    fail_by(returned);
    ::MPI_Cancel(&made.each[0]);
    made.each[1] = MPI_REQUEST_NULL;
    return MPI_SUCCESS;
}

int call_request::start_collective(MPI_Request& made) noexcept {
    const memory& from = call_.from;
    const memory& into = call_.into;
    const MPI_Datatype type = type_of(into.type);
    const MPI_Comm over = call_.over;
    const int root = call_.to_rank;
    int rank = 0, size = 1;
    ::MPI_Comm_rank(over, &rank);
    ::MPI_Comm_size(over, &size);
    switch (call_.what) {
        case kind::broadcast:
            return ::MPI_Ibcast(into.data, count_of(into), type, root, over, &made);
        case kind::reduce:
            return ::MPI_Ireduce(rank == root ? unless_same(from, into) : from.data, into.data,
                                 count_of(from), type, operator_of(call_.op), root, over, &made);
        case kind::all_reduce:
            return ::MPI_Iallreduce(unless_same(from, into), into.data, count_of(from), type,
                                    operator_of(call_.op), over, &made);
        case kind::gather:
            return ::MPI_Igather(from.data, count_of(from), type, into.data, count_of(from), type,
                                 root, over, &made);
        case kind::scatter:
            return ::MPI_Iscatter(from.data, count_of(into), type, into.data, count_of(into), type,
                                  root, over, &made);
        case kind::all_to_all:
            return ::MPI_Ialltoall(unless_same(from, into), count_of(from) / size, type, into.data,
                                   count_of(from) / size, type, over, &made);
        case kind::all_gather:
            return ::MPI_Iallgather(from.data, count_of(from), type, into.data, count_of(from),
                                    type, over, &made);
        case kind::scan:
            return ::MPI_Iscan(unless_same(from, into), into.data, count_of(from), type,
                               operator_of(call_.op), over, &made);
        case kind::exclusive_scan:
            return ::MPI_Iexscan(unless_same(from, into), into.data, count_of(from), type,
                                 operator_of(call_.op), over, &made);
        case kind::reduce_scatter:
            return ::MPI_Ireduce_scatter_block(from.data, into.data, count_of(into), type,
                                               operator_of(call_.op), over, &made);
        default:
            return ::MPI_Ibarrier(over, &made);
    }
}

// Looks for a message of whole objects. `take`: gives the container its size, and starts to receive
// the message. It is not taken before there is memory, so that a failure loses nothing.
int call_request::look(bool take, handles& made, bool& found) noexcept {
    int is_there = 0;
    MPI_Status status{};
    int returned =
        ::MPI_Iprobe(call_.source.rank, call_.source.tag, call_.over, &is_there, &status);
    if (returned != MPI_SUCCESS || is_there == 0) return returned;
    see(status);
    if (error() || !take) {
        found = true;
        return MPI_SUCCESS;
    }
    const bool fits = call_.resize(call_.container, seen_.count, call_.into);
    if (!fits) fail(std::make_error_code(std::errc::not_enough_memory));
    if (!fits || !lend_memory()) {
        found = true;
        return MPI_SUCCESS;
    }
    MPI_Message message = MPI_MESSAGE_NULL;
    // Another thread of the program that calls MPI itself may have taken it.
    returned =
        ::MPI_Improbe(status.MPI_SOURCE, status.MPI_TAG, call_.over, &is_there, &message, &status);
    if (returned != MPI_SUCCESS || is_there == 0) return returned;
    found = true;
    return ::MPI_Imrecv(call_.into.data, count_of(call_.into), type_of(call_.into.type), &message,
                        &made.each[0]);
}

void call_request::keep(const MPI_Status& status) noexcept {
    if (receives() && !error()) see(status);
    return_results();
    if (call_.fill != nullptr) call_.fill(call_.into, call_.op);
}

// Fails if the message is no whole number of objects, or has more units than MPI counts.
void call_request::see(const MPI_Status& status) noexcept {
    if (call_.source.rank == MPI_PROC_NULL) {  // MPICH 4.0 does not fill in the status
        seen_ = {MPI_PROC_NULL, MPI_ANY_TAG, 0};
        return;
    }
    int count = 0;
    ::MPI_Get_count(&status, type_of(call_.into.type), &count);
    const std::size_t units = count < 0 ? 0 : static_cast<std::size_t>(count);
    const std::size_t unit = call_.into.unit;
    const std::size_t objects = unit == 1 ? units : units / unit;  // most need no division
    seen_ = {status.MPI_SOURCE, status.MPI_TAG, objects};
    if (count >= 0 && objects * unit == units) return;
    MPI_Count bytes = 0;
    if (count < 0) ::MPI_Get_elements_x(&status, MPI_BYTE, &bytes);
    const std::size_t size = size_in_bytes({nullptr, 1, call_.into.type, 1});
    const bool is_too_large = bytes > static_cast<MPI_Count>(INT_MAX * size);
    fail(is_too_large ? std::make_error_code(std::errc::value_too_large)
                      : make_error_code(errc::partial_object));
}

}  // namespace coppice::mpi::internal
