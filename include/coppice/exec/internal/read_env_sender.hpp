// The sender of read_env.
#pragma once

#include <coppice/base/internal/check.hpp>
#include <coppice/exec/internal/attrs.hpp>

namespace coppice::execution {
struct read_env_t;
}

namespace coppice::execution::internal {

template <class Query, class Rcvr>
class read_env_operation {
public:
    using operation_state_concept = operation_state_tag;
    constexpr read_env_operation(Query query, Rcvr rcvr) noexcept
        : query_(query), rcvr_(static_cast<Rcvr&&>(rcvr)) {}
    read_env_operation(read_env_operation&&) = delete;

    constexpr void start() & noexcept {
        COPPICE_CHECK(!started_,
                      "an operation of read_env was started twice: connect its sender again");
        started_ = true;
        using Env = env_of_t<const Rcvr&>;
        if constexpr (nothrow_callable<Query, Env>) {
            set_value(static_cast<Rcvr&&>(rcvr_), query_(get_env(rcvr_)));
        } else {
            try {
                set_value(static_cast<Rcvr&&>(rcvr_), query_(get_env(rcvr_)));
            } catch (...) {
                set_error(static_cast<Rcvr&&>(rcvr_), std::current_exception());
            }
        }
    }

private:
    [[no_unique_address]] Query query_;
    [[no_unique_address]] Rcvr rcvr_;
    bool started_ = false;
};

// Decomposes as [tag, data]: data is the query.
template <class Query>
struct read_env_sender {
    using sender_concept = sender_tag;
    using tag_type = read_env_t;
    using decomposable = void;

    [[no_unique_address]] Query data;

    constexpr explicit read_env_sender(Query query) noexcept : data(query) {}
    constexpr inline_attrs<set_value_t> get_env() const noexcept { return {}; }
    constexpr read_env_sender affine() const noexcept { return *this; }

    template <class Self, class... Env>
    static consteval auto get_completion_signatures() noexcept {
        return signatures<Env...>();
    }
    template <receiver Rcvr>
    constexpr auto connect(Rcvr rcvr) const noexcept {
        return read_env_operation<Query, Rcvr>(data, static_cast<Rcvr&&>(rcvr));
    }

private:
    template <class... Env>
        requires(sizeof...(Env) == 0)
    static consteval dependent_signatures signatures() noexcept {
        return {};
    }
    template <class Env>
    static consteval auto signatures() noexcept {
        if constexpr (callable<Query, Env>) {
            using Result = call_result_t<Query, Env>;
            if constexpr (!std::is_void_v<Result>) {
                return set_insert_t<exception_signature<!nothrow_callable<Query, Env>>,
                                    set_value_t(Result)>();
            } else {
                return pipeline_error<in_algorithm<read_env_t>, got<Query, Env>,
                                      wanted<value_of_this_query_in_the_environment>>();
            }
        } else {
            return pipeline_error<in_algorithm<read_env_t>, got<Query, Env>,
                                  wanted<value_of_this_query_in_the_environment>>();
        }
    }
};

}  // namespace coppice::execution::internal
