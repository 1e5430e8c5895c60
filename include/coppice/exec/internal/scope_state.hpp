// scope_state: counts a scope's operations, and completes its joiners when none is left.
#pragma once
// The state of a scope is one word:
//
//   word_      count of associations | count of joins | joined | used | joining | closed
//
//   associate  count + 1, sets used; refused if closed, joined, or full
//   leave      count - 1. If that makes it 0 while joining: takes the joiners, sets joined, and
//              completes the joiners.
//   join       If the count is 0: sets joined at once. Otherwise count + 1, joins + 1, and sets
//              joining; then pushes the joiner, and leaves like any other association. So the
//              scope cannot end while the joiner is pushed. The count of joins only grows, so an
//              unchanged word means that no joiner came and left in between.
//   close      sets closed
//
// The thread that sets `joined` has taken the joiners before, and does not touch the scope
// afterwards, because a joiner's completion may destroy it. If the word changed meanwhile, the
// thread puts the joiners back and tries again.
//
// A scope made with record_outstanding lists the operations that spawn, spawn_future, and associate
// have put into it. Source: [exec.counting.scopes]; the listing is ours. Model:
// tests/model/scope_model.cpp.

#include <coppice/base/internal/atomic.hpp>
#include <coppice/base/internal/check.hpp>
#include <coppice/base/internal/namespaces.hpp>
#include <coppice/base/intrusive.hpp>
#include <coppice/base/lifetime.hpp>

#include <cstddef>
#include <source_location>
#include <utility>

namespace coppice::execution::internal {

// The record of one operation; a part of the operation. Its scope links and unlinks it.
class scope_record : public list_hook<> {
public:
    explicit scope_record(std::source_location where) noexcept : where_(where) {}
    const std::source_location& where() const noexcept { return where_; }

private:
    std::source_location where_;
};

// Threads: any, concurrently, except the constructor and destructor.
class scope_state : immovable {
public:
    // Upper limits at one time. An association above the limit is refused, as by a closed scope. A
    // join above the limit ends the process.
    static constexpr std::size_t max_associations = (std::size_t(1) << 40) - 1;
    static constexpr std::size_t max_joins = (std::size_t(1) << 16) - 1;

    // A waiter for the end of the scope.
    class joiner : immovable {
    public:
        virtual void complete() noexcept = 0;
        // The scope's. Written by the pushing thread, read by the completing thread.
        plain<joiner*> next{nullptr};

    protected:
        ~joiner() = default;
    };

    // Refuses associations from now on.
    void close() noexcept {
        word_.fetch_or(closed, relaxed);  // relaxed: publishes nothing else
    }
    // Returns the current count of associations, including joiners that are being pushed.
    std::size_t outstanding() const noexcept { return word_.load(relaxed) / unit; }

    // Calls visit with the source location of each running operation, if the scope records them.
    // Holds the scope's record lock meanwhile: visit must not start or end operations of this
    // scope.
    template <class Visit>
    void for_each_outstanding(Visit visit) noexcept {
        lock_records();
        records_.for_each([&visit](scope_record& record) { visit(record.where()); });
        unlock_records();
    }

    // Adds an association. Returns false if the scope refuses. For associations and joins only.
    [[nodiscard]] bool associate() noexcept {
        std::size_t seen = word_.load(relaxed);
        do {
            if ((seen & (closed | joined)) != 0 || seen / unit >= max_associations) return false;
            // relaxed: an association publishes nothing
        } while (!word_.compare_exchange_weak(seen, (seen + unit) | used, relaxed, relaxed));
        return true;
    }
    // Ends an association. The last one completes the joiners. The scope may be gone afterwards.
    void leave() noexcept;
    // Returns true if the scope is joined and the caller must complete the joiner itself. Returns
    // false if the joiner will be completed, which may already have happened.
    [[nodiscard]] bool start_join(joiner& waiting) noexcept;
    bool records() const noexcept { return recording_; }
    // Records an operation that has been associated.
    void add(scope_record& record) noexcept {
        lock_records();
        records_.push_back(record);
        unlock_records();
    }
    // Removes the record of an operation that has ended.
    void remove(scope_record& record) noexcept {
        lock_records();
        intrusive_list<scope_record>::erase(record);
        unlock_records();
    }

protected:
    explicit scope_state(bool records) noexcept : recording_(records) {}
    ~scope_state() = default;

    // Called first by a scope's destructor, so that a missing join is reported before members die.
    void check_joined(const char* unless_joined) const noexcept {
        // edge scope.leave (acquire): what all operations did
        const std::size_t last = word_.load(acquire);
        COPPICE_CHECK((last & joined) != 0 || (last & used) == 0, unless_joined);
        COPPICE_CHECK(
            last / unit == 0,
            "a scope was destroyed during a call of its request_stop(): let the call return first");
    }

    // Keeps joins from completing, without marking the scope as used. Returns false if it is
    // joined.
    [[nodiscard]] bool hold() noexcept {
        std::size_t seen = word_.load(relaxed);
        do {
            if ((seen & joined) != 0) return false;
        } while (!word_.compare_exchange_weak(seen, seen + unit, relaxed, relaxed));
        return true;
    }

private:
    static constexpr std::size_t closed = 1;
    static constexpr std::size_t joining = 2;
    static constexpr std::size_t used = 4;
    static constexpr std::size_t joined = 8;
    static constexpr std::size_t join_unit = std::size_t(1) << 4;
    static constexpr std::size_t unit = std::size_t(1) << 20;

    void push_joiners(joiner* first, joiner* last) noexcept;
    void lock_records() noexcept {
        // edge scope.records (acquire): the list as the last holder left it
        while (locked_.exchange(true, acquire)) spin_hint();
    }
    void unlock_records() noexcept {
        locked_.store(false, release);  // edge scope.records (release): the list is whole
    }

    atomic<std::size_t> word_{0};       // see above; written by all threads
    atomic<joiner*> joiners_{nullptr};  // pushed by joiners; taken by the last to leave
    atomic<bool> locked_{false};        // guards records_
    const bool recording_;
    intrusive_list<scope_record> records_;
};

inline void scope_state::push_joiners(joiner* first, joiner* last) noexcept {
    joiner* head = joiners_.load(relaxed);
    do {
        last->next.write(head);
        // edge scope.joiner (release): the joiner is linked; pairs with leave()
    } while (!joiners_.compare_exchange_weak(head, first, release, relaxed));
}

inline void scope_state::leave() noexcept {
    std::size_t seen = word_.load(relaxed);
    for (;;) {
        if (seen / unit != 1 || (seen & joining) == 0) {
            // edge scope.leave (release): what the operation did; pairs with the last to leave
            if (word_.compare_exchange_weak(seen, seen - unit, release, relaxed)) return;
            continue;
        }
        // edge scope.joiner (acquire): the joiners are linked
        joiner* const waiting = joiners_.exchange(nullptr, acquire);
        const std::size_t next = ((seen - unit) | joined) & ~joining;
        // edge scope.leave (release), edge scope.leave (acquire): what all operations did
        if (word_.compare_exchange_strong(seen, next, acq_rel, relaxed)) {
            for (joiner* j = waiting; j != nullptr;) {
                joiner* const following = j->next.read();
                j->complete();  // the scope may be gone
                j = following;
            }
            return;
        }
        if (waiting != nullptr && !planted("scope.forget_joiners")) {
            joiner* last = waiting;
            while (joiner* const next_one = last->next.read()) last = next_one;
            push_joiners(waiting, last);
        }
    }
}

inline bool scope_state::start_join(joiner& waiting) noexcept {
    // edge scope.leave (acquire): what all operations did
    std::size_t seen = word_.load(acquire);
    for (;;) {
        if (seen / unit == 0) {
            if ((seen & joined) != 0) return true;
            // edge scope.leave (acquire): as above
            if (word_.compare_exchange_weak(seen, seen | joined, acquire, acquire)) return true;
        } else {
            COPPICE_CHECK((seen % unit) / join_unit < max_joins, "too many joins of one scope");
            std::size_t held = planted("scope.join_without_hold") ? seen : seen + unit;
            if (!planted("scope.join_uncounted")) held += join_unit;
            // edge scope.leave (acquire): as above
            if (word_.compare_exchange_weak(seen, held | joining, acquire, acquire)) break;
        }
    }
    push_joiners(&waiting, &waiting);
    if (!planted("scope.join_without_hold")) leave();  // the scope may be gone
    return false;
}

// Owns one association with a scope, or none. Source: association-t of [exec.counting.scopes].
template <class Scope>
class counting_association {
public:
    counting_association() noexcept = default;
    explicit counting_association(Scope& associated) noexcept : scope_(&associated) {}
    counting_association(counting_association&& other) noexcept
        : scope_(std::exchange(other.scope_, nullptr)) {}
    counting_association& operator=(counting_association&& other) noexcept {
        Scope* const theirs = std::exchange(other.scope_, nullptr);
        if (Scope* const mine = std::exchange(scope_, theirs)) mine->leave();
        return *this;
    }
    ~counting_association() {
        if (scope_ != nullptr) scope_->leave();
    }

    explicit operator bool() const noexcept { return scope_ != nullptr; }
    counting_association try_associate() const noexcept {
        if (scope_ == nullptr || !scope_->associate()) return counting_association();
        return counting_association(*scope_);
    }
    // Returns the scope, for records; nullptr if there is no association.
    scope_state* base() const noexcept { return scope_; }

private:
    Scope* scope_ = nullptr;
};

// Keeps an operation in its scope's list during its lifetime, if the scope keeps a list.
class scope_listing : immovable {
public:
    explicit scope_listing(std::source_location where) noexcept : record_(where) {}
    ~scope_listing() {
        if (scope_ != nullptr) scope_->remove(record_);
    }
    template <class Assoc>
    void enter(const Assoc& assoc) noexcept {
        if constexpr (requires { assoc.base(); }) {
            if (assoc.base() == nullptr || !assoc.base()->records()) return;
            scope_ = assoc.base();
            scope_->add(record_);
        }
    }

private:
    scope_record record_;
    scope_state* scope_ = nullptr;
};

}  // namespace coppice::execution::internal
