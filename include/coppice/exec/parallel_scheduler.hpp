// parallel_scheduler: the process's pool of threads, with a replaceable implementation.
#pragma once
// Its implementation, the backend, is what query_parallel_scheduler_backend() returns: the one
// given to set_parallel_scheduler_backend, otherwise the process's default pool, on which forks and
// loops run too (room pool, which also defines the functions). A program may instead define
// query_parallel_scheduler_backend() itself (parallel_scheduler_backend.hpp).
// Source: [exec.par.scheduler].

#include <coppice/exec/bulk.hpp>
#include <coppice/exec/internal/parallel_bulk.hpp>
#include <coppice/exec/parallel_scheduler_backend.hpp>

#include <cstddef>
#include <memory>
#include <type_traits>
#include <utility>

namespace coppice::execution {

namespace internal {

struct parallel_scheduler_domain;

}  // namespace internal

// Refers to a backend. Two compare equal if they refer to the same backend.
class parallel_scheduler {
    using backend = parallel_scheduler_replacement::parallel_scheduler_backend;

public:
    using scheduler_concept = scheduler_tag;

    // `implementation` must not be null. Each copy keeps it alive, and so do the senders and
    // operations made from it.
    explicit parallel_scheduler(std::shared_ptr<backend> implementation) noexcept
        : backend_(std::move(implementation)) {}

    template <class Rcvr>
    class operation final
        : internal::parallel_proxy<parallel_scheduler_replacement::receiver_proxy, Rcvr> {
    public:
        using operation_state_concept = operation_state_tag;
        operation(std::shared_ptr<backend> implementation, Rcvr r) noexcept
            : internal::parallel_proxy<parallel_scheduler_replacement::receiver_proxy, Rcvr>(
                  static_cast<Rcvr&&>(r)),
              backend_(std::move(implementation)) {}
        operation(operation&&) = delete;
        void start() & noexcept {
            this->begin();
            if (this->stop_requested()) return this->set_stopped();
            // The completion may destroy *this before the call has returned.
            const std::shared_ptr<backend> kept = backend_;
            kept->schedule(*this, storage_.get());
        }

    private:
        void set_value() noexcept override {
            this->end();
            execution::set_value(static_cast<Rcvr&&>(this->rcvr));
        }
        std::shared_ptr<backend> backend_;
        internal::backend_storage storage_;
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

    // Returns a sender that completes on a thread of the backend. Cost: no allocation.
    sender schedule() const noexcept { return sender(backend_); }
    forward_progress_guarantee query(get_forward_progress_guarantee_t) const noexcept {
        return forward_progress_guarantee::parallel;
    }
    internal::parallel_scheduler_domain query(get_domain_t) const noexcept;
    internal::parallel_scheduler_domain query(get_completion_domain_t<set_value_t>) const noexcept;
    // Returns the backend. Lifetime: until this scheduler and its copies are destroyed.
    backend& get_backend() const noexcept { return *backend_; }
    bool operator==(const parallel_scheduler& other) const noexcept {
        return backend_ == other.backend_;
    }

private:
    std::shared_ptr<backend> backend_;
};

namespace internal {

// The Backend of a parallel_scheduler: its backend makes the calls of a bulk.
class parallel_scheduler_calls {
public:
    using scheduler_type = parallel_scheduler;
    explicit parallel_scheduler_calls(parallel_scheduler sch) noexcept : sch_(std::move(sch)) {}

    template <class Tag>
    void start(std::size_t items, bulk_proxy& r) noexcept {
        // The completion may destroy *this before the call has returned.
        const parallel_scheduler kept = sch_;
        if constexpr (std::is_same_v<Tag, bulk_chunked_t>) {
            kept.get_backend().schedule_bulk_chunked(items, r, storage_.get());
        } else {
            kept.get_backend().schedule_bulk_unchunked(items, r, storage_.get());
        }
    }

private:
    parallel_scheduler sch_;  // keeps the backend alive
    backend_storage storage_;
};

// For a parallel_scheduler in a task_scheduler: the backend makes the calls, as without the
// task_scheduler.
template <>
struct bulk_in_place<parallel_scheduler> {
    class operation final : public any_operation_base {
    public:
        operation(const parallel_scheduler& sch, std::size_t n, bulk_proxy& r,
                  bool chunked) noexcept
            : calls_(sch), count_(n), proxy_(r), chunked_(chunked) {}
        void start() noexcept override {
            if (chunked_) {
                calls_.start<bulk_chunked_t>(count_, proxy_);
            } else {
                calls_.start<bulk_unchunked_t>(count_, proxy_);
            }
        }

    private:
        parallel_scheduler_calls calls_;
        std::size_t count_;
        bulk_proxy& proxy_;
        bool chunked_;
    };
    template <class Place>
    static void start(const parallel_scheduler& sch, std::size_t n, bulk_proxy& r, bool chunked,
                      const Place& place) noexcept {
        static_assert(any_operation_storage::fits<operation>);  // so it does not throw
        place.template emplace<operation>(
            [&sch, n, &r, chunked] { return operation(sch, n, r, chunked); });
        place.start();
    }
};

// True if a sender's child says on which parallel_scheduler it completes.
template <class Sndr, class Env>
concept follows_parallel_scheduler = requires(const Sndr& sndr, const Env& env) {
    {
        get_completion_scheduler<set_value_t>(execution::get_env(sndr.child), env)
    } -> std::same_as<parallel_scheduler>;
};

// Hands bulk_chunked and bulk_unchunked to the backend. If the scheduler is not known, as after a
// when_all, the calls are made where the child completes.
struct parallel_scheduler_domain {
    template <class Sndr, class Env>
        requires(sender_for<Sndr, bulk_chunked_t> || sender_for<Sndr, bulk_unchunked_t>) &&
                internal::bulk_movable<Sndr> && (follows_parallel_scheduler<Sndr, Env>)
    static constexpr auto transform_sender(set_value_t, Sndr&& sndr, const Env& env) {
        using Plain = std::remove_cvref_t<Sndr>;
        using Data = decltype(Plain::data);
        using Child = decltype(Plain::child);
        auto sch = get_completion_scheduler<set_value_t>(execution::get_env(sndr.child), env);
        return parallel_bulk_sender<tag_of_t<Sndr>, parallel_scheduler_calls, Data, Child>(
            std::move(sch), static_cast<Sndr&&>(sndr).data, static_cast<Sndr&&>(sndr).child);
    }
};

}  // namespace internal

inline internal::parallel_scheduler_domain parallel_scheduler::query(get_domain_t) const noexcept {
    return {};
}
inline internal::parallel_scheduler_domain parallel_scheduler::query(
    get_completion_domain_t<set_value_t>) const noexcept {
    return {};
}

// Returns the process's parallel scheduler. Threads: any. Blocks: while the default pool is made,
// if it is the backend. Work that blocks a worker of that pool keeps it from all other work: what
// waits there for the parallel scheduler, as sync_wait does, needs a second worker. Errors: those
// of making the pool; the next call tries again. Misuse: a backend query that returns null ends the
// process.
parallel_scheduler get_parallel_scheduler();

}  // namespace coppice::execution
