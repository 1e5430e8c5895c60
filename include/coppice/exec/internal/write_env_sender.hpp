// The sender of write_env, whose data is the environment.
#pragma once

#include <coppice/exec/closure.hpp>
#include <coppice/exec/internal/adaptor.hpp>
#include <coppice/exec/internal/attrs.hpp>

namespace coppice::execution::internal {

// The child's environment: Data answers before the receiver's environment.
template <class Data, class Env>
using written_env_t = join_env_t<const Data&, fwd_env_t<Env>>;

template <class Data, class Rcvr>
class write_env_receiver : public passing_receiver<data_state<Data, Rcvr>, Rcvr> {
public:
    using passing_receiver<data_state<Data, Rcvr>, Rcvr>::passing_receiver;
    using env_type = written_env_t<Data, env_of_t<const Rcvr&>>;
    constexpr env_type get_env() const noexcept {
        return env_type(this->state_->data, internal::child_env(this->state_->rcvr));
    }
};

// Where the child completes may depend on what the data answers.
template <class Data, class Child>
class write_env_attrs : public forwarded_attrs<Child> {
public:
    constexpr write_env_attrs(const Data& data, const Child& child) noexcept
        : forwarded_attrs<Child>(child), data_(&data) {}
    using forwarded_attrs<Child>::query;

    template <class Query, class Env>
        requires says_where<Query> &&
                 callable<Query, env_of_t<const Child&>, written_env_t<Data, const Env&>>
    constexpr auto query(Query ask, const Env& env) const noexcept {
        return ask(execution::get_env(*this->child_),
                   written_env_t<Data, const Env&>(*data_, internal::forward_env(env)));
    }

private:
    const Data* data_;
};

template <class Tag, class Data>
struct write_env_algorithm {
    using tag_type = Tag;
    template <class Child, class Rcvr>
    using operation =
        adaptor_operation<Child, data_state<Data, Rcvr>, write_env_receiver<Data, Rcvr>>;

    template <class Sndr>
    static constexpr auto attrs(const Sndr& sndr) noexcept {
        return write_env_attrs<Data, decltype(sndr.child)>(sndr.data, sndr.child);
    }
    template <class Child, class... Env>
    static consteval auto signatures() noexcept {
        return signatures_of<Child, written_env_t<Data, Env>...>();
    }
};
template <class Tag, class Data, class Child>
using write_env_sender = adaptor_sender<write_env_algorithm<Tag, Data>, Data, Child>;

}  // namespace coppice::execution::internal
