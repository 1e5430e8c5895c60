// simple_counting_scope, counting_scope: count running operations, and wait until none is left.
#pragma once
// spawn, spawn_future, and associate put operations into a scope, through its token. A scope
// outlives its operations: join() completes when the last of them has ended. Source:
// [exec.scope.concepts], [exec.counting.scopes]; the listing of operations is ours.

#include <coppice/base/internal/check.hpp>
#include <coppice/exec/internal/scope_join.hpp>
#include <coppice/exec/stop_when.hpp>
#include <coppice/stop/inplace.hpp>

#include <source_location>

namespace coppice::execution {

// What a token's try_associate() returns: movable, and true while it is associated with a scope.
// Source: [exec.scope.concepts].
template <class Assoc>
concept scope_association = std::movable<Assoc> && std::is_nothrow_move_constructible_v<Assoc> &&
                            std::is_nothrow_move_assignable_v<Assoc> &&
                            std::default_initializable<Assoc> && requires(const Assoc assoc) {
                                { static_cast<bool>(assoc) } noexcept;
                                { assoc.try_associate() } -> std::same_as<Assoc>;
                            };
// What spawn, spawn_future, and associate take: associates operations, and wraps senders.
template <class Token>
concept scope_token = std::copyable<Token> && requires(const Token token) {
    { token.try_associate() } -> scope_association;
    { token.wrap(std::declval<internal::scope_test_sender>()) } -> sender_in<env<>>;
};

// Makes a scope record where its operations were spawned. Cost: a lock per operation.
struct record_outstanding_t {};
inline constexpr record_outstanding_t record_outstanding{};

// The base of both scopes. Threads: any, concurrently, except the constructor and destructor.
class scope_base : public internal::scope_state {
public:
    // Upper limits at one time. An association above the limit is refused, as by a closed scope. A
    // join above the limit ends the process.
    using scope_state::max_associations;
    using scope_state::max_joins;

    // Refuses associations from now on. What was associated before continues.
    using scope_state::close;
    // Returns the current count of associations, including joiners that are being pushed.
    using scope_state::outstanding;
    // Calls visit with the source location of each running operation, if the scope records them.
    // Holds the scope's record lock meanwhile: visit must not start or end operations of this
    // scope.
    using scope_state::for_each_outstanding;
    // Writes these locations to stderr, one line each; for debugging a join that does not end.
    void print_outstanding() noexcept;

protected:
    scope_base() noexcept : scope_state(false) {}
    explicit scope_base(record_outstanding_t) noexcept : scope_state(true) {}
    ~scope_base() = default;
};

// Counts operations. Misuse: destroying it before a join has completed ends the process, unless it
// was never used; having more than max_joins joins at one time also ends the process. Cost: one
// atomic operation to associate, one to leave. Source: [exec.scope.simple.counting].
class simple_counting_scope : public scope_base {
public:
    using association = internal::counting_association<simple_counting_scope>;

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
    // Returns a sender that completes once every operation has ended, on the scheduler on which it
    // is started. From then on the scope refuses associations and may be destroyed. A stop does not
    // end the join: stop the operations instead. Cost: no allocation.
    internal::scope_join_sender join() noexcept { return internal::scope_join_sender(*this); }
};

// As simple_counting_scope, and can ask its operations to stop. Source: [exec.scope.counting].
class counting_scope : public scope_base {
public:
    using association = internal::counting_association<counting_scope>;

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
    // Returns a sender that completes once every operation has ended, on the scheduler on which it
    // is started. From then on the scope refuses associations and may be destroyed. A stop does not
    // end the join: stop the operations instead. Cost: no allocation.
    internal::scope_join_sender join() noexcept { return internal::scope_join_sender(*this); }

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
