// The model of the third thread. One thread stops an operation, which completes inside the stop.
// Another thread, which waited for it, destroys it while the stop is still on its way out. Covers
// everything that passes on a stop through a source of its own.
#include "exec_model.hpp"

#include <coppice/exec/any_sender.hpp>
#include <coppice/exec/let_async_scope.hpp>
#include <coppice/exec/spawn.hpp>
#include <coppice/exec/spawn_future.hpp>
#include <coppice/exec/split.hpp>
#include <coppice/stop/single.hpp>

#include <array>

namespace {

using namespace coppice;
using namespace coppice::internal;
using namespace coppice::protocol_model;
using namespace model;

// Registers callbacks. The first that runs removes all of them and completes.
template <std::size_t Callbacks>
class waits_for_stop {
public:
    using sender_concept = ex::sender_tag;
    waits_for_stop() noexcept = default;
    template <class Rcvr>
    class operation {
    public:
        using operation_state_concept = ex::operation_state_tag;
        explicit operation(Rcvr rcvr) noexcept : rcvr_(static_cast<Rcvr&&>(rcvr)) {}
        void start() & noexcept {
            for (registration& callback : callbacks_) {
                callback.engage(get_stop_token(ex::get_env(rcvr_)), fire(*this));
            }
            arrive();
        }

    private:
        class fire {
        public:
            explicit fire(operation& op) noexcept : op_(&op) {}
            void operator()() noexcept { op_->arrive(); }

        private:
            operation* op_;
        };
        using registration =
            ex::internal::stop_registration<stop_token_of_t<ex::env_of_t<Rcvr>>, fire>;
        void arrive() noexcept {
            if (arrivals_.fetch_add(1, acq_rel) != 1) return;
            for (registration& callback : callbacks_) callback.reset();
            ex::set_stopped(static_cast<Rcvr&&>(rcvr_));
        }
        Rcvr rcvr_;
        atomic<int> arrivals_{0};
        std::array<registration, Callbacks> callbacks_;
    };
    template <class Self, class... Env>
    static consteval auto get_completion_signatures() noexcept {
        return ex::completion_signatures<ex::set_value_t(), ex::set_stopped_t()>();
    }
    template <class Rcvr>
    auto connect(Rcvr rcvr) const noexcept {
        return operation<Rcvr>(static_cast<Rcvr&&>(rcvr));
    }
};

// Tells the destroying thread, and touches nothing afterwards.
class telling_receiver {
public:
    using receiver_concept = ex::receiver_tag;
    telling_receiver(atomic<int>& completed, single_inplace_stop_token token) noexcept
        : completed_(&completed), token_(token) {}
    void set_value() && noexcept { completed_->store(1, release); }
    template <class Error>
    void set_error(Error&&) && noexcept {
        completed_->store(1, release);
    }
    void set_stopped() && noexcept { completed_->store(1, release); }
    auto get_env() const noexcept { return ex::prop(get_stop_token, token_); }

private:
    atomic<int>* completed_;
    single_inplace_stop_token token_;
};

// The operation is running. One thread stops it, the other destroys it.
template <class Shape>
struct destroyed_elsewhere : stop_test<destroyed_elsewhere<Shape>, 2> {
    using sender = decltype(std::declval<Shape&>().make());
    Shape shape;
    single_inplace_stop_source source;
    atomic<int> completed{0};
    manual_lifetime<ex::connect_result_t<sender, telling_receiver>> op;

    void before() {
        completed.store(0, relaxed);
        shape.begin();
        op.construct_with([this] {
            return ex::connect(shape.make(), telling_receiver(completed, source.get_token()));
        });
        ex::start(op.get());
    }
    void run(unsigned index) {
        if (index == 0) {
            source.request_stop();
            return;
        }
        while (completed.load(acquire) == 0) spin_hint();
        op.destroy();
    }
    void after() { shape.end(); }
};

struct any_shape {
    using any = ex::any_sender<ex::completion_signatures<ex::set_value_t(), ex::set_stopped_t()>>;
    void begin() {}
    any make() { return any(waits_for_stop<2>()); }
    void end() {}
};
struct split_shape {
    void begin() {}
    auto make() { return ex::split(waits_for_stop<1>()); }
    void end() {}
};
struct future_shape {
    manual_lifetime<ex::simple_counting_scope> scope;
    void begin() { scope.construct(); }
    auto make() { return ex::spawn_future(waits_for_stop<1>(), scope.get().get_token()); }
    void end() {
        require(scope.get().outstanding() == 0, "the scope was not left");
        struct : ex::scope_base::joiner {
            void complete() noexcept override {}
        } joiner;
        require(scope.get().start_join(joiner), "the scope cannot be joined");
        scope.destroy();
    }
};
struct let_async_scope_shape {
    void begin() {}
    auto make() {
        return ex::scoped([](auto scope) noexcept {
            ex::spawn(waits_for_stop<2>(), scope);
            return waits_for_stop<1>();
        });
    }
    void end() {}
};

// Two operations of a scope fail at once. One complete error is kept, and is visible after the
// join.
struct first_error : stop_test<first_error, 3> {
    manual_lifetime<ex::internal::nested_failure<watched>> failure;
    std::optional<ex::counting_scope::association> operations[2];
    struct : ex::scope_base::joiner {
        first_error* test = nullptr;
        void complete() noexcept override { test->joined(); }
    } joiner;
    int joins = 0;

    struct reader {
        using receiver_concept = ex::receiver_tag;
        void set_error(const watched& error) && noexcept {
            require(error.get() == 1 || error.get() == 2, "the error is none that was sent");
        }
        void set_error(std::exception_ptr) && noexcept { require(false, "not stored"); }
    };
    void before() {
        failure.construct();
        joins = 0;
        joiner.test = this;
        for (auto& op : operations) {
            op.emplace(failure.get().scope.get_token().try_associate());
        }
    }
    void joined() {
        require(failure.get().has_error(), "no error was kept");
        reader r;
        failure.get().deliver(r);
        ++joins;
        failure.destroy();
    }
    void run(unsigned index) {
        if (index == 2) {
            if (failure.get().scope.start_join(joiner)) joined();
            return;
        }
        failure.get().fail(watched(static_cast<int>(index) + 1));
        operations[index].reset();
    }
    void after() { require(joins == 1, "not joined once"); }
};

}  // namespace

int main() {
    report report("third_thread");
    report.holds<destroyed_elsewhere<any_shape>>("an any_sender's source ends in its callback");
    report.holds<destroyed_elsewhere<split_shape>>("split's state ends inside the stop");
    report.holds<destroyed_elsewhere<future_shape>>("and so does spawn_future");
    report.holds<destroyed_elsewhere<let_async_scope_shape>>("let_async_scope holds its scope");
    report.holds<first_error>("the first error in a scope is kept whole", far);

    report.dies_planted<destroyed_elsewhere<future_shape>>("future.cancel_unheld");
    report.dies_planted<first_error>("let_async_scope.no_claim", far);
    return report.finish();
}
