// write_env, unstoppable: give a sender an environment that answers some queries itself.
#pragma once
// Source: [exec.write.env], [exec.unstoppable].

#include <coppice/exec/closure.hpp>
#include <coppice/exec/internal/adaptor.hpp>
#include <coppice/exec/scheduler.hpp>

namespace coppice::execution {

struct write_env_t;

// The child's environment: Data answers before the receiver's environment.
template <class Data, class Env>
using written_env_t = join_env_t<const Data&, fwd_env_t<Env>>;

template <class Data, class Rcvr>
class write_env_receiver : public passing_receiver<data_state<Data, Rcvr>, Rcvr> {
public:
    using passing_receiver<data_state<Data, Rcvr>, Rcvr>::passing_receiver;
    using env_type = written_env_t<Data, env_of_t<const Rcvr&>>;
    constexpr env_type get_env() const noexcept {
        return env_type(this->state_->data, execution::child_env(this->state_->rcvr));
    }
};

template <class Child, class Data, class Rcvr>
using write_env_operation =
    adaptor_operation<Child, data_state<Data, Rcvr>, write_env_receiver<Data, Rcvr>>;

// Makes `data` answer queries first. The receiver's environment answers what `data` does not.
struct write_env_t {
    template <sender Sndr, internal::queryable Data>
    constexpr auto operator()(Sndr&& sndr, Data&& data) const;
    template <internal::queryable Data>
    constexpr auto operator()(Data&& data) const {
        return execution::bind_adaptor(*this, static_cast<Data&&>(data));
    }
};

// Decomposes as [tag, data, child]: data is the environment.
template <class Data, class Child>
struct write_env_sender {
    using sender_concept = sender_tag;
    using tag_type = write_env_t;
    using decomposable = void;

    [[no_unique_address]] Data data;
    [[no_unique_address]] Child child;

    template <class DataInit, class ChildInit>
    constexpr write_env_sender(DataInit&& d, ChildInit&& c) noexcept(
        std::is_nothrow_constructible_v<Data, DataInit> &&
        std::is_nothrow_constructible_v<Child, ChildInit>)
        : data(static_cast<DataInit&&>(d)), child(static_cast<ChildInit&&>(c)) {}

    // Where the child completes may depend on what data answers.
    class attrs {
    public:
        constexpr explicit attrs(const write_env_sender& sndr) noexcept : sndr_(&sndr) {}
        template <class Query, class... Args>
            requires is_forwarding_query<Query> &&
                     (!says_where<Query>) && has_query<env_of_t<const Child&>, Query, Args...>
        constexpr decltype(auto) query(Query tag_, Args&&... args) const noexcept {
            return execution::query_attrs(sndr_->child, tag_, static_cast<Args&&>(args)...);
        }
        template <class Query, class Env>
            requires says_where<Query> && internal::callable<Query, env_of_t<const Child&>,
                                                             written_env_t<Data, const Env&>>
        constexpr auto query(Query ask, const Env& env) const noexcept {
            return ask(execution::get_env(sndr_->child),
                       written_env_t<Data, const Env&>(sndr_->data, execution::forward_env(env)));
        }

    private:
        const write_env_sender* sndr_;
    };
    constexpr attrs get_env() const noexcept { return attrs(*this); }

    template <class Self, class... Env>
    static consteval auto get_completion_signatures() noexcept {
        return signatures_of<internal::like_t<Self, Child>, written_env_t<Data, Env>...>();
    }
    template <receiver Rcvr>
    constexpr auto connect(Rcvr rcvr) && noexcept(
        std::is_nothrow_constructible_v<write_env_operation<Child, Data, Rcvr>, Child, Data, Rcvr>)
        -> write_env_operation<Child, Data, Rcvr> {
        return {static_cast<Child&&>(child), static_cast<Data&&>(data), static_cast<Rcvr&&>(rcvr)};
    }
    template <receiver Rcvr>
        requires std::copy_constructible<Data> && std::copy_constructible<Child>
    constexpr auto connect(Rcvr rcvr) const& noexcept(
        std::is_nothrow_constructible_v<write_env_operation<const Child&, Data, Rcvr>, const Child&,
                                        const Data&, Rcvr>)
        -> write_env_operation<const Child&, Data, Rcvr> {
        return {child, data, static_cast<Rcvr&&>(rcvr)};
    }
};

template <sender Sndr, internal::queryable Data>
constexpr auto write_env_t::operator()(Sndr&& sndr, Data&& data) const {
    using result = write_env_sender<std::decay_t<Data>, std::decay_t<Sndr>>;
    static_assert(pipeline_check<result>::done);
    return result(static_cast<Data&&>(data), static_cast<Sndr&&>(sndr));
}
inline constexpr write_env_t write_env{};

// Hides the receiver's stop token, so that the sender is not stopped.
struct unstoppable_t : sender_adaptor_closure<unstoppable_t> {
    template <sender Sndr>
    constexpr auto operator()(Sndr&& sndr) const {
        return write_env(static_cast<Sndr&&>(sndr), prop(get_stop_token, never_stop_token()));
    }
    constexpr auto operator()() const noexcept { return execution::bind_adaptor(*this); }
};
inline constexpr unstoppable_t unstoppable{};

}  // namespace coppice::execution
