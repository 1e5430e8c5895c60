// parallel_bulk: a bulk whose calls a backend makes, on as many agents as it chooses.
#pragma once
// What bulk_chunked and bulk_unchunked become on a parallel_scheduler and on a task_scheduler. The
// operation keeps the child's values, and is the proxy through which the backend calls the function
// on them. Each scheduler has a Backend class:
//
//   scheduler_type              the scheduler whose agents make the calls; constructs the Backend
//   start<Tag>(items, proxy)    executes [0, items), then completes the proxy; that may destroy
//                               *this
//
// Source: [exec.par.scheduler], [exec.task.scheduler].

#include <coppice/base/internal/atomic.hpp>
#include <coppice/base/internal/check.hpp>
#include <coppice/exec/execution_policy.hpp>
#include <coppice/exec/internal/alternatives.hpp>
#include <coppice/exec/internal/bulk_sender.hpp>
#include <coppice/exec/internal/child_attrs.hpp>
#include <coppice/exec/internal/inplace_token_of.hpp>
#include <coppice/exec/receiver_proxy.hpp>

#include <cstddef>
#include <exception>
#include <type_traits>
#include <utility>

namespace coppice::execution::internal {

// Completes the receiver when the backend completes the proxy. Base is one of the two proxies.
template <class Base, class Rcvr>
class parallel_proxy : public Base {
public:
    explicit parallel_proxy(Rcvr r) noexcept
        : rcvr(static_cast<Rcvr&&>(r)),
          token_(get_stop_token(execution::get_env(std::as_const(rcvr)))) {}

    parallel_proxy(parallel_proxy&&) = delete;

    void set_error(std::exception_ptr error) noexcept final {
        end();
        execution::set_error(static_cast<Rcvr&&>(rcvr), std::move(error));
    }
    void set_stopped() noexcept override {
        end();
        execution::set_stopped(static_cast<Rcvr&&>(rcvr));
    }

    [[no_unique_address]] Rcvr rcvr;

protected:
    ~parallel_proxy() {
        COPPICE_CHECK(phase_ != phase::running,
                      "an operation of parallel_scheduler was destroyed while it was running: keep "
                      "it until it completes");
    }
    // Called before the backend is called.
    void begin() noexcept {
        COPPICE_CHECK(
            phase_ == phase::idle,
            "an operation of parallel_scheduler was started twice: connect its sender again");
        phase_ = phase::running;
        token_.listen(get_stop_token(execution::get_env(rcvr)));
    }
    // Checked before the backend is called: work that was stopped before it began does not begin.
    bool stop_requested() const noexcept {
        return get_stop_token(execution::get_env(rcvr)).stop_requested();
    }
    // Called before the receiver is completed.
    void end() noexcept {
        phase_ = phase::over;
        token_.reset();
    }

private:
    enum class phase : unsigned char { idle, running, over };

    any_env query_env() const noexcept final {
        return any_env(token_.get(), execution::get_env(rcvr));
    }

    inplace_token_of<stop_token_of_t<env_of_t<Rcvr>>> token_;
    phase phase_ =
        phase::idle;  // written before the backend is called, and by the completing thread
};

// True if a policy allows the calls to run at the same time.
template <class Policy>
inline constexpr bool runs_parallel =
    one_of<std::remove_cvref_t<Policy>, parallel_policy, parallel_unsequenced_policy>;

// A signature of the bulk if the values are delivered out of the operation. Checked is what
// bulk_signatures made of it.
template <class Fn, class Checked>
struct stored_bulk_signature {
    using type = Checked;
};
template <class... Args, class... Fns>
struct stored_bulk_signature<set_value_t(Args...), completion_signatures<Fns...>> {
    using type = completion_signatures<set_value_t(std::decay_t<Args>...)>;
};
template <class Sigs, class Tag, class F, class Shape>
struct parallel_bulk_signatures;
template <class... Fns, class Tag, class F, class Shape>
struct parallel_bulk_signatures<completion_signatures<Fns...>, Tag, F, Shape> {
    using checked = bulk_signatures<completion_signatures<Fns...>, Tag, F, Shape>;
    using type = signatures_union_t<
        typename stored_bulk_signature<Fns, typename checked::template of<Fns>::type>::type...,
        completion_signatures<set_error_t(std::exception_ptr), set_stopped_t()>>;
};

// Keeps the child's values for the calls, and makes the calls.
template <class Tag, class Backend, class Data, class Values, class Rcvr>
class parallel_bulk_call final
    : public parallel_proxy<parallel_scheduler_replacement::bulk_item_receiver_proxy, Rcvr> {
    using base = parallel_proxy<parallel_scheduler_replacement::bulk_item_receiver_proxy, Rcvr>;
    using shape_type = decltype(std::declval<Data&>().shape);
    static constexpr bool parallel = runs_parallel<decltype(std::declval<Data&>().policy)>;

public:
    template <class DataInit>
    parallel_bulk_call(typename Backend::scheduler_type sch, DataInit&& data, Rcvr r)
        : base(static_cast<Rcvr&&>(r)),
          backend_(std::move(sch)),
          data_(static_cast<DataInit&&>(data)) {}

    // Called when the child has sent its values.
    template <class... Args>
    void run(Args&&... args) noexcept {
        try {
            values_.template emplace<internal::product<std::decay_t<Args>...>>(
                internal::construct_each(), static_cast<Args&&>(args)...);
        } catch (...) {
            execution::set_error(static_cast<Rcvr&&>(this->rcvr), std::current_exception());
            return;
        }
        this->begin();
        if (this->stop_requested()) return this->set_stopped();
        const auto shape =
            static_cast<std::size_t>(data_.shape < shape_type(0) ? shape_type(0) : data_.shape);
        backend_.template start<Tag>(parallel ? shape : (shape == 0 ? 0 : 1), *this);
    }

private:
    void execute(std::size_t begin, std::size_t end) noexcept override {
        // Under a sequenced policy all indices are one call, made for the range with index 0.
        if (!(begin < end) || (!parallel && begin != 0)) return;
        // relaxed: only skips work whose result is not needed
        if (failed_.load(internal::relaxed)) return;
        try {
            values_.visit([this, begin, end](auto& values) {
                values.apply(
                    [this, begin, end](auto&... args) { this->call(begin, end, args...); });
            });
        } catch (...) {
            // relaxed: only decides which thread stores; the backend orders all calls before
            // set_value
            if (!failed_.exchange(true, internal::relaxed)) error_ = std::current_exception();
        }
    }
    template <class... Args>
    void call(std::size_t begin, std::size_t end, Args&... args) {
        const auto first = static_cast<shape_type>(begin);
        const auto last = parallel ? static_cast<shape_type>(end) : data_.shape;
        if constexpr (std::is_same_v<Tag, bulk_chunked_t>) {
            data_.f(shape_type(first), shape_type(last), args...);
        } else {
            execution::internal::call_indices(data_.f, first, shape_type(last), args...);
        }
    }
    void set_value() noexcept override {
        if (sends_failure()) return;
        this->end();
        values_.visit([this](auto& values) {
            std::move(values).apply([this](auto&&... args) noexcept {
                execution::set_value(static_cast<Rcvr&&>(this->rcvr),
                                     static_cast<decltype(args)>(args)...);
            });
        });
    }
    // A stop that arrives after a call has failed does not hide the failure.
    void set_stopped() noexcept override {
        if (!sends_failure()) base::set_stopped();
    }
    bool sends_failure() noexcept {
        // relaxed: the backend orders all calls before this
        if (!failed_.load(internal::relaxed)) return false;
        base::set_error(std::move(error_));
        return true;
    }

    Backend backend_;
    Data data_;
    Values values_;
    internal::atomic<bool> failed_{false};
    std::exception_ptr error_;  // written by the thread that set failed_
};

template <class Call, class Rcvr>
class parallel_bulk_receiver : public internal::passing_receiver<Call, Rcvr> {
public:
    using internal::passing_receiver<Call, Rcvr>::passing_receiver;
    template <class... Args>
    void set_value(Args&&... args) && noexcept {
        this->state_->run(static_cast<Args&&>(args)...);
    }
};

template <class Sigs>
struct bulk_values;
template <class... Fns>
struct bulk_values<completion_signatures<Fns...>> {
    template <class Fn>
    struct of {
        using type = internal::type_list<>;
    };
    template <class... Args>
    struct of<set_value_t(Args...)> {
        using type = internal::type_list<internal::product<std::decay_t<Args>...>>;
    };
    using type = set_union_t<internal::alternatives<>, typename of<Fns>::type...>;
};

// What bulk_chunked and bulk_unchunked become if their child completes on a scheduler that has a
// Backend.
template <class Tag, class Backend, class Data, class Child>
class parallel_bulk_sender {
    using scheduler_type = typename Backend::scheduler_type;
    template <class Rcvr>
    using call_type = parallel_bulk_call<
        Tag, Backend, Data,
        typename bulk_values<completion_signatures_of_t<Child, child_env_t<Rcvr>>>::type, Rcvr>;

public:
    using sender_concept = sender_tag;

    template <class DataInit, class ChildInit>
    parallel_bulk_sender(scheduler_type sch, DataInit&& data, ChildInit&& child) noexcept(
        std::is_nothrow_constructible_v<Data, DataInit> &&
        std::is_nothrow_constructible_v<Child, ChildInit>)
        : sch_(std::move(sch)),
          data_(static_cast<DataInit&&>(data)),
          child_(static_cast<ChildInit&&>(child)) {}

    auto get_env() const noexcept { return internal::child_attrs<Child, set_value_t>(child_); }

    template <class Self, class... Env>
    static consteval auto get_completion_signatures() noexcept {
        using Sigs = signatures_of<Child, fwd_env_t<Env>...>;
        return internal::transform_if_valid<parallel_bulk_signatures, Sigs, Tag,
                                            decltype(std::declval<Data&>().f),
                                            decltype(std::declval<Data&>().shape)>();
    }
    template <receiver Rcvr>
    auto connect(Rcvr rcvr) && {
        using receiver_type = parallel_bulk_receiver<call_type<Rcvr>, Rcvr>;
        return internal::adaptor_operation<Child, call_type<Rcvr>, receiver_type>(
            static_cast<Child&&>(child_), std::move(sch_), static_cast<Data&&>(data_),
            static_cast<Rcvr&&>(rcvr));
    }

private:
    scheduler_type sch_;
    Data data_;
    Child child_;
};

}  // namespace coppice::execution::internal
