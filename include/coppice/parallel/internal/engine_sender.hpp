// engine_sender: an algorithm as a sender, which runs its engine on a scheduler.
#pragma once
// The operation holds the engine and the operation of schedule(), so it allocates nothing. The
// engine obeys the receiver's stop token.

#include <coppice/exec/internal/adaptor.hpp>
#include <coppice/exec/internal/child_attrs.hpp>
#include <coppice/exec/internal/inplace_token_of.hpp>
#include <coppice/exec/internal/transformation.hpp>
#include <coppice/parallel/internal/place.hpp>

#include <concepts>
#include <exception>
#include <optional>
#include <type_traits>
#include <utility>

namespace coppice::parallel::internal {

// The values that the sender of an algorithm sends, by the type of its engine's result: none for
// bool.
template <class Result>
struct given_value {
    using signature = execution::set_value_t();
};
template <class T>
struct given_value<std::optional<T>> {
    using signature = execution::set_value_t(T);
};

// The child of the operation is schedule(); its receiver runs the engine.
template <class Engine, class Rcvr>
class engine_receiver
    : public execution::internal::passing_receiver<execution::internal::data_state<Engine, Rcvr>,
                                                   Rcvr> {
    using base =
        execution::internal::passing_receiver<execution::internal::data_state<Engine, Rcvr>, Rcvr>;
    using token_type = stop_token_of_t<execution::env_of_t<Rcvr>>;
    using result_type = engine_result_t<Engine>;

public:
    using base::base;

    void set_value() && noexcept {
        Rcvr& rcvr = this->state_->rcvr;
        try {
            result_type result = call();
            if (!result) return execution::set_stopped(static_cast<Rcvr&&>(rcvr));
            if constexpr (std::is_same_v<result_type, bool>) {
                execution::set_value(static_cast<Rcvr&&>(rcvr));
            } else {
                execution::set_value(static_cast<Rcvr&&>(rcvr), *std::move(result));
            }
        } catch (...) {  // what the engine threw: completions do not throw
            execution::set_error(static_cast<Rcvr&&>(rcvr), std::current_exception());
        }
    }

private:
    result_type call() {
        const auto token = get_stop_token(execution::get_env(this->state_->rcvr));
        execution::internal::inplace_token_of<token_type> stop(token);
        stop.listen(token);
        const inplace_stop_token inside = stop.get();
        return internal::call_engine_here(this->state_->data, &inside);
    }
};

template <class Sigs, class Engine>
struct engine_signatures;
template <class... Fns, class Engine>
struct engine_signatures<execution::completion_signatures<Fns...>, Engine> {
    template <class Fn>
    struct other {
        using type = execution::completion_signatures<Fn>;
    };
    template <class... Args>
    struct other<execution::set_value_t(Args...)> {
        using type = execution::completion_signatures<>;
    };
    using type = execution::internal::signatures_union_t<
        execution::completion_signatures<typename given_value<engine_result_t<Engine>>::signature,
                                         execution::set_error_t(std::exception_ptr),
                                         execution::set_stopped_t()>,
        typename other<Fns>::type...>;
};

template <class Sch, class Engine>
class [[nodiscard]] engine_sender {
    using child_type = execution::schedule_result_t<Sch>;
    template <class Rcvr>
    using operation = execution::internal::adaptor_operation<
        child_type, execution::internal::data_state<Engine, Rcvr>, engine_receiver<Engine, Rcvr>>;

public:
    using sender_concept = execution::sender_tag;

    engine_sender(const Sch& sch, Engine engine)
        : child_(execution::schedule(sch)), engine_(static_cast<Engine&&>(engine)) {}

    auto get_env() const noexcept {
        return execution::internal::child_attrs<child_type, execution::set_value_t>(child_);
    }
    template <class Self, class... Env>
    static consteval auto get_completion_signatures() noexcept {
        using Sigs = execution::signatures_of<child_type, execution::internal::fwd_env_t<Env>...>;
        return execution::internal::transform_if_valid<engine_signatures, Sigs, Engine>();
    }
    template <execution::receiver Rcvr>
    auto connect(Rcvr rcvr) && {
        return operation<Rcvr>(static_cast<child_type&&>(child_), static_cast<Engine&&>(engine_),
                               static_cast<Rcvr&&>(rcvr));
    }
    template <execution::receiver Rcvr>
        requires std::copy_constructible<Engine> && std::copy_constructible<child_type>
    auto connect(Rcvr rcvr) const& {
        return engine_sender(*this).connect(static_cast<Rcvr&&>(rcvr));
    }

private:
    child_type child_;
    Engine engine_;
};

}  // namespace coppice::parallel::internal
