// The sender of on, which is never connected: on_t transforms it before.
#pragma once

#include <coppice/exec/closure.hpp>
#include <coppice/exec/internal/attrs.hpp>

namespace coppice::execution {
struct on_t;
}

namespace coppice::execution::internal {

template <class Sch, class Closure>
struct on_data {
    [[no_unique_address]] Sch sch;
    [[no_unique_address]] Closure closure;
    template <class S, class C>
    constexpr on_data(S&& s, C&& c) : sch(static_cast<S&&>(s)), closure(static_cast<C&&>(c)) {}
};

// Completes where it returns to. Sndr is an on_sender.
template <class Sndr, class Data, class Child>
class on_attrs : public forwarded_attrs<Child> {
public:
    using forwarded_attrs<Child>::forwarded_attrs;
    using forwarded_attrs<Child>::query;

    template <class Env>
        requires Sndr::template
    returns<Env> constexpr auto query(get_completion_scheduler_t<set_value_t> ask,
                                      const Env& env) const noexcept {
        if constexpr (scheduler<Data>) {
            return get_start_scheduler(env);
        } else {
            return ask(execution::get_env(*this->child_), env);
        }
    }
};

// Decomposes as [tag, data, child]: data is the scheduler, or the scheduler and the closure.
template <class Data, class Child>
struct on_sender {
    using sender_concept = sender_tag;
    using tag_type = on_t;
    using decomposable = void;

    [[no_unique_address]] Data data;
    [[no_unique_address]] Child child;

    template <class DataInit, class ChildInit>
    constexpr on_sender(DataInit&& d,
                        ChildInit&& c) noexcept(std::is_nothrow_constructible_v<Data, DataInit> &&
                                                std::is_nothrow_constructible_v<Child, ChildInit>)
        : data(static_cast<DataInit&&>(d)), child(static_cast<ChildInit&&>(c)) {}

    // True if the environment says where to return to.
    template <class Env>
    static constexpr bool returns =
        scheduler<Data>
            ? callable<get_start_scheduler_t, const Env&>
            : callable<get_completion_scheduler_t<set_value_t>, env_of_t<const Child&>, const Env&>;

    constexpr auto get_env() const noexcept { return on_attrs<on_sender, Data, Child>(child); }

    // Called only for an on that was not transformed: without an environment, or with one that does
    // not say where to return to.
    template <class Self, class... Env>
    static consteval auto get_completion_signatures() noexcept {
        if constexpr (sizeof...(Env) == 0) {
            return dependent_signatures();
        } else {
            using Missing = std::conditional_t<scheduler<Data>, start_scheduler_in_the_environment,
                                               known_completion_scheduler>;
            return pipeline_error<in_algorithm<on_t>, got<Env...>, wanted<Missing>>();
        }
    }
};

}  // namespace coppice::execution::internal
