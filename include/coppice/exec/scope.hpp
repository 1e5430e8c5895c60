// simple_counting_scope, counting_scope: count running operations, and wait until none is left.
#pragma once
// A scope outlives the operations associated with it: join() completes when the last of them has
// ended. The state of a scope is one word:
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
// have put into it, with their source locations; for debugging a join that does not end.
// Source: [exec.scope.concepts], [exec.counting.scopes]; the listing is ours. Model:
// tests/model/scope_model.cpp.

#include <coppice/base/internal/atomic.hpp>
#include <coppice/base/internal/check.hpp>
#include <coppice/base/intrusive.hpp>
#include <coppice/exec/scheduler.hpp>
#include <coppice/exec/stop_when.hpp>
#include <coppice/stop/inplace.hpp>

#include <source_location>

namespace coppice::execution {

struct scope_test_sender {
    using sender_concept = sender_tag;
    template <class Self, class... Env>
    static consteval auto get_completion_signatures() noexcept {
        return completion_signatures<set_value_t()>();
    }
    template <class Rcvr>
    struct operation {
        using operation_state_concept = operation_state_tag;
        void start() & noexcept;
    };
    template <receiver Rcvr>
    operation<Rcvr> connect(Rcvr) const;
};

// Source: [exec.scope.concepts].
template <class Assoc>
concept scope_association = std::movable<Assoc> && std::is_nothrow_move_constructible_v<Assoc> &&
                            std::is_nothrow_move_assignable_v<Assoc> &&
                            std::default_initializable<Assoc> && requires(const Assoc assoc) {
                                { static_cast<bool>(assoc) } noexcept;
                                { assoc.try_associate() } -> std::same_as<Assoc>;
                            };
template <class Token>
concept scope_token = std::copyable<Token> && requires(const Token token) {
    { token.try_associate() } -> scope_association;
    { token.wrap(std::declval<scope_test_sender>()) } -> sender_in<env<>>;
};

// Makes a scope record where its operations were spawned. Cost: a lock per operation.
struct record_outstanding_t {};
inline constexpr record_outstanding_t record_outstanding{};

// The record of one operation; a part of the operation. Its scope links and unlinks it.
class scope_record : public list_hook<> {
public:
    explicit scope_record(std::source_location where) noexcept : where_(where) {}
    const std::source_location& where() const noexcept { return where_; }

private:
    std::source_location where_;
};

// The base of both scopes. Threads: any, concurrently, except the constructor and destructor.
class scope_base : immovable {
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
        internal::plain<joiner*> next{nullptr};

    protected:
        ~joiner() = default;
    };

    // Refuses associations from now on.
    void close() noexcept {
        word_.fetch_or(closed, internal::relaxed);  // relaxed: publishes nothing else
    }
    // Returns the current count of associations, including joiners that are being pushed.
    std::size_t outstanding() const noexcept { return word_.load(internal::relaxed) / unit; }

    // Calls visit with the source location of each running operation, if the scope records them.
    // Holds the scope's record lock meanwhile: visit must not start or end operations of this
    // scope.
    template <class Visit>
    void for_each_outstanding(Visit visit) noexcept {
        lock_records();
        records_.for_each([&visit](scope_record& record) { visit(record.where()); });
        unlock_records();
    }
    // Writes these locations to stderr, one line each.
    void print_outstanding() noexcept;

    // Adds an association. Returns false if the scope refuses. For associations and joins only.
    [[nodiscard]] bool associate() noexcept {
        std::size_t seen = word_.load(internal::relaxed);
        do {
            if ((seen & (closed | joined)) != 0 || seen / unit >= max_associations) return false;
            // relaxed: an association publishes nothing
        } while (!word_.compare_exchange_weak(seen, (seen + unit) | used, internal::relaxed,
                                              internal::relaxed));
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
    scope_base() noexcept = default;
    explicit scope_base(record_outstanding_t) noexcept : recording_(true) {}
    ~scope_base() = default;

    // Called first by a scope's destructor, so that a missing join is reported before members die.
    void check_joined(const char* unless_joined) const noexcept {
        // edge scope.leave (acquire): what all operations did
        const std::size_t last = word_.load(internal::acquire);
        COPPICE_CHECK((last & joined) != 0 || (last & used) == 0, unless_joined);
        COPPICE_CHECK(last / unit == 0,
                      "a scope was destroyed during a call of its request_stop()");
    }

    // Keeps joins from completing, without marking the scope as used. Returns false if it is
    // joined.
    [[nodiscard]] bool hold() noexcept {
        std::size_t seen = word_.load(internal::relaxed);
        do {
            if ((seen & joined) != 0) return false;
        } while (
            !word_.compare_exchange_weak(seen, seen + unit, internal::relaxed, internal::relaxed));
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
        while (locked_.exchange(true, internal::acquire)) internal::spin_hint();
    }
    void unlock_records() noexcept {
        locked_.store(false, internal::release);  // edge scope.records (release): the list is whole
    }

    internal::atomic<std::size_t> word_{0};       // see above; written by all threads
    internal::atomic<joiner*> joiners_{nullptr};  // pushed by joiners; taken by the last to leave
    internal::atomic<bool> locked_{false};        // guards records_
    bool recording_ = false;
    intrusive_list<scope_record> records_;
};

inline void scope_base::push_joiners(joiner* first, joiner* last) noexcept {
    joiner* head = joiners_.load(internal::relaxed);
    do {
        last->next.write(head);
        // edge scope.joiner (release): the joiner is linked; pairs with leave()
    } while (!joiners_.compare_exchange_weak(head, first, internal::release, internal::relaxed));
}

inline void scope_base::leave() noexcept {
    std::size_t seen = word_.load(internal::relaxed);
    for (;;) {
        if (seen / unit != 1 || (seen & joining) == 0) {
            // edge scope.leave (release): what the operation did; pairs with the last to leave
            if (word_.compare_exchange_weak(seen, seen - unit, internal::release,
                                            internal::relaxed))
                return;
            continue;
        }
        // edge scope.joiner (acquire): the joiners are linked
        joiner* const waiting = joiners_.exchange(nullptr, internal::acquire);
        const std::size_t next = ((seen - unit) | joined) & ~joining;
        // edge scope.leave (release), edge scope.leave (acquire): what all operations did
        if (word_.compare_exchange_strong(seen, next, internal::acq_rel, internal::relaxed)) {
            for (joiner* j = waiting; j != nullptr;) {
                joiner* const following = j->next.read();
                j->complete();  // the scope may be gone
                j = following;
            }
            return;
        }
        if (waiting != nullptr && !internal::planted("scope.forget_joiners")) {
            joiner* last = waiting;
            while (joiner* const next_one = last->next.read()) last = next_one;
            push_joiners(waiting, last);
        }
    }
}

inline bool scope_base::start_join(joiner& waiting) noexcept {
    // edge scope.leave (acquire): what all operations did
    std::size_t seen = word_.load(internal::acquire);
    for (;;) {
        if (seen / unit == 0) {
            if ((seen & joined) != 0) return true;
            // edge scope.leave (acquire): as above
            if (word_.compare_exchange_weak(seen, seen | joined, internal::acquire,
                                            internal::acquire))
                return true;
        } else {
            COPPICE_CHECK((seen % unit) / join_unit < max_joins, "too many joins of one scope");
            std::size_t held = internal::planted("scope.join_without_hold") ? seen : seen + unit;
            if (!internal::planted("scope.join_uncounted")) held += join_unit;
            // edge scope.leave (acquire): as above
            if (word_.compare_exchange_weak(seen, held | joining, internal::acquire,
                                            internal::acquire))
                break;
        }
    }
    push_joiners(&waiting, &waiting);
    if (!internal::planted("scope.join_without_hold")) leave();  // the scope may be gone
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
    scope_base* base() const noexcept { return scope_; }

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
    scope_base* scope_ = nullptr;
};

struct scope_join_t {};

// Completes on the receiver's start scheduler once the scope has ended.
template <class Rcvr>
class scope_join_operation final : scope_base::joiner {
public:
    using operation_state_concept = operation_state_tag;
    using schedule_sender =
        schedule_result_t<internal::call_result_t<get_start_scheduler_t, env_of_t<const Rcvr&>>>;
    using schedule_receiver = passing_receiver<receiver_state<Rcvr>, Rcvr>;

    scope_join_operation(scope_base& scope, Rcvr rcvr) noexcept(
        nothrow_connectable<schedule_sender, schedule_receiver>)
        : scope_(&scope),
          state_(static_cast<Rcvr&&>(rcvr)),
          schedule_(execution::connect(
              schedule(get_start_scheduler(execution::get_env(std::as_const(state_.rcvr)))),
              schedule_receiver(state_))) {}
    ~scope_join_operation() {
        COPPICE_CHECK(!waiting_, "an operation of a scope's join was destroyed while it waited");
    }
    void start() & noexcept {
        COPPICE_CHECK(!started_, "an operation of a scope's join was started twice");
        started_ = true;
        waiting_ = true;
        if (!scope_->start_join(*this)) return;  // *this may be gone
        waiting_ = false;
        set_value(static_cast<Rcvr&&>(state_.rcvr));
    }

private:
    void complete() noexcept override {
        waiting_ = false;
        execution::start(schedule_);
    }

    scope_base* scope_;
    receiver_state<Rcvr> state_;
    connect_result_t<schedule_sender, schedule_receiver> schedule_;
    bool started_ = false;
    bool waiting_ = false;
};

// Decomposes as [tag, data].
struct scope_join_sender {
    using sender_concept = sender_tag;
    using tag_type = scope_join_t;
    using decomposable = void;

    scope_base* data;

    explicit scope_join_sender(scope_base& scope) noexcept : data(&scope) {}

    constexpr inline_attrs<set_value_t> get_env() const noexcept { return {}; }
    template <class Self, class... Env>
    static consteval auto get_completion_signatures() noexcept {
        return signatures<Env...>();
    }
    template <receiver Rcvr>
    auto connect(Rcvr rcvr) const
        noexcept(std::is_nothrow_constructible_v<scope_join_operation<Rcvr>, scope_base&, Rcvr>) {
        return scope_join_operation<Rcvr>(*data, static_cast<Rcvr&&>(rcvr));
    }

private:
    template <class... None>
        requires(sizeof...(None) == 0)
    static consteval dependent_signatures signatures() noexcept {
        return {};
    }
    template <class Env>
    static consteval auto signatures() noexcept {
        if constexpr (internal::callable<get_start_scheduler_t, Env>) {
            using Schedule = schedule_result_t<internal::call_result_t<get_start_scheduler_t, Env>>;
            return signatures_union_t<completion_signatures<set_value_t()>,
                                      signatures_of<Schedule, fwd_env_t<Env>>>();
        } else {
            return pipeline_error<in_algorithm<scope_join_t>, got<Env>,
                                  wanted<start_scheduler_in_the_environment>>();
        }
    }
};

// Counts operations. Misuse: destroying it before a join has completed ends the process, unless it
// was never used; having more than max_joins joins at one time also ends the process. Cost: one
// atomic operation to associate, one to leave. Source: [exec.scope.simple.counting].
class simple_counting_scope : public scope_base {
public:
    using association = counting_association<simple_counting_scope>;

    class token {
    public:
        template <sender Sndr>
        Sndr&& wrap(Sndr&& sndr) const noexcept {
            return static_cast<Sndr&&>(sndr);
        }
        association try_associate() const noexcept {
            return scope_->associate() ? association(*scope_) : association();
        }

    private:
        friend class simple_counting_scope;
        explicit token(simple_counting_scope& scope) noexcept : scope_(&scope) {}
        simple_counting_scope* scope_;
    };

    simple_counting_scope() noexcept = default;
    ~simple_counting_scope() {
        check_joined(
            "a simple_counting_scope was destroyed before its join() completed: await "
            "join() on every path, also when an exception leaves or a stop comes, or use "
            "scoped(...) or let_async_scope(...), which join by themselves");
    }
    // Records where its operations are spawned; see for_each_outstanding().
    explicit simple_counting_scope(record_outstanding_t listing) noexcept : scope_base(listing) {}

    // Returns the token for spawn(), spawn_future(), and associate(). Lifetime: the scope outlives
    // it.
    token get_token() noexcept { return token(*this); }
    // Returns a sender that completes once every operation has ended.
    scope_join_sender join() noexcept { return scope_join_sender(*this); }
};

// As simple_counting_scope, and can ask its operations to stop. Source: [exec.scope.counting].
class counting_scope : public scope_base {
public:
    using association = counting_association<counting_scope>;

    class token {
    public:
        template <sender Sndr>
        sender auto wrap(Sndr&& sndr) const
            noexcept(std::is_nothrow_constructible_v<std::remove_cvref_t<Sndr>, Sndr>) {
            return stop_when(static_cast<Sndr&&>(sndr), scope_->get_stop_token());
        }
        association try_associate() const noexcept {
            return scope_->associate() ? association(*scope_) : association();
        }

    private:
        friend class counting_scope;
        explicit token(counting_scope& scope) noexcept : scope_(&scope) {}
        counting_scope* scope_;
    };

    counting_scope() noexcept = default;
    ~counting_scope() {
        check_joined(
            "a counting_scope was destroyed before its join() completed: await join() on "
            "every path, also when an exception leaves or a stop comes, or use "
            "scoped(...) or let_async_scope(...), which join by themselves");
    }
    // Records where its operations are spawned; see for_each_outstanding().
    explicit counting_scope(record_outstanding_t listing) noexcept : scope_base(listing) {}

    // Returns the token for spawn(), spawn_future(), and associate(). Lifetime: the scope outlives
    // it.
    token get_token() noexcept { return token(*this); }
    // Returns a sender that completes once every operation has ended.
    scope_join_sender join() noexcept { return scope_join_sender(*this); }

    // Asks all operations to stop, including those associated later. No join completes before this
    // returns, so the scope may be destroyed as soon as it has been joined.
    void request_stop() noexcept {
        const bool held = !internal::planted("scope.stop_without_hold") && hold();
        source_.request_stop();
        if (held) leave();
    }

    // Returns the token that request_stop() stops. Lifetime: the scope outlives it.
    inplace_stop_token get_stop_token() const noexcept { return source_.get_token(); }

private:
    inplace_stop_source source_;
};

}  // namespace coppice::execution
