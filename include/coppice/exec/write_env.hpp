// write_env, unstoppable: give a sender an environment that answers some queries itself.
#pragma once
// Source: [exec.write.env], [exec.unstoppable].

#include <coppice/exec/closure.hpp>
#include <coppice/exec/scheduler.hpp>

namespace coppice::execution {

struct write_env_t;

// The environment that the child sees: Data's answers before the receiver's.
template <class Data, class Env>
using written_env_t = join_env_t<const Data&, fwd_env_t<Env>>;

template <class Data, class Rcvr>
struct write_env_state {
    template <class Init>
    constexpr write_env_state(Init&& d, Rcvr r) noexcept(
        std::is_nothrow_constructible_v<Data, Init>)
        : data(static_cast<Init&&>(d)), rcvr(static_cast<Rcvr&&>(r)) {}
    [[no_unique_address]] Data data;
    [[no_unique_address]] Rcvr rcvr;
};

template <class Data, class Rcvr>
class write_env_receiver {
public:
    using receiver_concept = receiver_tag;
    using env_type = written_env_t<Data, env_of_t<const Rcvr&>>;
    constexpr explicit write_env_receiver(write_env_state<Data, Rcvr>& state) noexcept
        : state_(&state) {}

    template <class... Args>
    constexpr void set_value(Args&&... args) && noexcept {
        execution::set_value(static_cast<Rcvr&&>(state_->rcvr), static_cast<Args&&>(args)...);
    }
    template <class Error>
    constexpr void set_error(Error&& error) && noexcept {
        execution::set_error(static_cast<Rcvr&&>(state_->rcvr), static_cast<Error&&>(error));
    }
    constexpr void set_stopped() && noexcept {
        execution::set_stopped(static_cast<Rcvr&&>(state_->rcvr));
    }
    constexpr env_type get_env() const noexcept {
        return env_type(state_->data, execution::child_env(state_->rcvr));
    }

private:
    write_env_state<Data, Rcvr>* state_;
};

template <class Child, class Data, class Rcvr>
class write_env_operation {
public:
    using operation_state_concept = operation_state_tag;
    using child_receiver = write_env_receiver<Data, Rcvr>;

    template <class Init>
    constexpr write_env_operation(Child&& child, Init&& data, Rcvr rcvr) noexcept(
        std::is_nothrow_constructible_v<Data, Init> && nothrow_connectable<Child, child_receiver>)
        : state_(static_cast<Init&&>(data), static_cast<Rcvr&&>(rcvr)),
          child_(execution::connect(static_cast<Child&&>(child), child_receiver(state_))) {}
    write_env_operation(write_env_operation&&) = delete;
    constexpr void start() & noexcept { execution::start(child_); }

private:
    write_env_state<Data, Rcvr> state_;
    connect_result_t<Child, child_receiver> child_;
};

// Queries of `data` come first; what `data` does not know, the receiver answers.
struct write_env_t {
    template <sender Sndr, queryable Data>
    constexpr auto operator()(Sndr&& sndr, Data&& data) const;
    template <queryable Data>
    constexpr auto operator()(Data&& data) const {
        return execution::bind_adaptor(*this, static_cast<Data&&>(data));
    }
};

// Decomposes as [tag, data, child]: data is the environment.
template <class Data, class Child>
struct write_env_sender {
    using sender_concept = sender_tag;
    using tag_type = write_env_t;

    [[no_unique_address]] write_env_t tag;
    [[no_unique_address]] Data data;
    [[no_unique_address]] Child child;

    template <class DataInit, class ChildInit>
    constexpr write_env_sender(DataInit&& d, ChildInit&& c) noexcept(
        std::is_nothrow_constructible_v<Data, DataInit> &&
        std::is_nothrow_constructible_v<Child, ChildInit>)
        : tag(), data(static_cast<DataInit&&>(d)), child(static_cast<ChildInit&&>(c)) {}

    // Where the child completes may depend on what data says.
    class attrs {
    public:
        constexpr explicit attrs(const write_env_sender& sndr) noexcept : sndr_(&sndr) {}
        template <class Query, class... Args>
            requires is_forwarding_query<Query> && (!says_where<Query>) &&
                     has_query<env_of_t<const Child&>, Query, Args...>
        constexpr decltype(auto) query(Query tag_, Args&&... args) const noexcept {
            return execution::get_env(sndr_->child).query(tag_, static_cast<Args&&>(args)...);
        }
        template <class Query, class Env>
            requires says_where<Query> && callable<Query, env_of_t<const Child&>,
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
        return signatures_of<like_t<Self, Child>, written_env_t<Data, Env>...>();
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

template <sender Sndr, queryable Data>
constexpr auto write_env_t::operator()(Sndr&& sndr, Data&& data) const {
    using result = write_env_sender<std::decay_t<Data>, std::decay_t<Sndr>>;
    execution::check_pipeline<result>();
    return result(static_cast<Data&&>(data), static_cast<Sndr&&>(sndr));
}
inline constexpr write_env_t write_env{};

// Hides the receiver's stop token: the sender runs to its end.
struct unstoppable_t {
    template <sender Sndr>
    constexpr auto operator()(Sndr&& sndr) const {
        return write_env(static_cast<Sndr&&>(sndr), prop(get_stop_token, never_stop_token()));
    }
    constexpr auto operator()() const noexcept { return execution::bind_adaptor(*this); }
};
inline constexpr unstoppable_t unstoppable{};

}  // namespace coppice::execution
