// on: runs a sender, or a part of a pipeline, on a scheduler and returns.
#pragma once
// Rewritten as starts_on and continues_on when it is connected, because only then is it known where
// to return to: the environment's start scheduler, or the scheduler on which the child completes.
// Source: [exec.on].

#include <coppice/exec/closure.hpp>
#include <coppice/exec/continues_on.hpp>
#include <coppice/exec/starts_on.hpp>

namespace coppice::execution {

template <class Sch, class Closure>
struct on_data {
    [[no_unique_address]] Sch sch;
    [[no_unique_address]] Closure closure;
    template <class S, class C>
    constexpr on_data(S&& s, C&& c) : sch(static_cast<S&&>(s)), closure(static_cast<C&&>(c)) {}
};

template <class Data, class Child>
struct on_sender;

struct on_t {
    template <scheduler Sch, sender Sndr>
        requires(!internal::is_closure<Sndr>)
    constexpr auto operator()(Sch&& sch, Sndr&& sndr) const;
    template <scheduler Sch, internal::is_closure Closure>
    constexpr auto operator()(Sch&& sch, Closure&& closure) const {
        return execution::bind_adaptor(*this, static_cast<Sch&&>(sch),
                                       static_cast<Closure&&>(closure));
    }
    template <sender Sndr, scheduler Sch, internal::is_closure Closure>
    constexpr auto operator()(Sndr&& sndr, Sch&& sch, Closure&& closure) const;

    template <sender_for<on_t> Sndr, class Env>
        requires std::remove_cvref_t<Sndr>::template
    returns<Env> constexpr auto transform_sender(set_value_t, Sndr&& sndr, const Env& env) const {
        return transform(static_cast<Sndr&&>(sndr).data, static_cast<Sndr&&>(sndr).child, env);
    }

private:
    template <class Data, class Child, class Env>
    static constexpr auto transform(Data&& data, Child&& child, const Env& env) {
        if constexpr (scheduler<Data>) {
            return continues_on(starts_on(static_cast<Data&&>(data), static_cast<Child&&>(child)),
                                get_start_scheduler(env));
        } else {
            auto back = get_completion_scheduler<set_value_t>(get_env(child), env);
            return continues_on(static_cast<Data&&>(data).closure(continues_on(
                                    static_cast<Child&&>(child), static_cast<Data&&>(data).sch)),
                                std::move(back));
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
        scheduler<Data> ? internal::callable<get_start_scheduler_t, const Env&>
                        : internal::callable<get_completion_scheduler_t<set_value_t>,
                                             env_of_t<const Child&>, const Env&>;

    class attrs {
    public:
        constexpr explicit attrs(const on_sender& sndr) noexcept : sndr_(&sndr) {}
        template <class Query, class... Args>
            requires is_forwarding_query<Query> &&
                     (!says_where<Query>) && has_query<env_of_t<const Child&>, Query, Args...>
        constexpr decltype(auto) query(Query ask, Args&&... args) const noexcept {
            return execution::query_attrs(sndr_->child, ask, static_cast<Args&&>(args)...);
        }
        template <class Env>
            requires returns<Env>
        constexpr auto query(get_completion_scheduler_t<set_value_t> ask,
                             const Env& env) const noexcept {
            if constexpr (scheduler<Data>) {
                return get_start_scheduler(env);
            } else {
                return ask(execution::get_env(sndr_->child), env);
            }
        }

    private:
        const on_sender* sndr_;
    };
    constexpr attrs get_env() const noexcept { return attrs(*this); }

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

template <scheduler Sch, sender Sndr>
    requires(!internal::is_closure<Sndr>)
constexpr auto on_t::operator()(Sch&& sch, Sndr&& sndr) const {
    return on_sender<std::decay_t<Sch>, std::decay_t<Sndr>>(static_cast<Sch&&>(sch),
                                                            static_cast<Sndr&&>(sndr));
}
template <sender Sndr, scheduler Sch, internal::is_closure Closure>
constexpr auto on_t::operator()(Sndr&& sndr, Sch&& sch, Closure&& closure) const {
    using Data = on_data<std::decay_t<Sch>, std::decay_t<Closure>>;
    return on_sender<Data, std::decay_t<Sndr>>(
        Data(static_cast<Sch&&>(sch), static_cast<Closure&&>(closure)), static_cast<Sndr&&>(sndr));
}
inline constexpr on_t on{};

}  // namespace coppice::execution
