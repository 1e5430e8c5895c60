// The sender of associate: holds the child and its association with a scope.
#pragma once

#include <coppice/exec/scope.hpp>

namespace coppice::execution {
struct associate_t;
}

namespace coppice::execution::internal {

// Holds the sender and its association; holds no sender if the scope refused.
template <scope_token Token, class Wrapped>
class associate_data {
public:
    using association = decltype(std::declval<Token&>().try_associate());
    using wrapped_sender = Wrapped;

    template <class Sndr>
    associate_data(Token token, Sndr&& sndr, std::source_location where) : where_(where), assoc_() {
        Wrapped wrapped(token.wrap(static_cast<Sndr&&>(sndr)));
        assoc_ = token.try_associate();
        if (assoc_) sndr_.construct(static_cast<Wrapped&&>(wrapped));
    }
    associate_data(associate_data&& other) noexcept(std::is_nothrow_move_constructible_v<Wrapped>)
        : where_(other.where_), assoc_(static_cast<association&&>(other.assoc_)) {
        if (!assoc_) return;
        scope_exit cleanup([&other] { other.sndr_.destroy(); });
        sndr_.construct(static_cast<Wrapped&&>(other.sndr_.get()));
    }
    associate_data(const associate_data& other)
        requires std::copy_constructible<Wrapped>
        : where_(other.where_), assoc_(other.assoc_.try_associate()) {
        if (assoc_) sndr_.construct(other.sndr_.get());
    }
    associate_data& operator=(associate_data&&) = delete;
    ~associate_data() {
        if (assoc_) sndr_.destroy();
    }

    // Returns the association and leaves *this without one. Take the sender before.
    association release() noexcept { return static_cast<association&&>(assoc_); }
    bool associated() const noexcept { return static_cast<bool>(assoc_); }
    Wrapped& sndr() noexcept { return sndr_.get(); }
    void destroy_sender() noexcept { sndr_.destroy(); }
    const std::source_location& where() const noexcept { return where_; }

private:
    std::source_location where_;
    association assoc_;
    manual_lifetime<Wrapped> sndr_;  // alive while assoc_ is engaged
};

template <class Data, class Rcvr>
class associate_operation {
    using association = typename Data::association;
    using wrapped_sender = typename Data::wrapped_sender;
    using child_receiver = passing_receiver<receiver_state<Rcvr>, Rcvr>;
    using child_operation = connect_result_t<wrapped_sender, child_receiver>;

public:
    using operation_state_concept = operation_state_tag;

    associate_operation(Data&& data,
                        Rcvr rcvr) noexcept(nothrow_connectable<wrapped_sender, child_receiver>)
        : state_(static_cast<Rcvr&&>(rcvr)), assoc_(), listing_(data.where()) {
        if (!data.associated()) return;
        child_.construct_with([this, &data] {
            return execution::connect(static_cast<wrapped_sender&&>(data.sndr()),
                                      child_receiver(state_));
        });
        data.destroy_sender();
        assoc_ = data.release();
        listing_.enter(assoc_);
    }
    associate_operation(associate_operation&&) = delete;
    ~associate_operation() {
        if (assoc_) child_.destroy();
    }

    void start() & noexcept {
        COPPICE_CHECK(!started_,
                      "an operation of associate was started twice: connect its sender again");
        started_ = true;
        if (assoc_) {
            execution::start(child_.get());
        } else {
            set_stopped(static_cast<Rcvr&&>(state_.rcvr));
        }
    }

private:
    receiver_state<Rcvr> state_;
    association assoc_;
    scope_listing listing_;
    manual_lifetime<child_operation> child_;  // alive while assoc_ is engaged
    bool started_ = false;
};

// Decomposes as [tag, data].
template <class Data>
struct associate_sender {
    using sender_concept = sender_tag;
    using tag_type = associate_t;
    using decomposable = void;
    using wrapped_sender = typename Data::wrapped_sender;

    Data data;

    template <class Token, class Sndr>
    associate_sender(Token token, Sndr&& sndr, std::source_location where)
        : data(static_cast<Token&&>(token), static_cast<Sndr&&>(sndr), where) {}

    template <class Self, class... Env>
    static consteval auto get_completion_signatures() noexcept {
        return signatures_union_t<signatures_of<wrapped_sender, fwd_env_t<Env>...>,
                                  completion_signatures<set_stopped_t()>>();
    }
    template <receiver Rcvr>
    auto connect(Rcvr rcvr) && noexcept(
        std::is_nothrow_constructible_v<associate_operation<Data, Rcvr>, Data, Rcvr>)
        -> associate_operation<Data, Rcvr> {
        return {static_cast<Data&&>(data), static_cast<Rcvr&&>(rcvr)};
    }
    template <receiver Rcvr>
        requires std::copy_constructible<Data>
    auto connect(Rcvr rcvr) const& -> associate_operation<Data, Rcvr> {
        return {Data(data), static_cast<Rcvr&&>(rcvr)};
    }
};

}  // namespace coppice::execution::internal
