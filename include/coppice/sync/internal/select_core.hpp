// select_core: several waits of which exactly one gets what it waits for; for select.
#pragma once
// A branch is a request with a waiter (select_branches.hpp). The waiters share one choice.
//
//   shuffle()     puts the branches into a random order: the choice among those that are ready
//   take_ready()  tries each branch without waiting, in that order; then lets one look for longer
//   begin()       inside the locks of all objects: attempts each branch in that order, else links
//                 all waiters
//   granted()     called by the thread that granted a branch and claimed the choice for it
//   withdraw()    called by a stop or a deadline; ends the select if it can claim the choice
//
// begin() enters the objects in the order of their addresses, each once, so two selects cannot
// block each other. While it is inside, no waiter of the select is linked, and no other thread can
// claim its choice. So a branch that succeeds is the result, and the others were not touched. Two
// selects that meet in an object need one compare-and-swap: that of the select that was linked.
//
// The thread that claims the choice takes the other waiters out, each inside the lock of its
// object. Only then the select may end, because a thread that finds a waiter linked uses the waiter
// and the choice inside that lock. The same protects begin(): a claimer that was granted through
// one object waits for the locks of the others. So begin() may use the select until it leaves the
// last object, and not afterwards.
// Model: tests/model/select_model.cpp.

#include <coppice/base/internal/atomic.hpp>
#include <coppice/base/lifetime.hpp>
#include <coppice/sync/internal/wait.hpp>
#include <coppice/sync/internal/wait_limits.hpp>
#include <coppice/sync/internal/waiter.hpp>
#include <coppice/token/internal/completion_env.hpp>
#include <coppice/token/internal/inline_start.hpp>

#include <cstdint>
#include <functional>

namespace coppice::internal {

class select_core;

// A branch that waits for an object of this room, as the select sees it.
class select_branch : immovable {
public:
    // Adds the branch to the select. Lifetime: as long as the select.
    select_branch(select_core& core, std::uint32_t number) noexcept;

    // Takes what it waits for, if that is possible without waiting. Outside of all locks.
    virtual bool try_now() noexcept = 0;
    // The same for a branch that can look for longer; and whether it can.
    virtual bool try_soon() noexcept = 0;
    virtual bool has_soon() const noexcept = 0;
    // Inside the lock of the object; as the functions of requests (wait.hpp).
    virtual bool attempt(granted_waiters& others) noexcept = 0;
    virtual void link() noexcept = 0;
    virtual void unlink_if_linked(granted_waiters& others) noexcept = 0;

protected:
    // Virtual only because of g++'s warning: a friend could destroy a branch by its base.
    virtual ~select_branch() = default;
    void set_lock(queue_lock& lock) noexcept { lock_ = &lock; }

    select_core& core_;

private:
    friend class select_core;
    const std::uint32_t number_;
    queue_lock* lock_ = nullptr;
    select_branch* next_ = nullptr;      // of all branches, in the order in which they are tried
    select_branch* in_order_ = nullptr;  // the next one by the address of its lock
};

// Returns a number below `count`; each about equally often. Cost: a thread-local and two
// multiplications.
inline std::uint32_t random_below(std::uint32_t count) noexcept {
    std::uint64_t& state = thread_slot<select_core, std::uint64_t>();
    if (state == 0) state = reinterpret_cast<std::uintptr_t>(&state);  // differs between threads
    state = state * 6364136223846793005U + 1442695040888963407U;       // Knuth's MMIX
    return static_cast<std::uint32_t>(((state >> 32) * count) >> 32);
}

// Threads: shuffle(), take_ready(), and begin() the owner; the rest any. Lifetime: until it has
// ended. As a waiting_callback, its owner may put its end behind what the thread is running.
class select_core : public waiting_callback {
public:
    using function = void(select_core&) noexcept;

    shared_choice& choice() noexcept { return choice_; }
    // Valid when it has ended.
    wait_end end() const noexcept { return static_cast<wait_end>(end_.read()); }
    // The branch that ended it. Valid if end() is `granted`.
    std::uint32_t winner() const noexcept { return winner_.read(); }

    // Puts the branches into a random order; each order is about equally likely. random(n) returns
    // a number below `n`. So whichever branches are ready, each of these is first about equally
    // often. A random place to begin at would not do: a branch would also win for those before it
    // that are not ready.
    template <class Random>
    void shuffle(Random random) noexcept {
        if (count_ > 1) first_ = shuffled(first_, count_, random);
    }
    // Tries the branches without waiting. If none is ready, the first one that can looks for
    // longer. Returns true if one of them ended the select.
    bool take_ready() noexcept {
        select_branch* looking = nullptr;
        for (select_branch* b = first_; b != nullptr; b = b->next_) {
            if (b->try_now()) return take(*b);
            if (looking == nullptr && b->has_soon()) looking = b;
        }
        return looking != nullptr && looking->try_soon() && take(*looking);
    }
    // Called by a branch whose waiter was granted, inside the waiter's function.
    void granted(const select_branch& branch, granted_waiters& others) noexcept {
        decide(wait_end::granted, branch.number_);
        leave(&branch, others);
        left_(*this);  // this object may be gone
    }

protected:
    // `left` is called when the choice was claimed and no object refers to the select, by the
    // thread that claimed it.
    explicit select_core(function* left) noexcept : left_(left) {}
    ~select_core() = default;

    // Begins: notes the stop and the deadline. Returns false if that ended the select.
    bool enter(const completion_env& env) noexcept {
        if (env.query(get_stop_token).stop_requested()) {
            decide(wait_end::withdrawn, 0);
            return false;
        }
        if (count_ != 0) {
            select_branch* b = first_;
            order_ = sorted(b, count_);
        }
        if (!limits_.engage(*this, env)) {
            decide(wait_end::refused, 0);
            return false;
        }
        return true;
    }
    // Attempts the branches, or links them. Returns false if the select has ended. If it returns
    // true, and if nothing else keeps the select, the select may be gone.
    bool link(granted_waiters& others) noexcept {
        for_each_lock([](queue_lock& lock) { lock.lock(); });
        const select_branch* const taken = attempt(others);
        const bool links =
            taken == nullptr && (choice_.open_up() || planted("select.link_after_stop"));
        if (links) {
            for (select_branch* b = order_; b != nullptr; b = b->in_order_) b->link();
        } else if (taken != nullptr) {
            decide(wait_end::granted, taken->number_);
        } else {
            decide(wait_end::withdrawn, 0);
        }
        for_each_lock([](queue_lock& lock) { lock.unlock(); });
        return links;
    }
    // Called by the thread that claimed the choice: takes out all waiters but that of `winner`,
    // which is not linked. The object of the winner is entered only for the sake of others.
    void leave(const select_branch* winner, granted_waiters& others) noexcept {
        for (select_branch* b = order_; b != nullptr;) {
            queue_lock& lock = *b->lock_;
            select_branch* const behind = behind_lock(*b);
            if (b != winner || b->in_order_ != behind) {
                lock.lock();
                for (; b != behind; b = b->in_order_) {
                    if (b != winner) b->unlink_if_linked(others);
                }
                lock.unlock();
            }
            b = behind;
        }
    }
    void decide(wait_end end, std::uint32_t winner) noexcept {
        end_.write(static_cast<unsigned char>(end));
        winner_.write(winner);
    }
    // Ends the calls of withdraw(); the last step before the end.
    void forget_limits() noexcept { limits_.reset(); }

private:
    friend class select_branch;
    friend class wait_limits<select_core>;

    // Called by a stop or a deadline, on any thread. forget_limits() waits until it has returned.
    void withdraw() noexcept {
        if (!choice_.give_up()) return;
        granted_waiters others;
        decide(wait_end::withdrawn, 0);
        leave(nullptr, others);
        others.call_all_after([this] { left_(*this); });  // this object may be gone
    }
    bool take(const select_branch& b) noexcept {
        decide(wait_end::granted, b.number_);
        return true;
    }
    const select_branch* attempt(granted_waiters& others) noexcept {
        select_branch* b = first_;
        while (b != nullptr && !b->attempt(others)) b = b->next_;
        return b;
    }
    // Calls change(lock) for each lock, once, in the order of their addresses. The last call may
    // end the select.
    template <class Change>
    void for_each_lock(Change change) noexcept {
        for (select_branch* b = order_; b != nullptr;) {
            queue_lock& lock = *b->lock_;
            b = behind_lock(*b);
            change(lock);
        }
    }
    // Returns the first branch in order that has another lock than `b`, or nullptr.
    static select_branch* behind_lock(const select_branch& b) noexcept {
        select_branch* behind = b.in_order_;
        while (behind != nullptr && behind->lock_ == b.lock_) behind = behind->in_order_;
        return behind;
    }
    // Puts `count` branches, from `b` on, into a random order; moves `b` behind them. Returns the
    // first in order. Two shuffled halves are merged, each by its share of what is left. Cost:
    // O(count log count), and log count calls deep.
    template <class Random>
    static select_branch* shuffled(select_branch*& b, std::uint32_t count,
                                   Random& random) noexcept {
        if (count == 1) {
            select_branch* const one = b;
            b = b->next_;
            one->next_ = nullptr;
            return one;
        }
        std::uint32_t lefts = count / 2;
        std::uint32_t rights = count - lefts;
        select_branch* left = shuffled(b, lefts, random);
        select_branch* right = shuffled(b, rights, random);
        select_branch* first = nullptr;
        select_branch** end = &first;
        while (lefts != 0 && rights != 0) {
            const bool from_left = random(lefts + rights) < lefts;
            --(from_left ? lefts : rights);
            select_branch*& next = from_left ? left : right;
            *end = next;
            end = &next->next_;
            next = next->next_;
        }
        *end = lefts != 0 ? left : right;
        return first;
    }
    // Links `count` branches, from `b` on, in the order of their locks; moves `b` behind them.
    // Returns the first in order. Cost: O(count log count), and log count calls deep.
    static select_branch* sorted(select_branch*& b, std::uint32_t count) noexcept {
        if (count == 1) {
            select_branch* const one = b;
            b = b->next_;
            one->in_order_ = nullptr;
            return one;
        }
        select_branch* left = sorted(b, count / 2);
        select_branch* right = sorted(b, count - count / 2);
        select_branch* first = nullptr;
        select_branch** end = &first;
        while (left != nullptr && right != nullptr) {
            select_branch*& less = std::less<>()(right->lock_, left->lock_) ? right : left;
            *end = less;
            end = &less->in_order_;
            less = less->in_order_;
        }
        *end = left != nullptr ? left : right;
        return first;
    }

    function* const left_;
    shared_choice choice_{shared_choice::beginning};
    select_branch* first_ = nullptr;
    select_branch* last_ = nullptr;
    select_branch* order_ = nullptr;  // all branches, in the order of their locks
    std::uint32_t count_ = 0;
    // Written by the thread that ended the select, before its owner reads them.
    plain<std::uint32_t> winner_;
    plain<unsigned char> end_;  // a wait_end
    wait_limits<select_core> limits_;
};

inline select_branch::select_branch(select_core& core, std::uint32_t number) noexcept
    : core_(core), number_(number) {
    (core.count_ == 0 ? core.first_ : core.last_->next_) = this;
    core.last_ = this;
    ++core.count_;
}

// A select all of whose branches wait for objects of this room.
class lone_select : public select_core {
public:
    // `ended` is called when the select has ended, on the thread that ended it; not if begin()
    // returns true.
    explicit lone_select(function* ended) noexcept
        : select_core(&lone_select::left), ended_(ended) {}

    // Begins. Returns true if the select has ended already. If it returns false, the select ends
    // later, and may be gone. Precondition: take_ready() has failed, or need not be tried.
    bool begin(const completion_env& env) noexcept {
        if (!enter(env)) return true;
        granted_waiters others;
        const bool waits = link(others);
        others.call_all();
        if (waits) return false;  // this object may be gone
        forget_limits();
        return true;
    }

private:
    static void left(select_core& core) noexcept {
        lone_select& self = static_cast<lone_select&>(core);
        self.forget_limits();
        self.ended_(self);  // this object may be gone
    }

    function* const ended_;
};

}  // namespace coppice::internal
