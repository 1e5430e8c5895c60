// Partitions, and the collective calls with a size for each process.
#include <coppice/mpi/internal/parts_request.hpp>

#include "starting.hpp"

#include <algorithm>
#include <climits>
#include <system_error>

namespace coppice::mpi {

partition::partition(std::span<const std::size_t> counts) {
    std::size_t sum = 0;
    for (const std::size_t count : counts) {
        if (count > INT_MAX || sum + count > INT_MAX)
            throw std::system_error(std::make_error_code(std::errc::value_too_large),
                                    "mpi::partition: MPI counts at most 2147483647 objects; make "
                                    "several operations of less");
        sum += count;
    }
    internal::partition_access::resize(*this, counts.size());
    std::transform(counts.begin(), counts.end(), counts_.begin(),
                   [](std::size_t count) { return static_cast<int>(count); });
    (void)internal::partition_access::derive(*this);
}

partition partition::even(std::size_t total, int parts) {
    std::vector<std::size_t> counts(static_cast<std::size_t>(parts));
    for (std::size_t n = 0; n != counts.size(); ++n)
        counts[n] = total / counts.size() + (n < total % counts.size() ? 1 : 0);
    return partition(counts);
}

namespace internal {

void partition_access::resize(partition& p, std::size_t parts) {
    p.counts_.resize(parts);
    p.offsets_.resize(parts);
}

bool partition_access::derive(partition& p) noexcept {
    std::size_t sum = 0;
    bool fits = true;
    for (std::size_t n = 0; n != p.counts_.size(); ++n) {
        p.offsets_[n] = static_cast<int>(std::min<std::size_t>(sum, INT_MAX));
        fits = fits && p.counts_[n] >= 0;
        sum += static_cast<std::size_t>(std::max(p.counts_[n], 0));
    }
    p.total_ = sum;
    return fits && sum <= INT_MAX;
}

namespace {

// What make_room() says; the largest of all processes is the result at each.
constexpr int has_room = 0;
constexpr int has_no_memory = 1;
constexpr int has_too_much = 2;

// In objects; too many are told as a count that no process can have.
int objects_of(const memory& m) noexcept {
    const std::size_t count = m.count / m.unit;
    return count > INT_MAX ? -1 : static_cast<int>(count);
}

}  // namespace

parts_request::~parts_request() {
    if (type_is_made_) ::MPI_Type_free(&type_);
}

bool parts_request::is_too_large() const noexcept {
    return objects_of(call_.from) < 0 || objects_of(call_.into) < 0;
}

// Counts and offsets are in objects, so a struct needs a type of its size.
int parts_request::make_type() noexcept {
    const memory& m = call_.what == parts_kind::scatter ? call_.into : call_.from;
    if (type_ != MPI_DATATYPE_NULL) return MPI_SUCCESS;
    type_ = type_of(m.type);
    if (m.type != element::bytes || m.unit == 1) return MPI_SUCCESS;
    int returned = ::MPI_Type_contiguous(static_cast<int>(m.unit), MPI_BYTE, &type_);
    if (returned != MPI_SUCCESS) return returned;
    type_is_made_ = true;
    return ::MPI_Type_commit(&type_);
}

request::outcome parts_request::start(handles& made) noexcept {
    switch (step_) {
        case step::tell:
            made.returned = tell(made.each[0]);
            break;
        case step::agree:
            verdict_ = make_room();
            made.returned = ::MPI_Iallreduce(MPI_IN_PLACE, &verdict_, 1, MPI_INT, MPI_MAX,
                                             call_.over, &made.each[0]);
            break;
        case step::move:
            if (is_too_large()) {
                fail(std::make_error_code(std::errc::value_too_large));
                return outcome::failed;
            }
            made.returned = make_type();
            if (made.returned == MPI_SUCCESS) made.returned = move(made.each[0]);
            break;
    }
    return made.returned == MPI_SUCCESS ? outcome::started : outcome::failed;
}

bool parts_request::continues() noexcept {
    switch (step_) {
        case step::tell:
            step_ = step::agree;
            return true;
        case step::agree:
            step_ = step::move;
            if (verdict_ == has_room) return true;
            fail(std::make_error_code(verdict_ == has_no_memory ? std::errc::not_enough_memory
                                                                : std::errc::value_too_large));
            return false;
        case step::move:
            break;
    }
    return false;
}

int parts_request::tell(MPI_Request& made) noexcept {
    int* const learned = partition_access::counts(*call_.learned).data();
    own_count_ = objects_of(call_.from);
    switch (call_.what) {
        case parts_kind::scatter:
            return ::MPI_Iscatter(
                call_.rank == call_.root ? partition_access::counts(*call_.from_parts) : nullptr, 1,
                MPI_INT, learned, 1, MPI_INT, call_.root, call_.over, &made);
        case parts_kind::all_to_all:
            return ::MPI_Ialltoall(partition_access::counts(*call_.from_parts), 1, MPI_INT, learned,
                                   1, MPI_INT, call_.over, &made);
        default:
            return ::MPI_Iallgather(&own_count_, 1, MPI_INT, learned, 1, MPI_INT, call_.over,
                                    &made);
    }
}

int parts_request::make_room() noexcept {
    if (!partition_access::derive(*call_.learned) || is_too_large()) return has_too_much;
    const bool receives = call_.what != parts_kind::gather || call_.rank == call_.root;
    const std::size_t count = receives ? call_.learned->total() : 0;
    return call_.resize(call_.container, count, call_.into) ? has_room : has_no_memory;
}

int parts_request::move(MPI_Request& made) noexcept {
    const memory& from = call_.from;
    const memory& into = call_.into;
    const auto counts = [](const partition* p) noexcept {
        return p == nullptr ? nullptr : partition_access::counts(*p);
    };
    const auto offsets = [](const partition* p) noexcept {
        return p == nullptr ? nullptr : partition_access::offsets(*p);
    };
    const partition* const to = call_.from_parts;
    const partition* const of = call_.into_parts;
    switch (call_.what) {
        case parts_kind::gather:
            return ::MPI_Igatherv(from.data, objects_of(from), type_, into.data, counts(of),
                                  offsets(of), type_, call_.root, call_.over, &made);
        case parts_kind::scatter:
            return ::MPI_Iscatterv(from.data, counts(to), offsets(to), type_, into.data,
                                   objects_of(into), type_, call_.root, call_.over, &made);
        case parts_kind::all_gather:
            return ::MPI_Iallgatherv(from.data, objects_of(from), type_, into.data, counts(of),
                                     offsets(of), type_, call_.over, &made);
        case parts_kind::all_to_all:
            break;
    }
    return ::MPI_Ialltoallv(from.data, counts(to), offsets(to), type_, into.data, counts(of),
                            offsets(of), type_, call_.over, &made);
}

}  // namespace internal

}  // namespace coppice::mpi
