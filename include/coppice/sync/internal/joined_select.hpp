// joined_select: a select that also has branches that are other senders.
#pragma once
// A child is the operation of such a sender. The children are started when no branch of the room is
// ready and all waiters are linked. A child that completes claims the choice like any other thread.
// The thread that claims it stops the children, and the select ends when all have completed.
//
//   pending_   arrivals still to come: one per child, one of the thread in begin(), and one of the
//              thread that claims the choice. Only falls. The arrival that makes it 0 ends the
//              select.
//
// The claimer arrives after it has left request_stop(), so no child ends the select inside that.
// Model: tests/model/select_model.cpp.

#include <coppice/base/internal/atomic.hpp>
#include <coppice/stop/inplace.hpp>
#include <coppice/sync/internal/select_core.hpp>

#include <cstddef>
#include <cstdint>

namespace coppice::internal {

class joined_select;

// The operation of a sender that is a branch, as the select sees it.
class select_child : immovable {
public:
    // Adds the child to the select. Lifetime: as long as the select.
    select_child(joined_select& select, std::uint32_t number) noexcept;
    virtual void start() noexcept = 0;

protected:
    virtual ~select_child() = default;  // as of select_branch
    // Called when the child has completed. Returns true if it ends the select: the child then keeps
    // its outcome, and calls won(). Otherwise it calls lost().
    bool claim() noexcept;
    // Either is the child's last access to the select. `end`: `withdrawn` if it was stopped.
    void won(wait_end end) noexcept;
    void lost() noexcept;

    joined_select& select_;

private:
    friend class joined_select;
    const std::uint32_t number_;
    select_child* next_ = nullptr;
};

class joined_select : public select_core {
public:
    // `ended` is called when the select has ended, on the thread that ended it; not if begin()
    // returns true.
    explicit joined_select(function* ended) noexcept
        : select_core(&joined_select::left), ended_(ended) {}

    inplace_stop_token child_token() const noexcept { return source_.get_token(); }

    // As lone_select::begin().
    bool begin(const completion_env& env) noexcept {
        if (!enter(env)) return true;
        granted_waiters others;
        const bool waits = link(others);
        others.call_all();
        if (!waits || start_children()) {
            forget_limits();
            return true;
        }
        return false;  // this object may be gone
    }

private:
    friend class select_child;

    // Returns true if the select has ended. Otherwise it may be gone.
    bool start_children() noexcept {
        std::size_t arrivals = 1;
        for (select_child* child = first_; child != nullptr; child = child->next_) {
            if (choice().is_open()) {
                child->start();
            } else {
                ++arrivals;  // in place of the child, which is not needed
            }
        }
        return arrive(arrivals);
    }
    static void left(select_core& core) noexcept {
        static_cast<joined_select&>(core).stop_children_and_arrive(1);
    }
    void stop_children_and_arrive(std::size_t arrivals) noexcept {
        const bool late = planted("select.stop_after_arrival");
        if (!late) source_.request_stop();
        arrive_or_end(arrivals);
        if (late) source_.request_stop();
    }
    // Returns true for the last arrival.
    bool arrive(std::size_t count) noexcept {
        // edge select.arrive (release), edge select.arrive (acquire): the last sees the outcome
        return pending_.fetch_sub(count, acq_rel) == count;
    }
    void arrive_or_end(std::size_t count) noexcept {
        if (!arrive(count)) return;
        forget_limits();
        ended_(*this);  // this object may be gone
    }

    function* const ended_;
    select_child* first_ = nullptr;
    select_child** end_of_children_ = &first_;
    atomic<std::size_t> pending_{2};
    inplace_stop_source source_;
};

inline select_child::select_child(joined_select& select, std::uint32_t number) noexcept
    : select_(select), number_(number) {
    *select.end_of_children_ = this;
    select.end_of_children_ = &next_;
    // Relaxed: nothing has begun.
    select.pending_.fetch_add(1, relaxed);
}
inline bool select_child::claim() noexcept {
    return select_.choice().claim(number_);
}
inline void select_child::won(wait_end end) noexcept {
    granted_waiters others;
    select_.decide(end, number_);
    select_.leave(nullptr, others);
    others.call_all_after([this] { select_.stop_children_and_arrive(2); });  // this may be gone
}
inline void select_child::lost() noexcept {
    select_.arrive_or_end(1);
}

}  // namespace coppice::internal
