// The levels of the tree, and what the processes of a pair tell each other.
#include <coppice/mpi/internal/object_tree.hpp>

#include <coppice/mpi/error.hpp>

#include <algorithm>
#include <climits>
#include <system_error>

namespace coppice::mpi::internal {

object_tree::object_tree(const communicator& over, int root)
    : rank_(over.rank()), size_(over.size()), root_(root) {
    partition_access::resize(out_parts_, static_cast<std::size_t>(size_));
    partition_access::resize(in_parts_, static_cast<std::size_t>(size_));
}

object_tree::object_tree(const communicator& over) : object_tree(over, -1) {
    is_for_all_ = true;
}

void object_tree::check_root() const {
    if (is_for_all_ || (root_ >= 0 && root_ < size_)) return;
    throw std::system_error(make_error_code(errc::invalid_root), "mpi::reduce_object");
}

// Up: 1, 2, 4, and so on. Then one level from process 0 to another root, or down: 4, 2, 1.
bool object_tree::enter_next_level() noexcept {
    gives_ = takes_ = false;
    if (goes_up_) {
        step_ = step_ == 0 ? 1 : 2 * step_;
        if (step_ < size_) {
            enter_level(false);
            return true;
        }
        goes_up_ = false;
        if (!is_for_all_) {
            step_ = 0;
            pair(0, root_);
            return root_ != 0;
        }
    }
    step_ /= 2;
    if (step_ == 0) return false;
    enter_level(true);
    return true;
}

void object_tree::enter_level(bool is_down) noexcept {
    const std::int64_t lower = rank_ - rank_ % (2 * step_);
    const std::int64_t upper = lower + step_;
    if (upper >= size_) return;
    if (is_down) {
        pair(lower, upper);
    } else {
        pair(upper, lower);
    }
}

void object_tree::pair(std::int64_t giver, std::int64_t taker) noexcept {
    gives_ = rank_ == giver;
    takes_ = rank_ == taker;
    partner_ = static_cast<int>(gives_ ? taker : giver);
}

void object_tree::write(bytes message) {
    if (message.size() > INT_MAX)
        throw std::system_error(std::make_error_code(std::errc::value_too_large),
                                "mpi::reduce_object");
    message_.swap(message);
    is_written_ = true;
}

void object_tree::prepare(part which) noexcept {
    out_ = {};
    in_ = {};
    if (which == part::head) return prepare_head();
    return which == part::verdict ? prepare_verdict() : prepare_body();
}

void object_tree::prepare_head() noexcept {
    if (gives_) {
        given_ = {};
        given_.size = has_failed() ? no_object : message_.size();
        if (!has_failed())
            std::copy_n(message_.begin(), std::min(message_.size(), given_.first.size()),
                        given_.first.begin());
        out_ = std::as_bytes(std::span(&given_, 1));
    }
    if (takes_) in_ = std::as_writable_bytes(std::span(&taken_, 1));
}

void object_tree::prepare_verdict() noexcept {
    if (gives_ && given_.is_part()) in_ = std::as_writable_bytes(std::span(&has_room_, 1));
    if (!takes_) return;
    make_room();
    has_room_ = !has_failed();
    if (taken_.is_part()) out_ = std::as_bytes(std::span(&has_room_, 1));
}

void object_tree::prepare_body() noexcept {
    if (gives_ && given_.is_part() && has_room_) out_ = message_;
    if (takes_ && taken_.is_part() && has_room_) in_ = came_;
}

void object_tree::make_room() noexcept {
    if (taken_.size == no_object) has_heard_of_failure_ = true;
    if (has_failed()) return;
    const auto size = static_cast<std::size_t>(taken_.size);
    try {
        came_.resize(size);
    } catch (...) {
        note(std::current_exception());
        return;
    }
    if (!taken_.is_part()) std::copy_n(taken_.first.begin(), size, came_.begin());
}

void object_tree::set_count(partition& of, std::size_t count) const noexcept {
    std::vector<int>& counts = partition_access::counts(of);
    std::fill(counts.begin(), counts.end(), 0);
    if (count != 0) counts[static_cast<std::size_t>(partner_)] = static_cast<int>(count);
    static_cast<void>(partition_access::derive(of));
}

}  // namespace coppice::mpi::internal
