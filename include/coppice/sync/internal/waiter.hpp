// waiter: an operation in the queue of an object, and which thread ends it.
#pragma once
// An operation that cannot complete links its waiter into the queue of its object. It leaves the
// queue in one of two ways, both under the object's queue_lock:
//
//   granted    another thread takes it out, claims it, and moves what it waits for: the lock, the
//              permits, the item. After it has left the lock, it calls the waiter's function.
//   withdrawn  a stop request or a deadline finds it still linked, claims it, and takes it out.
//              Nothing was moved.
//
// A waiter outside a select is claimed by the thread that finds it linked: the queue_lock decides.
// The branches of a select are in the queues of several objects, so they share a choice, one word,
// and the first thread that changes it claims the whole select.

#include <coppice/base/internal/atomic.hpp>
#include <coppice/base/intrusive.hpp>
#include <coppice/base/lifetime.hpp>
#include <coppice/sync/internal/queue_lock.hpp>
#include <coppice/token/internal/inline_start.hpp>

#include <cstddef>
#include <cstdint>
#include <utility>

namespace coppice::internal {

// The word that the waiters of a select share: how far the select is.
//
//   beginning   the select looks for a branch that is ready; a stop only leaves a mark
//   open        the waiters are linked
//   given_up    a stop or a deadline was first
//   else        the number of the branch that was first
class shared_choice : immovable {
public:
    static constexpr std::uint32_t open = UINT32_MAX;
    static constexpr std::uint32_t beginning = UINT32_MAX - 1;
    static constexpr std::uint32_t given_up = UINT32_MAX - 2;

    constexpr explicit shared_choice(std::uint32_t state = open) noexcept : chosen_(state) {}

    // Returns true for the first caller only.
    bool claim(std::uint32_t branch) noexcept {
        if (planted("shared_choice.claim_twice")) return true;
        // Relaxed, here and below: the queue_locks and the completion order what is moved.
        std::uint32_t expected = open;
        return chosen_.compare_exchange_strong(expected, branch, relaxed, relaxed);
    }
    // beginning -> open. Returns false if a stop came before; the word is given_up then.
    bool open_up() noexcept {
        std::uint32_t expected = beginning;
        return chosen_.compare_exchange_strong(expected, open, relaxed, relaxed);
    }
    // Called by a stop or a deadline. Returns true if the caller must now end the select. Returns
    // false if the select has ended, or will find the mark.
    bool give_up() noexcept {
        std::uint32_t expected = beginning;
        if (chosen_.compare_exchange_strong(expected, given_up, relaxed, relaxed)) return false;
        return claim(given_up);
    }
    // Returns false if the select has ended or will. May be stale.
    bool is_open() const noexcept { return chosen_.load(relaxed) == open; }

private:
    atomic<std::uint32_t> chosen_;
};

class granted_waiters;

// Lifetime: until its function is called, or the operation that owns it withdraws it.
class waiter : public list_hook<> {
public:
    using function = void(waiter&) noexcept;

    explicit waiter(function* granted) noexcept : granted_(granted) {}
    // A branch of a select. Lifetime: `choice` outlives the waiter.
    waiter(function* granted, shared_choice& choice, std::uint32_t branch) noexcept
        : granted_(granted), choice_(&choice), branch_(branch) {}

    // Called inside the object's lock, for a waiter that is linked or was just taken out. Returns
    // true if the caller must now grant it what it waits for; false if its select has ended.
    bool claim() noexcept { return choice_ == nullptr || choice_->claim(branch_); }
    std::uint32_t branch() const noexcept { return branch_; }
    // Called inside its function: returns the list that calls it. What the function adds there is
    // called after it, and not on top of it.
    granted_waiters& called_by() const noexcept { return *called_by_; }

private:
    friend class granted_waiters;
    function* granted_;
    shared_choice* choice_ = nullptr;
    std::uint32_t branch_ = 0;
    union {
        waiter* next_granted_ = nullptr;
        granted_waiters* called_by_;  // while its function is called
    };
};

// Waiters that were granted what they wait for, in the order in which they were. The thread that
// granted them calls them when it is inside no lock.
class granted_waiters : immovable {
public:
    granted_waiters() noexcept = default;
    // Adds a waiter that was taken out of its queue and claimed.
    void add(waiter& w) noexcept {
        w.next_granted_ = nullptr;
        *last_ = &w;
        last_ = &w.next_granted_;
    }
    // Calls the functions of all. Each waiter may be gone when its function is called. Callbacks
    // and tasks that the functions end or resume in place follow when all have been called: one
    // that blocks may wait for what one behind it does.
    void call_all() noexcept {
        if (first_ != nullptr) callback_scope::run_together([this] { call_each(); });
    }
    // Calls end(), which ends the operation that made room for these waiters; then as call_all().
    template <class F>
    void call_all_after(F end) noexcept {
        if (first_ == nullptr) {
            end();
        } else {
            callback_scope::run_together([this, &end] {
                end();
                call_each();
            });
        }
    }

private:
    void call_each() noexcept {
        while (waiter* const w = first_) {
            first_ = w->next_granted_;
            if (first_ == nullptr) last_ = &first_;
            w->called_by_ = this;
            w->granted_(*w);
        }
    }

    waiter* first_ = nullptr;
    waiter** last_ = &first_;
};

// A queue of waiters of the type W, oldest first. Guarded by the object's queue_lock.
template <class W>
class waiter_queue {
public:
    constexpr waiter_queue() noexcept = default;
    bool empty() const noexcept { return list_.empty(); }
    void push_back(W& w) noexcept { list_.push_back(w); }
    void erase(W& w) noexcept { intrusive_list<W>::erase(w); }
    // Returns the oldest waiter, or nullptr.
    W* front() noexcept { return list_.front(); }
    // Takes out the oldest waiter that can be claimed, and claims it. Returns nullptr if there is
    // none. Waiters of selects that have ended are taken out on the way.
    W* claim_front() noexcept {
        while (W* const w = list_.pop_front()) {
            if (w->claim()) return w;
        }
        return nullptr;
    }

private:
    intrusive_list<W> list_;
};

}  // namespace coppice::internal
