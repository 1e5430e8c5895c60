// parallel_scheduler: the process's pool of threads, whose implementation can be replaced.
#pragma once
// The scheduler talks to a backend through two proxies, so that backends are ordinary code:
//
//   receiver_proxy             completes one schedule or bulk operation
//   bulk_item_receiver_proxy   also runs ranges of a bulk operation's indices
//
// and lends it storage inside the operation, so that scheduling allocates nothing. The backend is
// what query_parallel_scheduler_backend() returns: the one given to set_parallel_scheduler_backend,
// or else a simple pool of this library. A program may also define the function itself and thereby
// replace it. Source: [exec.par.scheduler], [exec.parschedrepl]; set_... is ours.

#include <coppice/base/check.hpp>
#include <coppice/exec/adaptor.hpp>
#include <coppice/exec/alternatives.hpp>
#include <coppice/exec/any_sender.hpp>
#include <coppice/exec/bulk.hpp>

#include <memory>
#include <optional>
#include <span>

namespace coppice::execution::parallel_scheduler_replacement {

// A receiver, as backends see it. Each operation is completed once, by one of the three.
struct receiver_proxy {
public:
    virtual void set_value() noexcept = 0;
    virtual void set_error(std::exception_ptr error) noexcept = 0;
    virtual void set_stopped() noexcept = 0;

    // Asks the receiver's environment: get_stop_token as an inplace_stop_token, get_deadline as an
    // instant; nothing for other queries and types.
    template <class P, internal::class_type Query>
    std::optional<P> try_query(Query) const noexcept {
        static_assert(
            std::is_object_v<P> && !std::is_array_v<P> && std::is_same_v<P, std::remove_cv_t<P>>,
            "try_query asks for a type of objects, without const, that is no array");
        if constexpr (std::is_same_v<Query, get_stop_token_t> &&
                      std::is_same_v<P, inplace_stop_token>) {
            return query_env().query(get_stop_token);
        } else if constexpr (std::is_same_v<Query, get_deadline_t> && std::is_same_v<P, instant>) {
            return get_deadline(query_env());
        } else {
            return std::nullopt;
        }
    }

protected:
    ~receiver_proxy() = default;
    virtual any_env query_env() const noexcept = 0;
};

struct bulk_item_receiver_proxy : receiver_proxy {
public:
    // Runs the indices [begin, end). Threads: any number at once, on disjoint ranges.
    virtual void execute(std::size_t begin, std::size_t end) noexcept = 0;

protected:
    ~bulk_item_receiver_proxy() = default;
};

// What runs the work. The proxy and the storage live until the proxy was completed.
// Lifetime: kept by each scheduler, sender and operation that refers to it, and during each call
// of schedule and schedule_bulk_*. The last of them may end where the backend completes it, so the
// destructor may run on a thread of the backend, which must not wait for itself there.
struct parallel_scheduler_backend {
    virtual ~parallel_scheduler_backend() = default;
    // Completes r on one of its threads.
    virtual void schedule(receiver_proxy& r, std::span<std::byte> storage) noexcept = 0;
    // Executes [0, n) in disjoint ranges, then completes r.
    virtual void schedule_bulk_chunked(std::size_t n, bulk_item_receiver_proxy& r,
                                       std::span<std::byte> storage) noexcept = 0;
    // Executes [i, i + 1) for every i below n, then completes r.
    virtual void schedule_bulk_unchunked(std::size_t n, bulk_item_receiver_proxy& r,
                                         std::span<std::byte> storage) noexcept = 0;
};

// Replaceable: a program may define it. What it returns last is not destroyed when the process
// exits: destructors of static objects may still schedule, and the work may call std::exit.
std::shared_ptr<parallel_scheduler_backend> query_parallel_scheduler_backend();
// Makes `backend` what query_parallel_scheduler_backend() returns from now on; null stands for a
// new pool of this library. Schedulers, senders and operations that exist already stay with the
// backend they have, and keep it alive. Threads: any.
void set_parallel_scheduler_backend(std::shared_ptr<parallel_scheduler_backend> backend);

// What an operation lends its backend. Enough for an intrusive item and some counters.
inline constexpr std::size_t backend_storage_size = 64;

}  // namespace coppice::execution::parallel_scheduler_replacement

namespace coppice::execution {

// Completes the receiver when the backend says so. Base is one of the two proxies.
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
    void set_stopped() noexcept final {
        end();
        execution::set_stopped(static_cast<Rcvr&&>(rcvr));
    }

    [[no_unique_address]] Rcvr rcvr;

protected:
    ~parallel_proxy() {
        COPPICE_CHECK(phase_ != phase::running,
                      "an operation of parallel_scheduler was destroyed while it was running");
    }
    // Before the backend is called.
    void begin() noexcept {
        COPPICE_CHECK(phase_ == phase::idle,
                      "an operation of parallel_scheduler was started twice");
        phase_ = phase::running;
        token_.listen(get_stop_token(execution::get_env(rcvr)));
    }
    // Asked before the backend is: what was stopped before it began does not begin.
    bool stop_requested() const noexcept {
        return get_stop_token(execution::get_env(rcvr)).stop_requested();
    }
    // Before the receiver is completed.
    void end() noexcept {
        phase_ = phase::over;
        token_.reset();
    }
    std::span<std::byte> storage() noexcept { return storage_; }

private:
    enum class phase : unsigned char { idle, running, over };

    any_env query_env() const noexcept final {
        return any_env(token_.get(), execution::get_env(rcvr));
    }

    inplace_token_of<stop_token_of_t<env_of_t<Rcvr>>> token_;
    phase phase_ = phase::idle;  // written before the backend is called, and by who completes
    alignas(
        std::max_align_t) std::byte storage_[parallel_scheduler_replacement::backend_storage_size];
};

struct parallel_scheduler_domain;

// Refers to a backend. Copies compare equal if they refer to the same one.
class parallel_scheduler {
    using backend = parallel_scheduler_replacement::parallel_scheduler_backend;

public:
    using scheduler_concept = scheduler_tag;

    // Of a backend that is there, not null; it is kept alive by each copy, and by the senders and
    // operations that come of it.
    explicit parallel_scheduler(std::shared_ptr<backend> implementation) noexcept
        : backend_(std::move(implementation)) {}

    template <class Rcvr>
    class operation final : parallel_proxy<parallel_scheduler_replacement::receiver_proxy, Rcvr> {
    public:
        using operation_state_concept = operation_state_tag;
        operation(std::shared_ptr<backend> implementation, Rcvr r) noexcept
            : parallel_proxy<parallel_scheduler_replacement::receiver_proxy, Rcvr>(
                  static_cast<Rcvr&&>(r)),
              backend_(std::move(implementation)) {}
        operation(operation&&) = delete;
        void start() & noexcept {
            this->begin();
            if (this->stop_requested()) return this->set_stopped();
            // The completion may destroy *this, while the call is still on.
            const std::shared_ptr<backend> kept = backend_;
            kept->schedule(*this, this->storage());
        }

    private:
        void set_value() noexcept override {
            this->end();
            execution::set_value(static_cast<Rcvr&&>(this->rcvr));
        }
        std::shared_ptr<backend> backend_;
    };

    class sender {
    public:
        using sender_concept = sender_tag;
        explicit sender(std::shared_ptr<backend> implementation) noexcept
            : backend_(std::move(implementation)) {}

        class attrs {
        public:
            explicit attrs(const sender& sndr) noexcept : sndr_(&sndr) {}
            parallel_scheduler query(get_completion_scheduler_t<set_value_t>) const noexcept {
                return parallel_scheduler(sndr_->backend_);
            }

        private:
            const sender* sndr_;
        };
        attrs get_env() const noexcept { return attrs(*this); }

        template <class Self, class... Env>
        static consteval auto get_completion_signatures() noexcept {
            return completion_signatures<set_value_t(), set_error_t(std::exception_ptr),
                                         set_stopped_t()>();
        }
        template <receiver Rcvr>
        auto connect(Rcvr rcvr) const& noexcept {
            return operation<Rcvr>(backend_, static_cast<Rcvr&&>(rcvr));
        }
        template <receiver Rcvr>
        auto connect(Rcvr rcvr) && noexcept {
            return operation<Rcvr>(std::move(backend_), static_cast<Rcvr&&>(rcvr));
        }

    private:
        std::shared_ptr<backend> backend_;
    };

    sender schedule() const noexcept { return sender(backend_); }
    forward_progress_guarantee query(get_forward_progress_guarantee_t) const noexcept {
        return forward_progress_guarantee::parallel;
    }
    parallel_scheduler_domain query(get_domain_t) const noexcept;
    parallel_scheduler_domain query(get_completion_domain_t<set_value_t>) const noexcept;
    // What it refers to. Lifetime: that of this scheduler and its copies.
    backend& get_backend() const noexcept { return *backend_; }
    bool operator==(const parallel_scheduler& other) const noexcept {
        return backend_ == other.backend_;
    }

private:
    std::shared_ptr<backend> backend_;
};

// Whether a policy lets the calls run at the same time.
template <class Policy>
inline constexpr bool runs_parallel =
    internal::one_of<std::remove_cvref_t<Policy>, parallel_policy, parallel_unsequenced_policy>;

template <class Sigs, class Tag, class F, class Shape>
struct parallel_bulk_signatures;
template <class... Fns, class Tag, class F, class Shape>
struct parallel_bulk_signatures<completion_signatures<Fns...>, Tag, F, Shape> {
    using checked = typename bulk_signatures<completion_signatures<Fns...>, Tag, F, Shape>::type;
    using complete = signatures_union_t<
        checked,
        internal::set_insert_t<completion_signatures<>, typename decayed_signature<Fns>::type...>,
        completion_signatures<set_error_t(std::exception_ptr), set_stopped_t()>>;
    using type = complete;
};

// The values of the child, kept for the calls, and the calls.
template <class Tag, class Data, class Values, class Rcvr>
class parallel_bulk_call final
    : public parallel_proxy<parallel_scheduler_replacement::bulk_item_receiver_proxy, Rcvr> {
    using base = parallel_proxy<parallel_scheduler_replacement::bulk_item_receiver_proxy, Rcvr>;
    static constexpr bool parallel = runs_parallel<decltype(std::declval<Data&>().policy)>;

public:
    template <class DataInit>
    parallel_bulk_call(parallel_scheduler sch, DataInit&& data, Rcvr r)
        : base(static_cast<Rcvr&&>(r)),
          sch_(std::move(sch)),
          data_(static_cast<DataInit&&>(data)) {}

    // The child's values have come.
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
        const auto shape = data_.shape < 0 ? std::size_t(0) : static_cast<std::size_t>(data_.shape);
        const std::size_t items = parallel ? shape : (shape == 0 ? 0 : 1);
        // The completion may destroy *this, while the call is still on.
        const parallel_scheduler kept = sch_;
        if constexpr (std::is_same_v<Tag, bulk_chunked_t>) {
            kept.get_backend().schedule_bulk_chunked(items, *this, this->storage());
        } else {
            kept.get_backend().schedule_bulk_unchunked(items, *this, this->storage());
        }
    }

private:
    void execute(std::size_t begin, std::size_t end) noexcept override {
        // relaxed: only saves work whose result nobody will see
        if (failed_.load(internal::relaxed)) return;
        try {
            values_.visit([&](auto& values) {
                values.apply([&](auto&... args) { call(begin, end, args...); });
            });
        } catch (...) {
            // relaxed: says only who stores; the backend orders all calls before set_value
            if (!failed_.exchange(true, internal::relaxed)) error_ = std::current_exception();
        }
    }
    template <class... Args>
    void call(std::size_t begin, std::size_t end, Args&... args) {
        using Shape = decltype(data_.shape);
        auto first = static_cast<Shape>(begin);
        auto last = parallel ? static_cast<Shape>(end) : data_.shape;
        if constexpr (std::is_same_v<Tag, bulk_chunked_t>) {
            data_.f(Shape(first), Shape(last), args...);
        } else {
            for (; first < last; ++first) data_.f(Shape(first), args...);
        }
    }
    void set_value() noexcept override {
        this->end();
        // relaxed: ordered by the backend
        if (failed_.load(internal::relaxed)) {
            execution::set_error(static_cast<Rcvr&&>(this->rcvr), std::move(error_));
            return;
        }
        values_.visit([this](auto& values) {
            std::move(values).apply([this](auto&&... args) noexcept {
                execution::set_value(static_cast<Rcvr&&>(this->rcvr),
                                     static_cast<decltype(args)>(args)...);
            });
        });
    }

    parallel_scheduler sch_;  // keeps the backend
    Data data_;
    Values values_;
    internal::atomic<bool> failed_{false};
    std::exception_ptr error_;  // written by who set failed_
};

template <class Call, class Rcvr>
class parallel_bulk_receiver : public passing_receiver<Call, Rcvr> {
public:
    using passing_receiver<Call, Rcvr>::passing_receiver;
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
    using type = internal::set_union_t<internal::alternatives<>, typename of<Fns>::type...>;
};

// What bulk_chunked and bulk_unchunked become where a parallel_scheduler completes.
template <class Tag, class Data, class Child>
class parallel_bulk_sender {
    template <class Rcvr>
    using call_type = parallel_bulk_call<
        Tag, Data, typename bulk_values<completion_signatures_of_t<Child, child_env_t<Rcvr>>>::type,
        Rcvr>;

public:
    using sender_concept = sender_tag;

    template <class DataInit, class ChildInit>
    parallel_bulk_sender(parallel_scheduler sch, DataInit&& data, ChildInit&& child)
        : sch_(std::move(sch)),
          data_(static_cast<DataInit&&>(data)),
          child_(static_cast<ChildInit&&>(child)) {}

    auto get_env() const noexcept { return child_attrs<Child, set_value_t>(child_); }

    template <class Self, class... Env>
    static consteval auto get_completion_signatures() noexcept {
        using Sigs = signatures_of<Child, fwd_env_t<Env>...>;
        return execution::transform_if_valid<parallel_bulk_signatures, Sigs, Tag,
                                             decltype(std::declval<Data&>().f),
                                             decltype(std::declval<Data&>().shape)>();
    }
    template <receiver Rcvr>
    auto connect(Rcvr rcvr) && {
        using receiver_type = parallel_bulk_receiver<call_type<Rcvr>, Rcvr>;
        return adaptor_operation<Child, call_type<Rcvr>, receiver_type>(
            static_cast<Child&&>(child_), std::move(sch_), static_cast<Data&&>(data_),
            static_cast<Rcvr&&>(rcvr));
    }

private:
    parallel_scheduler sch_;  // keeps the backend
    Data data_;
    Child child_;
};

// Whether a sender's child tells which parallel_scheduler it completes on.
template <class Sndr, class Env>
concept follows_parallel_scheduler = requires(const Sndr& sndr, const Env& env) {
    {
        get_completion_scheduler<set_value_t>(execution::get_env(sndr.child), env)
    } -> std::same_as<parallel_scheduler>;
};

// Sends bulk_chunked and bulk_unchunked to the backend. Where nobody can say which scheduler's, as
// after a when_all, they are done where the child completes.
struct parallel_scheduler_domain {
    template <class Sndr, class Env>
        requires(sender_for<Sndr, bulk_chunked_t> || sender_for<Sndr, bulk_unchunked_t>) &&
                bulk_movable<Sndr> && (follows_parallel_scheduler<Sndr, Env>)
    static constexpr auto transform_sender(set_value_t, Sndr&& sndr, const Env& env) {
        using Plain = std::remove_cvref_t<Sndr>;
        using Data = decltype(Plain::data);
        using Child = decltype(Plain::child);
        auto sch = get_completion_scheduler<set_value_t>(execution::get_env(sndr.child), env);
        return parallel_bulk_sender<tag_of_t<Sndr>, Data, Child>(
            std::move(sch), static_cast<Sndr&&>(sndr).data, static_cast<Sndr&&>(sndr).child);
    }
};
inline parallel_scheduler_domain parallel_scheduler::query(get_domain_t) const noexcept {
    return {};
}
inline parallel_scheduler_domain parallel_scheduler::query(
    get_completion_domain_t<set_value_t>) const noexcept {
    return {};
}

// The process's parallel scheduler. Misuse: a backend query that returns null stops the process.
parallel_scheduler get_parallel_scheduler();

}  // namespace coppice::execution
