// when_all_outcome: how the children of when_all and when_all_range complete; their common policy.
#pragma once
//   how_   sent -> failed | stopped, by the first child that does not send values
//          stopped -> failed, by the first error
//
// Any child writes it. The outcome is delivered after the last arrival, which publishes everything,
// so all accesses are relaxed.

#include <coppice/base/internal/atomic.hpp>
#include <coppice/base/lifetime.hpp>
#include <coppice/exec/completion_signatures.hpp>
#include <coppice/exec/internal/alternatives.hpp>
#include <coppice/exec/internal/join.hpp>

#include <exception>

namespace coppice::execution::internal {

template <class Sigs>
struct when_all_errors {
    using type = alternatives<>;
};
template <class... Fns>
struct when_all_errors<completion_signatures<Fns...>> {
    template <class Fn>
    struct error {
        using type = type_list<>;
    };
    template <class Error>
    struct error<set_error_t(Error)> {
        using type = type_list<Error>;
    };
    using type = set_union_t<alternatives<>, typename error<Fns>::type...>;
};

template <class Sigs>
class when_all_outcome : immovable {
public:
    bool all_sent() const noexcept { return how_.load(relaxed) == kind::sent; }
    // Stores the error if it is the first. Returns true if it is.
    template <class Error>
    bool fail(Error&& error) noexcept {
        // relaxed: only decides which child stores the error
        if (how_.exchange(kind::failed, relaxed) == kind::failed) return false;
        using Stored = std::decay_t<Error>;
        if constexpr (std::is_nothrow_constructible_v<Stored, Error>) {
            errors_.template emplace<Stored>(static_cast<Error&&>(error));
        } else {
            try {
                errors_.template emplace<Stored>(static_cast<Error&&>(error));
            } catch (...) {
                errors_.template emplace<std::exception_ptr>(std::current_exception());
            }
        }
        return true;
    }
    // Returns true if this child is the first that does not send values.
    bool stop() noexcept {
        kind expected = kind::sent;
        // relaxed: as above
        return how_.compare_exchange_strong(expected, kind::stopped, relaxed, relaxed);
    }
    // Completes the receiver with the error or with set_stopped. Call it only if not all_sent().
    template <class Rcvr>
    void deliver(Rcvr& rcvr) noexcept {
        if (how_.load(relaxed) == kind::failed) {
            errors_.visit([&rcvr](auto& error) noexcept {
                set_error(static_cast<Rcvr&&>(rcvr), std::move(error));
            });
        } else if constexpr (Sigs::count_of(set_stopped_t()) != 0) {
            set_stopped(static_cast<Rcvr&&>(rcvr));
        }
    }

private:
    enum class kind : unsigned char { sent, failed, stopped };

    atomic<kind> how_{kind::sent};
    typename when_all_errors<Sigs>::type errors_;  // written by the child that made how_ failed
};

// Holds the values of one child. Written by the child; read by the last child to arrive.
template <class Product>
class when_all_slot : immovable {
public:
    ~when_all_slot() {
        if (full_) values_.destroy();
    }
    template <class... Args>
    void keep(Args&&... args) {
        values_.construct(construct_each(), static_cast<Args&&>(args)...);
        full_ = true;
    }
    Product& values() noexcept { return values_.get(); }

private:
    manual_lifetime<Product> values_;
    bool full_ = false;
};

// What the policies of when_all and when_all_range have in common. Policy also has value(place,
// args...), which calls keep() with the slot of the place, and send_values().
template <class Policy, class Rcvr, class Source, class Sigs>
class when_all_join : public join_state<Policy, Rcvr, Source> {
public:
    using join_state<Policy, Rcvr, Source>::join_state;

    template <class Error>
    void error(Error&& error) noexcept {
        this->arrive(outcome_.fail(static_cast<Error&&>(error)));
    }
    void stopped(std::size_t) noexcept { this->arrive(outcome_.stop()); }
    void complete() noexcept {
        if (outcome_.all_sent()) {
            static_cast<Policy*>(this)->send_values();
        } else {
            outcome_.deliver(this->rcvr_);
        }
    }

protected:
    // Keeps a child's values, unless they will not be sent.
    template <class Slot, class... Args>
    void keep(Slot& slot, Args&&... args) noexcept {
        if constexpr (nothrow_decay_copyable<Args...>) {
            if (outcome_.all_sent()) slot.keep(static_cast<Args&&>(args)...);
        } else {
            try {
                if (outcome_.all_sent()) slot.keep(static_cast<Args&&>(args)...);
            } catch (...) {
                error(std::current_exception());
                return;
            }
        }
        this->arrive();
    }

private:
    when_all_outcome<Sigs> outcome_;
};

}  // namespace coppice::execution::internal
