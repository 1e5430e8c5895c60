// Partitions, and the collective calls with a size for each process.
#include <coppice/mpi/internal/parts_request.hpp>

#include <coppice/base/internal/check.hpp>

#include "starting.hpp"

#include <algorithm>
#include <climits>
#include <cstring>
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
    COPPICE_CHECK(parts > 0, "mpi::partition::even: `parts` must be 1 or more");
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

parts_request::parts_request(const parts_arguments& a) noexcept
    : request(*a.owner, a.over, can_cancel),
      call_(a),
      step_(a.learned == nullptr ? step::move : step::tell) {
    ignore_unused();
    hold_others(a.holds_others);
    if (step_ == step::move) return;
    have_steps();
    hold_others(true);  // for the sizes
}

parts_request::~parts_request() {
    if (type_is_made_ && !owner().has_failed()) ::MPI_Type_free(&type_);
}

bool parts_request::is_too_large() const noexcept {
    return objects_of(call_.from) < 0 || objects_of(call_.into) < 0;
}

// Counts and offsets are in objects, so a struct needs a type of its size.
int parts_request::make_type() noexcept {
    const memory& m = call_.what == parts_kind::scatter ? call_.into : call_.from;
    if (type_ != MPI_DATATYPE_NULL) return MPI_SUCCESS;
    type_ = type_of(m.type);
    if (m.type != element::raw || m.unit == 1) return MPI_SUCCESS;
    int returned = ::MPI_Type_contiguous(static_cast<int>(m.unit), MPI_BYTE, &type_);
    if (returned != MPI_SUCCESS) return returned;
    type_is_made_ = true;
    return ::MPI_Type_commit(&type_);
}

request::outcome parts_request::start(handles& made) noexcept {
    switch (step_) {
        case step::tell:
            if (!lend_numbers()) return outcome::failed;
            made.returned = tell(made.each[0]);
            break;
        case step::agree:
            *verdict_ = make_room();
            made.returned = ::MPI_Iallreduce(MPI_IN_PLACE, verdict_, 1, MPI_INT, MPI_MAX,
                                             call_.over, &made.each[0]);
            break;
        case step::move:
            if (is_too_large()) {
                fail(std::make_error_code(std::errc::value_too_large));
                return outcome::failed;
            }
            if (call_.learned == nullptr && !lend_parts()) return outcome::failed;
            made.returned = make_type();
            if (made.returned == MPI_SUCCESS) made.returned = move(made.each[0]);
            break;
    }
    return made.returned == MPI_SUCCESS ? outcome::started : outcome::failed;
}

// What MPI does not use at this process may be of any size, and the program may use it meanwhile.
// So it is neither counted nor copied.
void parts_request::ignore_unused() noexcept {
    if (call_.rank == call_.root) return;
    if (call_.what == parts_kind::gather) call_.into.count = 0;
    if (call_.what == parts_kind::scatter) call_.from.count = 0;
}

bool parts_request::continues() noexcept {
    switch (step_) {
        case step::tell: {
            std::vector<int>& counts = partition_access::counts(*call_.learned);
            if (learned_ != counts.data()) std::copy_n(learned_, counts.size(), counts.begin());
            step_ = step::agree;
            return true;
        }
        case step::agree:
            step_ = step::move;
            if (*verdict_ == has_room) return true;
            fail(std::make_error_code(*verdict_ == has_no_memory ? std::errc::not_enough_memory
                                                                 : std::errc::value_too_large));
            return false;
        case step::move:
            break;
    }
    return false;
}

// Returns true if this process tells each other one the size of its part.
bool parts_request::tells_all() const noexcept {
    return call_.what == parts_kind::all_to_all ||
           (call_.what == parts_kind::scatter && call_.rank == call_.root);
}

// The others wait for the sizes, so no error of one process can be told to them yet.
bool parts_request::lend_numbers() noexcept {
    std::vector<int>& counts = partition_access::counts(*call_.learned);
    learned_ = counts.data();
    if (uses_copies()) {
        int* const lent = static_cast<int*>(lend((counts.size() + 2) * sizeof(int)));
        if (lent == nullptr) return false;
        own_count_ = lent;
        verdict_ = lent + 1;
        learned_ = lent + 2;
    }
    *own_count_ = objects_of(call_.from);
    if (tells_all() && !lend_arrays(call_.from_parts, from_parts_)) return false;
    hold_others(false);
    return true;
}

// Makes what MPI accesses when the parts move.
bool parts_request::lend_parts() noexcept {
    results_ = call_.into.data;
    return lend_copy(call_.from) && lend_copy(call_.into) &&
           lend_arrays(call_.from_parts, from_parts_) && lend_arrays(call_.into_parts, into_parts_);
}

bool parts_request::lend_arrays(const partition* p, arrays& lent) noexcept {
    if (p == nullptr || lent.counts != nullptr) return true;
    lent = {partition_access::counts(*p), partition_access::offsets(*p)};
    const std::size_t count = static_cast<std::size_t>(p->parts());
    if (!uses_copies() || count == 0) return true;
    int* const copy = static_cast<int*>(lend(2 * count * sizeof(int)));
    if (copy == nullptr) return false;
    std::copy_n(lent.counts, count, copy);
    std::copy_n(lent.offsets, count, copy + count);
    lent = {copy, copy + count};
    return true;
}

int parts_request::tell(MPI_Request& made) noexcept {
    const int* const told = tells_all() ? from_parts_.counts : own_count_;
    switch (call_.what) {
        case parts_kind::scatter:
            return ::MPI_Iscatter(told, 1, MPI_INT, learned_, 1, MPI_INT, call_.root, call_.over,
                                  &made);
        case parts_kind::all_to_all:
            return ::MPI_Ialltoall(told, 1, MPI_INT, learned_, 1, MPI_INT, call_.over, &made);
        default:
            return ::MPI_Iallgather(told, 1, MPI_INT, learned_, 1, MPI_INT, call_.over, &made);
    }
}

void parts_request::keep(const MPI_Status&) noexcept {
    if (step_ != step::move || results_ == call_.into.data) return;
    std::memcpy(results_, call_.into.data, size_in_bytes(call_.into));
}

// The agreement tells the error to all processes, also to this one.
int parts_request::make_room() noexcept {
    if (!partition_access::derive(*call_.learned) || is_too_large()) return has_too_much;
    const bool receives = call_.what != parts_kind::gather || call_.rank == call_.root;
    const std::size_t count = receives ? call_.learned->total() : 0;
    if (call_.resize(call_.container, count, call_.into) && lend_parts() &&
        make_type() == MPI_SUCCESS)
        return has_room;
    fail({});
    return has_no_memory;
}

int parts_request::move(MPI_Request& made) noexcept {
    const memory& from = call_.from;
    const memory& into = call_.into;
    const auto [to_counts, to_offsets] = from_parts_;
    const auto [of_counts, of_offsets] = into_parts_;
    switch (call_.what) {
        case parts_kind::gather:
            return ::MPI_Igatherv(from.data, objects_of(from), type_, into.data, of_counts,
                                  of_offsets, type_, call_.root, call_.over, &made);
        case parts_kind::scatter:
            return ::MPI_Iscatterv(from.data, to_counts, to_offsets, type_, into.data,
                                   objects_of(into), type_, call_.root, call_.over, &made);
        case parts_kind::all_gather:
            return ::MPI_Iallgatherv(from.data, objects_of(from), type_, into.data, of_counts,
                                     of_offsets, type_, call_.over, &made);
        case parts_kind::all_to_all:
            break;
    }
    return ::MPI_Ialltoallv(from.data, to_counts, to_offsets, type_, into.data, of_counts,
                            of_offsets, type_, call_.over, &made);
}

}  // namespace internal

}  // namespace coppice::mpi
