// way_back: brings a task back to its scheduler after an await of something other than a sender.
#pragma once
// Senders are made affine (exec/affine.hpp). An awaitable that is not a sender, cannot be
// moved, or is an l-value that must not be copied knows only the coroutine that it resumes. It is
// therefore given another coroutine in the task's place: a stand-in. When the stand-in is resumed,
// on any thread, it schedules the task on the task's scheduler. There the task takes the result
// directly from the awaiter, so the result is neither moved nor copied on the way.
//
// Cost: a frame from the thread's frame_pool, and one schedule operation, if the awaiter does not
// say that it completes on the task's scheduler. An awaiter that is ready costs no schedule
// operation.

#include <coppice/exec/affine.hpp>
#include <coppice/exec/as_awaitable.hpp>
#include <coppice/task/internal/frame_pool.hpp>
#include <coppice/task/internal/suspension.hpp>
#include <coppice/task/internal/task_context.hpp>
#include <coppice/task/internal/transfer.hpp>

#include <coroutine>
#include <cstddef>
#include <exception>
#include <new>
#include <type_traits>

namespace coppice::execution::internal {

template <class Env>
class task_promise_base;

// The part that does not depend on the awaitable. Threads: the thread that runs the task; but the
// thread that completes the awaited operation runs return_home.
template <class Env>
class way_back : immovable {
    using scheduler_type = typename task_context<Env>::scheduler_type;
    class receiver {
    public:
        using receiver_concept = receiver_tag;
        explicit receiver(way_back& way) noexcept : way_(&way) {}
        void set_value() && noexcept { way_->go_on(); }
        void set_stopped() && noexcept { way_->go_on(); }
        env<> get_env() const noexcept { return {}; }

    private:
        way_back* way_;
    };
    // Awaited by a stand-in that has been resumed. Schedules the task on its scheduler.
    class return_home {
    public:
        explicit return_home(way_back& way) noexcept : way_(&way) {}
        static constexpr bool await_ready() noexcept { return false; }
        void await_suspend(std::coroutine_handle<>) const noexcept {
            way_back& way = *way_;
            way.start();  // the stand-in may be gone
        }
        [[noreturn]] void await_resume() const noexcept { std::terminate(); }

    private:
        way_back* way_;
    };

public:
    class stand_in {
    public:
        class promise_type {
        public:
            explicit promise_type(way_back& way) noexcept : way_(way) {}
            static void* operator new(std::size_t bytes) { return frame_pool::allocate(bytes); }
            static void operator delete(void* memory, std::size_t bytes) noexcept {
                frame_pool::deallocate(memory, bytes);
            }
            stand_in get_return_object() noexcept {
                return stand_in(std::coroutine_handle<promise_type>::from_promise(*this));
            }
            std::suspend_always initial_suspend() const noexcept { return {}; }
            std::suspend_always final_suspend() const noexcept { return {}; }
            [[noreturn]] void unhandled_exception() noexcept { std::terminate(); }
            void return_void() noexcept {}

            // Called when the awaited operation was stopped. The task is stopped too, on its
            // scheduler.
            std::coroutine_handle<> unhandled_stopped() noexcept {
                way_.stopped_ = true;
                return std::coroutine_handle<promise_type>::from_promise(*this);
            }
            bool is_stopped() const noexcept { return way_.stopped_; }
            task_env<Env> get_env() const noexcept { return way_.promise_.get_env(); }

        private:
            way_back& way_;
        };
        explicit stand_in(std::coroutine_handle<promise_type> made) noexcept : coroutine(made) {}
        std::coroutine_handle<promise_type> coroutine;
    };
    using stand_in_promise = typename stand_in::promise_type;

    explicit way_back(task_promise_base<Env>& promise)
        : promise_(promise), stand_in_(make_stand_in(*this).coroutine) {}
    ~way_back() {
        if (connected_) operation_.destroy();
        stand_in_.destroy();
    }
    // Returns the coroutine to be resumed or stopped in place of the task.
    std::coroutine_handle<stand_in_promise> stand_in_for(std::coroutine_handle<> task) {
        task_ = task;
        operation_.construct_with([this] {
            return execution::connect(execution::schedule(promise_.context().scheduler),
                                      receiver(*this));
        });
        connected_ = true;
        return stand_in_;
    }
    stand_in_promise& promise() const noexcept { return stand_in_.promise(); }

private:
    static stand_in make_stand_in(way_back& way) { co_await return_home(way); }
    void start() noexcept { execution::start(operation_.get()); }
    // Resumes or stops the task; called on the task's scheduler. This object may be gone
    // afterwards.
    void go_on() noexcept { resume_from_outside(stopped_ ? promise_.stop(task_) : task_); }

    task_promise_base<Env>& promise_;
    const std::coroutine_handle<stand_in_promise> stand_in_;
    std::coroutine_handle<> task_;
    manual_lifetime<connect_result_t<schedule_result_t<scheduler_type&>, receiver>> operation_;
    bool connected_ = false;
    bool stopped_ =
        false;  // written by the thread that completes the operation, before it schedules the task
};

// An awaitable and its awaiter, in a coroutine whose promise is of type Promise.
template <class Value, class Promise>
struct awaited_value : immovable {
    using awaitable_type = call_result_t<as_awaitable_t, Value, Promise&>;
    using awaiter_type = decltype(awaiter_of(std::declval<awaitable_type>()));
    using suspend_type =
        decltype(std::declval<std::remove_reference_t<awaiter_type>&>().await_suspend(
            std::coroutine_handle<Promise>()));
    using result_type = resume_result_t<awaiter_type>;

    awaited_value(Value&& value, Promise& promise)
        : awaitable(as_awaitable(static_cast<Value&&>(value), promise)),
          awaiter(internal::awaiter_of(static_cast<awaitable_type&&>(awaitable))) {}
    // Suspends `given`. Substitutes `self` where `given` is to be resumed without a stop. If
    // `transfers`, returns the coroutine to resume next; otherwise returns true if the task stays
    // suspended.
    template <bool transfers>
    auto suspend(std::coroutine_handle<Promise> given, std::coroutine_handle<> self) {
        std::coroutine_handle<> next =
            std::noop_coroutine();  // this object may be gone after await_suspend
        if constexpr (std::is_void_v<suspend_type>) {
            awaiter.await_suspend(given);
        } else if constexpr (is_coroutine_handle<suspend_type>) {
            next = awaiter.await_suspend(given);
            if (next == given && !is_stopped(given)) next = self;
        } else {
            if (!awaiter.await_suspend(given)) next = self;
        }
        if constexpr (transfers) {
            return next;
        } else {
            return next != self;
        }
    }

    // Returns true if `given` was stopped. It must then be resumed itself, not the task in its
    // place.
    static bool is_stopped(std::coroutine_handle<Promise> given) noexcept {
        if constexpr (requires { given.promise().is_stopped(); }) {
            return given.promise().is_stopped();
        } else {
            return false;
        }
    }

    awaitable_type awaitable;
    awaiter_type awaiter;
};

// Returns true if an object with these attributes, whose values arrive on `sch`, completes with Tag
// there too. Does not compare with `sch` again if the answer for values is of the same type: that
// comparison may call virtual functions.
template <class Tag, class Attrs, class Env, class Sch>
bool also_completes_on(const Attrs& attrs, const Env& env, const Sch& sch) noexcept {
    using ask = get_completion_scheduler_t<Tag>;
    using values = get_completion_scheduler_t<set_value_t>;
    if constexpr (callable<ask, const Attrs&, const Env&>) {
        if constexpr (std::is_same_v<call_result_t<ask, const Attrs&, const Env&>,
                                     call_result_t<values, const Attrs&, const Env&>>) {
            return ask()(attrs, env) == values()(attrs, env);
        } else {
            return internal::completes_on<Tag>(attrs, env, sch);
        }
    } else {
        return false;
    }
}

// Returns true if `value` declares that it completes on `sch`, in every way in which it completes.
template <class Value, class Env, class Sch>
bool ends_on(const std::remove_cvref_t<Value>& value, const Env& env, const Sch& sch) noexcept {
    const auto attrs = [&value]() -> decltype(auto) { return execution::get_env(value); };
    using Attrs = std::remove_cvref_t<decltype(attrs())>;
    if constexpr (!callable<get_completion_scheduler_t<set_value_t>, const Attrs&, const Env&>) {
        return false;
    } else if constexpr (sender_in<Value, Env>) {
        using Sigs = completion_signatures_of_t<Value, Env>;
        return internal::completes_on<set_value_t>(attrs(), env, sch) &&
               (Sigs::count_of(set_error) == 0 ||
                internal::also_completes_on<set_error_t>(attrs(), env, sch)) &&
               (Sigs::count_of(set_stopped) == 0 ||
                internal::also_completes_on<set_stopped_t>(attrs(), env, sch));
    } else {
        return internal::completes_on<set_value_t>(attrs(), env, sch) &&
               internal::also_completes_on<set_error_t>(attrs(), env, sch) &&
               internal::also_completes_on<set_stopped_t>(attrs(), env, sch);
    }
}

// The await of an awaitable that is not made affine. The task awaits it directly if it has no
// scheduler to come back to, or if the awaitable completes on that scheduler; otherwise a stand-in
// does.
template <class Value, class Promise, class Env>
class returning_await : immovable {
    using stand_in_promise = typename way_back<Env>::stand_in_promise;
    using direct_type = awaited_value<Value, Promise>;
    struct away_type : immovable {
        away_type(Value&& value, Promise& promise)
            : way(promise), awaited(static_cast<Value&&>(value), way.promise()) {}
        way_back<Env> way;
        awaited_value<Value, stand_in_promise> awaited;
    };
    static constexpr bool transfers =
        is_coroutine_handle<typename direct_type::suspend_type> ||
        is_coroutine_handle<typename awaited_value<Value, stand_in_promise>::suspend_type>;

public:
    returning_await(Value&& value, Promise& promise)
        : is_direct_(promise.context().is_inline() ||
                     ends_on<Value>(value, promise.get_env(), promise.context().scheduler)) {
        if (is_direct_) {
            ::new (static_cast<void*>(&direct_)) direct_type(static_cast<Value&&>(value), promise);
        } else {
            ::new (static_cast<void*>(&away_)) away_type(static_cast<Value&&>(value), promise);
        }
    }
    ~returning_await() {
        if (is_direct_) {
            direct_.~direct_type();
        } else {
            away_.~away_type();
        }
    }
    bool await_ready() {
        return is_direct_ ? static_cast<bool>(direct_.awaiter.await_ready())
                          : static_cast<bool>(away_.awaited.awaiter.await_ready());
    }
    // The return type depends on the compiler, and so does the name of the function:
    // suspension.hpp.
    template <class Suspension = suspension>
    auto await_suspend(std::coroutine_handle<Promise> task) {
        if (is_direct_) return direct_.template suspend<transfers>(task, task);
        return away_.awaited.template suspend<transfers>(away_.way.stand_in_for(task), task);
    }
    decltype(auto) await_resume() {
        if (is_direct_) return direct_.awaiter.await_resume();
        return away_.awaited.awaiter.await_resume();
    }

private:
    const bool is_direct_;
    union {
        direct_type direct_;
        away_type away_;
    };
};

// What a task can await through a stand-in.
template <class Value, class Promise, class Env>
concept awaited_by_stand_in =
    infallible_scheduler<typename task_context<Env>::scheduler_type, env<>> &&
    awaited_in<Value, Promise> && awaited_in<Value, typename way_back<Env>::stand_in_promise> &&
    std::same_as<
        typename awaited_value<Value, Promise>::result_type,
        typename awaited_value<Value, typename way_back<Env>::stand_in_promise>::result_type>;

}  // namespace coppice::execution::internal
