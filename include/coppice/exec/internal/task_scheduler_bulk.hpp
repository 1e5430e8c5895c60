// bulk on a task_scheduler: the held scheduler makes the calls; for bulk.hpp.
#pragma once
// As in the draft: when the child has completed, on an agent of the held scheduler, a second bulk
// is connected to a sender that completes at once and claims to do so on that scheduler. The
// scheduler's domain transforms the second bulk like any other; on a pool it becomes a loop that
// idle workers share. The values stay in the first bulk's operation, which is also the proxy for
// the calls. Nothing is queued.
//
// A sequenced bulk is not transformed, nor is one whose values cannot be stored.
// Source: [exec.task.scheduler], ts-domain and backend-for.

#include <coppice/exec/any_scheduler.hpp>
#include <coppice/exec/internal/as_exception.hpp>
#include <coppice/exec/internal/parallel_bulk.hpp>

#include <concepts>
#include <cstddef>
#include <exception>
#include <type_traits>
#include <utility>

namespace coppice::execution::internal {

// Completes inside start(), which must run on an agent of Sch. The draft's just-sndr-like.
template <class Sch>
class agent_sender {
public:
    using sender_concept = sender_tag;

    class attrs {
    public:
        explicit attrs(const Sch& sch) noexcept : sch_(&sch) {}
        Sch query(get_completion_scheduler_t<set_value_t>) const noexcept { return *sch_; }

    private:
        const Sch* sch_;
    };
    explicit agent_sender(const Sch& sch) noexcept(std::is_nothrow_copy_constructible_v<Sch>)
        : sch_(sch) {}
    attrs get_env() const noexcept { return attrs(sch_); }

    template <class Self, class... Env>
    static consteval auto get_completion_signatures() noexcept {
        return completion_signatures<set_value_t()>();
    }
    template <class Rcvr>
    class operation {
    public:
        using operation_state_concept = operation_state_tag;
        explicit operation(Rcvr rcvr) noexcept : rcvr_(static_cast<Rcvr&&>(rcvr)) {}
        operation(operation&&) = delete;
        void start() & noexcept { execution::set_value(static_cast<Rcvr&&>(rcvr_)); }

    private:
        [[no_unique_address]] Rcvr rcvr_;
    };
    template <receiver Rcvr>
    auto connect(Rcvr rcvr) const noexcept {
        return operation<Rcvr>(static_cast<Rcvr&&>(rcvr));
    }

private:
    [[no_unique_address]] Sch sch_;
};

// Completes a proxy. WRAP-RCVR of the draft. A template, so that only its users compile it.
template <class Proxy>
class proxy_receiver {
public:
    using receiver_concept = receiver_tag;
    explicit proxy_receiver(Proxy& r) noexcept : proxy_(&r) {}
    void set_value() && noexcept { proxy_->set_value(); }
    template <class Error>
    void set_error(Error&& error) && noexcept {
        proxy_->set_error(as_exception(static_cast<Error&&>(error)));
    }
    void set_stopped() && noexcept { proxy_->set_stopped(); }
    any_env get_env() const noexcept {
        return any_env(*proxy_->template try_query<inplace_stop_token>(get_stop_token),
                       prop(get_deadline, *proxy_->template try_query<instant>(get_deadline)));
    }

private:
    Proxy* proxy_;
};

// The function of the second bulk: executes a range of the first one.
template <class Tag>
class execute_proxy {
public:
    explicit execute_proxy(bulk_proxy& r) noexcept : proxy_(&r) {}
    void operator()(std::size_t begin, std::size_t end) const noexcept {
        proxy_->execute(begin, end);
    }
    void operator()(std::size_t index) const noexcept
        requires std::same_as<Tag, bulk_unchunked_t>
    {
        proxy_->execute(index, index + 1);
    }

private:
    bulk_proxy* proxy_;
};

template <class Sch>
struct bulk_in_place {
    // Called on an agent of `sch`: executes [0, n) there, and completes r.
    template <class Place>
    static void start(const Sch& sch, std::size_t n, bulk_proxy& r, bool chunked,
                      const Place& place) noexcept {
        try {
            if (chunked) {
                connect<bulk_chunked_t>(sch, n, r, place);
            } else {
                connect<bulk_unchunked_t>(sch, n, r, place);
            }
        } catch (...) {
            r.set_error(std::current_exception());
            return;
        }
        place.start();
    }

private:
    template <class Tag, class Place>
    static void connect(const Sch& sch, std::size_t n, bulk_proxy& r, const Place& place) {
        using function = execute_proxy<Tag>;
        using data = bulk_data<parallel_policy, std::size_t, function>;
        using sender_type = bulk_sender<Tag, data, agent_sender<Sch>>;
        using operation = any_connected<sender_type, proxy_receiver<bulk_proxy>>;
        place.template emplace<operation>([&sch, n, &r] {
            return operation(sender_type(data(par, n, function(r)), agent_sender<Sch>(sch)),
                             proxy_receiver<bulk_proxy>(r));
        });
    }
};

// The Backend of a task_scheduler: the held scheduler makes the calls of a bulk.
class task_scheduler_calls {
public:
    using scheduler_type = task_scheduler;
    explicit task_scheduler_calls(const task_scheduler& sch) noexcept : sch_(sch) {}

    template <class Tag>
    void start(std::size_t items, bulk_proxy& r) noexcept {
        sch_.held().start_bulk(storage_, items, r, std::is_same_v<Tag, bulk_chunked_t>);
    }

private:
    task_scheduler sch_;
    any_operation_storage storage_;
};

// True if a sender's child says on which task_scheduler it completes.
template <class Sndr, class Env>
concept follows_task_scheduler = requires(const Sndr& sndr, const Env& env) {
    {
        get_completion_scheduler<set_value_t>(execution::get_env(sndr.child), env)
    } -> std::same_as<task_scheduler>;
};

template <class Fn>
inline constexpr bool stores_value = true;
template <class... Args>
inline constexpr bool stores_value<set_value_t(Args...)> = stores_results<set_value_t(Args...)>;
template <class Sigs>
inline constexpr bool stores_values = false;
template <class... Fns>
inline constexpr bool stores_values<completion_signatures<Fns...>> = (stores_value<Fns> && ...);

template <class Sndr, class Env>
struct task_scheduler_bulk {
    using plain = std::remove_cvref_t<Sndr>;
    using data_type = decltype(plain::data);
    using child_type = decltype(plain::child);
    using policy_type = decltype(std::declval<data_type&>().policy);

    static consteval bool applies() noexcept {
        if constexpr (runs_parallel<policy_type> && bulk_movable<Sndr> &&
                      follows_task_scheduler<Sndr, Env>) {
            return stores_values<signatures_of<child_type, fwd_env_t<Env>>>;
        } else {
            return false;
        }
    }
    static auto make(Sndr&& sndr,
                     const Env& env) noexcept(std::is_nothrow_constructible_v<plain, Sndr>) {
        using result =
            parallel_bulk_sender<tag_of_t<Sndr>, task_scheduler_calls, data_type, child_type>;
        return result(get_completion_scheduler<set_value_t>(execution::get_env(sndr.child), env),
                      static_cast<Sndr&&>(sndr).data, static_cast<Sndr&&>(sndr).child);
    }
};

}  // namespace coppice::execution::internal
