// receiver_proxy: receivers as the backend of a parallel_scheduler sees them.
#pragma once
// An operation derives from one of the two proxies, which completes the operation's receiver.
// Source: [exec.parschedrepl.recvproxy].

#include <coppice/exec/internal/erased_receiver.hpp>

#include <cstddef>
#include <exception>
#include <optional>
#include <type_traits>

namespace coppice::execution::parallel_scheduler_replacement {

// A receiver as a backend sees it. The backend completes each operation once, by one of the three.
// Threads: any. Its operation may be destroyed inside the completion.
struct receiver_proxy {
public:
    virtual void set_value() noexcept = 0;
    virtual void set_error(std::exception_ptr error) noexcept = 0;
    virtual void set_stopped() noexcept = 0;

    // Asks the receiver's environment: get_stop_token as an inplace_stop_token, or get_deadline as
    // an instant. Returns nothing for other queries and types.
    template <class P, internal::class_type Query>
    std::optional<P> try_query(Query) const noexcept {
        static_assert(
            std::is_object_v<P> && !std::is_array_v<P> && std::is_same_v<P, std::remove_cv_t<P>>,
            "try_query needs an object type without const that is not an array");
        if constexpr (std::is_same_v<Query, get_stop_token_t> &&
                      std::is_same_v<P, inplace_stop_token>) {
            return query_env().query(get_stop_token);
        } else if constexpr (std::is_same_v<Query, get_deadline_t> && std::is_same_v<P, instant>) {
            return get_deadline(query_env());
        } else {
            return std::nullopt;
        }
    }

protected:
    ~receiver_proxy() = default;
    virtual internal::any_env query_env() const noexcept = 0;
};

// The receiver of a bulk operation. The backend calls execute() for ranges, then completes it.
struct bulk_item_receiver_proxy : receiver_proxy {
public:
    // Runs the indices [begin, end). Threads: any number at the same time, on disjoint ranges.
    virtual void execute(std::size_t begin, std::size_t end) noexcept = 0;

protected:
    ~bulk_item_receiver_proxy() = default;
};

}  // namespace coppice::execution::parallel_scheduler_replacement
