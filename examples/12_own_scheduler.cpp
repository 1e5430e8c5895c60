// A scheduler of your own: a thread with two queues, of which the urgent one goes first.
#include <coppice/execution.hpp>

#include <condition_variable>
#include <cstdio>
#include <mutex>
#include <thread>

namespace ex = coppice::execution;
using coppice::this_thread::sync_wait;

// The context. Its queues link the operations themselves, so scheduling allocates nothing.
class two_lanes {
public:
    enum class lane { urgent, normal };

    two_lanes() : thread_([this] { run(); }) {}
    ~two_lanes() {
        {
            const std::lock_guard lock(mutex_);
            stopping_ = true;
        }
        changed_.notify_one();
        thread_.join();
    }

    class scheduler;
    scheduler get_scheduler(lane l = lane::normal) noexcept;

private:
    struct item {
        void (*run)(item*) noexcept;
        item* next = nullptr;
    };
    struct queue {
        item* first = nullptr;
        item** last = &first;
    };

    void push(lane l, item& pushed) noexcept {
        {
            const std::lock_guard lock(mutex_);
            queue& q = l == lane::urgent ? urgent_ : normal_;
            *q.last = &pushed;
            q.last = &pushed.next;
        }
        changed_.notify_one();
    }
    void run() {
        std::unique_lock lock(mutex_);
        for (;;) {
            changed_.wait(lock, [this] { return urgent_.first || normal_.first || stopping_; });
            queue& q = urgent_.first ? urgent_ : normal_;
            if (!q.first) return;
            item* const next = q.first;
            q.first = next->next;
            if (!q.first) q.last = &q.first;
            lock.unlock();
            next->run(next);  // *next may be gone
            lock.lock();
        }
    }

    std::mutex mutex_;
    std::condition_variable changed_;
    queue urgent_;
    queue normal_;
    bool stopping_ = false;
    std::thread thread_;
};

// A handle, copied freely. Two handles are equal if they mean the same lane of one context.
class two_lanes::scheduler {
public:
    using scheduler_concept = ex::scheduler_tag;

    class sender {
    public:
        using sender_concept = ex::sender_tag;

        sender(two_lanes& context, lane l) noexcept : context_(&context), lane_(l) {}

        template <class Self, class... Env>
        static consteval auto get_completion_signatures() {
            return ex::completion_signatures<ex::set_value_t(), ex::set_stopped_t()>();
        }
        template <ex::receiver Rcvr>
        class operation : item {
        public:
            using operation_state_concept = ex::operation_state_tag;
            operation(two_lanes& context, lane l, Rcvr rcvr) noexcept
                : item{&run}, context_(context), lane_(l), rcvr_(std::move(rcvr)) {}
            operation(operation&&) = delete;
            void start() & noexcept { context_.push(lane_, *this); }

        private:
            static void run(item* i) noexcept {
                auto& self = *static_cast<operation*>(i);
                if (coppice::get_stop_token(ex::get_env(self.rcvr_)).stop_requested()) {
                    ex::set_stopped(std::move(self.rcvr_));
                } else {
                    ex::set_value(std::move(self.rcvr_));
                }
            }
            two_lanes& context_;
            lane lane_;
            Rcvr rcvr_;
        };
        template <ex::receiver Rcvr>
        auto connect(Rcvr rcvr) const noexcept {
            return operation<Rcvr>(*context_, lane_, std::move(rcvr));
        }

        // [attrs]
        // Says where the sender completes. on() and affine() query it.
        struct attrs {
            two_lanes* context;
            lane l;
            template <class Tag>
                requires(!std::is_same_v<Tag, ex::set_error_t>)
            scheduler query(ex::get_completion_scheduler_t<Tag>) const noexcept {
                return scheduler(*context, l);
            }
        };
        attrs get_env() const noexcept { return {context_, lane_}; }
        // [/attrs]

    private:
        two_lanes* context_;
        lane lane_;
    };

    scheduler(two_lanes& context, lane l) noexcept : context_(&context), lane_(l) {}
    sender schedule() const noexcept { return sender(*context_, lane_); }
    ex::forward_progress_guarantee query(ex::get_forward_progress_guarantee_t) const noexcept {
        return ex::forward_progress_guarantee::parallel;
    }
    template <class Tag>
        requires(!std::is_same_v<Tag, ex::set_error_t>)
    scheduler query(ex::get_completion_scheduler_t<Tag>) const noexcept {
        return *this;
    }
    bool operator==(const scheduler&) const noexcept = default;

private:
    two_lanes* context_;
    lane lane_;
};

two_lanes::scheduler two_lanes::get_scheduler(lane l) noexcept {
    return scheduler(*this, l);
}

int main() {
    static_assert(ex::scheduler<two_lanes::scheduler>);
    two_lanes lanes;
    ex::scheduler auto normal = lanes.get_scheduler();
    ex::scheduler auto urgent = lanes.get_scheduler(two_lanes::lane::urgent);

    const auto say = [](const char* text) {
        return ex::then([text]() noexcept { std::printf("%s\n", text); });
    };
    // While the thread runs the first, the others queue up.
    ex::counting_scope scope;
    ex::spawn(ex::schedule(normal) | ex::then([&]() noexcept {
                  ex::spawn(ex::schedule(normal) | say("second, normal"), scope.get_token());
                  ex::spawn(ex::schedule(normal) | say("third, normal"), scope.get_token());
                  ex::spawn(ex::schedule(urgent) | say("first, urgent"), scope.get_token());
              }),
              scope.get_token());
    sync_wait(scope.join());

    const auto here = [] { return std::this_thread::get_id(); };
    auto [there, back] = *sync_wait(
        ex::when_all(ex::on(urgent, ex::just() | ex::then(here)), ex::just() | ex::then(here)));
    std::printf("another thread: %s\n", there != back ? "yes" : "no");
}
