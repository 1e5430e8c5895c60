// when_all_outcome: how the children of when_all and when_all_range have completed.
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

#include <exception>

namespace coppice::execution {

template <class Sigs>
struct when_all_errors {
    using type = internal::alternatives<>;
};
template <class... Fns>
struct when_all_errors<completion_signatures<Fns...>> {
    template <class Fn>
    struct error {
        using type = internal::type_list<>;
    };
    template <class Error>
    struct error<set_error_t(Error)> {
        using type = internal::type_list<Error>;
    };
    using type = internal::set_union_t<internal::alternatives<>, typename error<Fns>::type...>;
};

template <class Sigs>
class when_all_outcome : immovable {
public:
    bool all_sent() const noexcept { return how_.load(internal::relaxed) == kind::sent; }
    // Stores the error if it is the first. Returns true if it is.
    template <class Error>
    bool fail(Error&& error) noexcept {
        // relaxed: only decides which child stores the error
        if (how_.exchange(kind::failed, internal::relaxed) == kind::failed) return false;
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
        return how_.compare_exchange_strong(expected, kind::stopped, internal::relaxed,
                                            internal::relaxed);
    }
    // Completes the receiver with the error or with set_stopped. Call it only if not all_sent().
    template <class Rcvr>
    void deliver(Rcvr& rcvr) noexcept {
        if (how_.load(internal::relaxed) == kind::failed) {
            errors_.visit([&rcvr](auto& error) noexcept {
                set_error(static_cast<Rcvr&&>(rcvr), std::move(error));
            });
        } else if constexpr (Sigs::count_of(set_stopped_t()) != 0) {
            set_stopped(static_cast<Rcvr&&>(rcvr));
        }
    }

private:
    enum class kind : unsigned char { sent, failed, stopped };

    internal::atomic<kind> how_{kind::sent};
    typename when_all_errors<Sigs>::type errors_;  // written by the child that made how_ failed
};

}  // namespace coppice::execution
