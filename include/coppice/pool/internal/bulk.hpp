// bulk on a pool: calls its functions side by side after the pool's schedule(); used by pools.
#pragma once
// bulk, bulk_chunked, and bulk_unchunked become a parallel_for (parallel.hpp) on the worker where
// their child completes. There is no grain size and no allocation, and a worker that gets no help
// runs a plain loop. With a policy that is not parallel, bulk_chunked makes one call, and the
// others call in order. A stop request ends the calls early, with set_stopped. Source: [exec.bulk],
// by completion domain.

#include <coppice/exec/bulk.hpp>
#include <coppice/exec/internal/parallel_bulk.hpp>
#include <coppice/pool/internal/default_worker.hpp>
#include <coppice/pool/parallel.hpp>

#include <exception>
#include <type_traits>
#include <utility>

namespace coppice::internal {

template <class Tag, class Data, class Rcvr>
class pool_bulk_receiver
    : public execution::internal::passing_receiver<execution::internal::data_state<Data, Rcvr>,
                                                   Rcvr> {
    using policy_type = decltype(std::declval<Data&>().policy);
    using shape_type = decltype(std::declval<Data&>().shape);
    using counter_type = execution::internal::bulk_counter<shape_type>;
    static constexpr bool chunked = std::is_same_v<Tag, execution::bulk_chunked_t>;

public:
    using execution::internal::passing_receiver<execution::internal::data_state<Data, Rcvr>,
                                                Rcvr>::passing_receiver;

    template <class... Args>
    void set_value(Args&&... args) && noexcept {
        bool all = true;
        try {
            all = call(args...);
        } catch (...) {
            execution::set_error(static_cast<Rcvr&&>(this->state_->rcvr), std::current_exception());
            return;
        }
        if (all) {
            execution::set_value(static_cast<Rcvr&&>(this->state_->rcvr),
                                 static_cast<Args&&>(args)...);
        } else {
            execution::set_stopped(static_cast<Rcvr&&>(this->state_->rcvr));
        }
    }

private:
    // Returns false if a stop request came before all indices were called.
    template <class... Args>
    bool call(Args&... args) {
        auto& data = this->state_->data;
        const shape_type shape = data.shape < shape_type(0) ? shape_type(0) : data.shape;
        if constexpr (!execution::internal::runs_parallel<policy_type>) {
            call_range(data.f, shape_type(0), shape, args...);
            return true;
        } else {
            stop_type stop(token());
            stop.listen(token());
            bool all = true;
            const in_order_here if_no_worker;  // after the pool's end
            fork_join(stop.get(), [&all, &data, shape, &args...] {
                all = parallel_for(counter_type(0), shape,
                                   [&data, &args...](counter_type first, counter_type last) {
                                       call_range(data.f, static_cast<shape_type>(first),
                                                  static_cast<shape_type>(last), args...);
                                   });
            });
            return all;
        }
    }
    template <class F, class... Args>
    static void call_range(F& f, shape_type first, shape_type last, Args&... args) {
        if (!(first < last)) return;
        if constexpr (chunked) {
            f(shape_type(first), shape_type(last), args...);
        } else {
            execution::internal::call_indices(f, first, shape_type(last), args...);
        }
    }
    using token_type = stop_token_of_t<execution::env_of_t<Rcvr>>;
    using stop_type = execution::internal::inplace_token_of<token_type>;
    token_type token() const noexcept {
        return get_stop_token(execution::get_env(this->state_->rcvr));
    }
};

template <class Sigs, class Tag, class F, class Shape>
struct pool_bulk_signatures {
    using type = execution::internal::signatures_union_t<
        typename execution::internal::bulk_signatures<Sigs, Tag, F, Shape>::type,
        execution::completion_signatures<execution::set_error_t(std::exception_ptr),
                                         execution::set_stopped_t()>>;
};

// The sender that replaces bulk_chunked or bulk_unchunked where a pool's scheduler completes.
template <class Tag, class Data, class Child>
class pool_bulk_sender {
public:
    using sender_concept = execution::sender_tag;

    template <class DataInit, class ChildInit>
    pool_bulk_sender(DataInit&& data, ChildInit&& child)
        : data_(static_cast<DataInit&&>(data)), child_(static_cast<ChildInit&&>(child)) {}

    auto get_env() const noexcept {
        return execution::internal::child_attrs<Child, execution::set_value_t>(child_);
    }
    template <class Self, class... Env>
    static consteval auto get_completion_signatures() noexcept {
        using Sigs = execution::signatures_of<Child, execution::internal::fwd_env_t<Env>...>;
        return execution::internal::transform_if_valid<pool_bulk_signatures, Sigs, Tag,
                                                       decltype(std::declval<Data&>().f),
                                                       decltype(std::declval<Data&>().shape)>();
    }
    template <execution::receiver Rcvr>
    auto connect(Rcvr rcvr) && {
        return execution::internal::adaptor_operation<Child,
                                                      execution::internal::data_state<Data, Rcvr>,
                                                      pool_bulk_receiver<Tag, Data, Rcvr>>(
            static_cast<Child&&>(child_), static_cast<Data&&>(data_), static_cast<Rcvr&&>(rcvr));
    }

private:
    Data data_;
    Child child_;
};

// The completion domain of the schedulers of pools.
struct pool_domain {
    template <class Sndr, class Env>
        requires(execution::internal::sender_for<Sndr, execution::bulk_chunked_t> ||
                 execution::internal::sender_for<Sndr, execution::bulk_unchunked_t>) &&
                execution::internal::bulk_movable<Sndr>
    static constexpr auto transform_sender(execution::set_value_t, Sndr&& sndr, const Env&) {
        using Plain = std::remove_cvref_t<Sndr>;
        using Data = decltype(Plain::data);
        using Child = decltype(Plain::child);
        return pool_bulk_sender<execution::tag_of_t<Sndr>, Data, Child>(
            static_cast<Sndr&&>(sndr).data, static_cast<Sndr&&>(sndr).child);
    }
};

}  // namespace coppice::internal
