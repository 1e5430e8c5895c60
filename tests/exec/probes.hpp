// Shared by the tests of this room: receivers that record how they were completed.
#pragma once
// It also has senders and schedulers that a test completes itself.

#include <coppice/exec/internal/stop_registration.hpp>
#include <coppice/exec/scheduler.hpp>
#include <coppice/stop/inplace.hpp>

#include <deque>
#include <exception>
#include <stdexcept>
#include <string>
#include <system_error>
#include <utility>

namespace probes {

namespace ex = coppice::execution;

// Returns any result in words.
template <class T>
std::string text(const T& value) {
    if constexpr (std::convertible_to<const T&, std::string>) {
        return value;
    } else if constexpr (std::same_as<T, bool>) {
        return value ? "true" : "false";
    } else if constexpr (std::integral<T> || std::floating_point<T>) {
        return std::to_string(value);
    } else if constexpr (std::same_as<T, std::error_code>) {
        return value.message();
    } else if constexpr (std::same_as<T, std::exception_ptr>) {
        try {
            std::rethrow_exception(value);
        } catch (const std::exception& e) {
            return std::string("exception ") + e.what();
        } catch (int i) {
            return "exception " + std::to_string(i);
        }
    } else if constexpr (requires { value.in_words(); }) {
        return value.in_words();
    } else {
        return "?";
    }
}

// How a receiver was completed, in words: "value(1, two)", "error(3)", "stopped"; empty before
// that. A second completion is appended.
class record {
public:
    template <class... Args>
    void value(const Args&... args) {
        std::string all;
        ((all += (all.empty() ? "" : ", ") + text(args)), ...);
        add("value(" + all + ")");
    }
    template <class Error>
    void error(const Error& e) {
        add("error(" + text(e) + ")");
    }
    void stopped() { add("stopped"); }
    const std::string& said() const { return said_; }

private:
    void add(const std::string& what) { said_ += said_.empty() ? what : " and " + what; }
    std::string said_;
};

// A receiver that records its completion.
template <class Env = ex::env<>>
class receiver {
public:
    using receiver_concept = ex::receiver_tag;
    explicit receiver(record& r, Env env = Env()) noexcept : record_(&r), env_(std::move(env)) {}
    template <class... Args>
    void set_value(Args&&... args) && noexcept {
        record_->value(args...);
    }
    template <class Error>
    void set_error(Error&& error) && noexcept {
        record_->error(error);
    }
    void set_stopped() && noexcept { record_->stopped(); }
    Env get_env() const noexcept { return env_; }

private:
    record* record_;
    Env env_;
};

// Connects and starts a sender. Returns how it completed, if it did so at once.
template <class Sndr, class Env = ex::env<>>
std::string outcome(Sndr&& sndr, Env env = Env()) {
    record r;
    auto op = ex::connect(std::forward<Sndr>(sndr), receiver<Env>(r, std::move(env)));
    ex::start(op);
    return r.said();
}

// An environment with the stop token of a source.
inline auto stop_env(coppice::inplace_stop_source& source) {
    return ex::prop(coppice::get_stop_token, source.get_token());
}

// A sender that a test completes with an int, an error, or a stop. One operation at a time.
class by_hand {
public:
    class operation_base {
    public:
        virtual void value(int) noexcept = 0;
        virtual void error(int) noexcept = 0;
        virtual void stopped() noexcept = 0;
        virtual bool stop_requested() const noexcept = 0;

    protected:
        ~operation_base() = default;
    };
    template <class Rcvr>
    class operation final : operation_base {
    public:
        using operation_state_concept = ex::operation_state_tag;
        operation(by_hand& hand, Rcvr rcvr) noexcept : hand_(hand), rcvr_(std::move(rcvr)) {}
        operation(operation&&) = delete;
        ~operation() {
            if (hand_.running_ == this) hand_.running_ = nullptr;
            ++hand_.destroyed;
        }
        void start() & noexcept {
            hand_.running_ = this;
            ++hand_.started;
        }

    private:
        void value(int i) noexcept override { ex::set_value(std::move(rcvr_), std::move(i)); }
        void error(int i) noexcept override { ex::set_error(std::move(rcvr_), std::move(i)); }
        void stopped() noexcept override { ex::set_stopped(std::move(rcvr_)); }
        bool stop_requested() const noexcept override {
            return coppice::get_stop_token(ex::get_env(rcvr_)).stop_requested();
        }
        by_hand& hand_;
        Rcvr rcvr_;
    };
    class sender {
    public:
        using sender_concept = ex::sender_tag;
        explicit sender(by_hand& hand) noexcept : hand_(&hand) {}
        template <class Self, class... Env>
        static consteval auto get_completion_signatures() noexcept {
            return ex::completion_signatures<ex::set_value_t(int), ex::set_error_t(int),
                                             ex::set_stopped_t()>();
        }
        template <class Rcvr>
        auto connect(Rcvr rcvr) const noexcept {
            return operation<Rcvr>(*hand_, std::move(rcvr));
        }

    private:
        by_hand* hand_;
    };

    sender get() noexcept { return sender(*this); }
    bool running() const noexcept { return running_ != nullptr; }
    void value(int i) noexcept { std::exchange(running_, nullptr)->value(i); }
    void error(int i) noexcept { std::exchange(running_, nullptr)->error(i); }
    void stopped() noexcept { std::exchange(running_, nullptr)->stopped(); }
    bool stop_requested() const noexcept { return running_->stop_requested(); }

    int started = 0;
    int destroyed = 0;

private:
    operation_base* running_ = nullptr;
};

// Completes with set_stopped as soon as a stop is requested, from inside the request.
class until_stopped {
public:
    using sender_concept = ex::sender_tag;
    until_stopped() noexcept = default;

    template <class Rcvr>
    class operation {
    public:
        using operation_state_concept = ex::operation_state_tag;
        explicit operation(Rcvr rcvr) noexcept : rcvr_(std::move(rcvr)) {}
        operation(operation&&) = delete;
        void start() & noexcept {
            const auto token = coppice::get_stop_token(ex::get_env(rcvr_));
            if (token.stop_requested()) {
                ex::set_stopped(std::move(rcvr_));
                return;
            }
            callback_.engage(token, complete(*this));
        }

    private:
        class complete {
        public:
            explicit complete(operation& op) noexcept : op_(&op) {}
            void operator()() noexcept {
                operation& op = *op_;
                op.callback_.reset();
                ex::set_stopped(std::move(op.rcvr_));
            }

        private:
            operation* op_;
        };
        Rcvr rcvr_;
        ex::internal::stop_registration<coppice::stop_token_of_t<ex::env_of_t<Rcvr>>, complete>
            callback_;
    };
    template <class Self, class... Env>
    static consteval auto get_completion_signatures() noexcept {
        return ex::completion_signatures<ex::set_value_t(int), ex::set_stopped_t()>();
    }
    template <class Rcvr>
    auto connect(Rcvr rcvr) const noexcept {
        return operation<Rcvr>(std::move(rcvr));
    }
};

// Senders that complete at once, in one of two ways.
template <class... Fns>
class at_once {
public:
    using sender_concept = ex::sender_tag;
    explicit at_once(bool first) noexcept : first_(first) {}
    template <class Rcvr>
    class operation {
    public:
        using operation_state_concept = ex::operation_state_tag;
        operation(bool first, Rcvr rcvr) noexcept : first_(first), rcvr_(std::move(rcvr)) {}
        operation(operation&&) = delete;
        void start() & noexcept { first_ ? value() : other(ex::completion_signatures<Fns...>()); }

    private:
        void value() noexcept { ex::set_value(std::move(rcvr_), 1); }
        void other(ex::completion_signatures<ex::set_error_t(int)>) noexcept {
            ex::set_error(std::move(rcvr_), 1);
        }
        void other(ex::completion_signatures<ex::set_stopped_t()>) noexcept {
            ex::set_stopped(std::move(rcvr_));
        }
        bool first_;
        Rcvr rcvr_;
    };
    template <class Self, class... Env>
    static consteval auto get_completion_signatures() noexcept {
        return ex::completion_signatures<ex::set_value_t(int), Fns...>();
    }
    template <class Rcvr>
    auto connect(Rcvr rcvr) const noexcept {
        return operation<Rcvr>(first_, std::move(rcvr));
    }

private:
    bool first_;
};
// Sends 1; before the last round it sends an error.
inline auto error_until(int round, int last) {
    return at_once<ex::set_error_t(int)>(round == last);
}
// Completes with set_stopped, although its signatures also allow an int.
inline auto stops() {
    return at_once<ex::set_stopped_t()>(false);
}

// A queue of scheduled operations that a test runs one by one.
class by_hand_context {
public:
    class item {
    public:
        virtual void run() noexcept = 0;

    protected:
        ~item() = default;
    };
    template <class Rcvr>
    class operation final : item {
    public:
        using operation_state_concept = ex::operation_state_tag;
        operation(by_hand_context& context, Rcvr rcvr) noexcept
            : context_(context), rcvr_(std::move(rcvr)) {}
        operation(operation&&) = delete;
        void start() & noexcept { context_.items_.push_back(this); }

    private:
        void run() noexcept override { ex::set_value(std::move(rcvr_)); }
        by_hand_context& context_;
        Rcvr rcvr_;
    };
    class scheduler;
    class sender {
    public:
        using sender_concept = ex::sender_tag;
        explicit sender(by_hand_context& context) noexcept : context_(&context) {}
        class attrs {
        public:
            explicit attrs(by_hand_context& context) noexcept : context_(&context) {}
            scheduler query(ex::get_completion_scheduler_t<ex::set_value_t>) const noexcept;

        private:
            by_hand_context* context_;
        };
        attrs get_env() const noexcept { return attrs(*context_); }
        template <class Self, class... Env>
        static consteval auto get_completion_signatures() noexcept {
            return ex::completion_signatures<ex::set_value_t()>();
        }
        template <class Rcvr>
        auto connect(Rcvr rcvr) const noexcept {
            return operation<Rcvr>(*context_, std::move(rcvr));
        }

    private:
        by_hand_context* context_;
    };
    class scheduler {
    public:
        using scheduler_concept = ex::scheduler_tag;
        explicit scheduler(by_hand_context& context) noexcept : context_(&context) {}
        sender schedule() const noexcept { return sender(*context_); }
        bool operator==(const scheduler&) const noexcept = default;

    private:
        by_hand_context* context_;
    };

    scheduler get_scheduler() noexcept { return scheduler(*this); }
    std::size_t size() const noexcept { return items_.size(); }
    void run_one() {
        item* const next = items_.front();
        items_.pop_front();
        next->run();
    }
    void run_all() {
        while (!items_.empty()) run_one();
    }

private:
    std::deque<item*> items_;
};
inline by_hand_context::scheduler by_hand_context::sender::attrs::query(
    ex::get_completion_scheduler_t<ex::set_value_t>) const noexcept {
    return scheduler(*context_);
}

// Completes with an int if `first`, otherwise with a string.
struct two_values {
    using sender_concept = ex::sender_tag;
    using completion_signatures =
        ex::completion_signatures<ex::set_value_t(int), ex::set_value_t(std::string)>;
    explicit two_values(bool first) noexcept : first_(first) {}
    template <class Rcvr>
    struct operation {
        using operation_state_concept = ex::operation_state_tag;
        operation(bool f, Rcvr r) noexcept : first(f), rcvr(std::move(r)) {}
        void start() & noexcept {
            if (first) {
                ex::set_value(std::move(rcvr), 1);
            } else {
                ex::set_value(std::move(rcvr), std::string("two"));
            }
        }
        bool first;
        Rcvr rcvr;
    };
    template <class Rcvr>
    auto connect(Rcvr rcvr) const noexcept {
        return operation<Rcvr>(first_, std::move(rcvr));
    }

private:
    bool first_;
};

// A scheduler whose schedule() always fails, as that of a full context.
struct refuses {
    using sender_concept = ex::sender_tag;
    using completion_signatures =
        ex::completion_signatures<ex::set_value_t(), ex::set_error_t(std::string)>;
    refuses() noexcept = default;
    template <class Rcvr>
    struct operation {
        using operation_state_concept = ex::operation_state_tag;
        explicit operation(Rcvr r) noexcept : rcvr(std::move(r)) {}
        void start() & noexcept { ex::set_error(std::move(rcvr), std::string("full")); }
        Rcvr rcvr;
    };
    template <class Rcvr>
    auto connect(Rcvr rcvr) const noexcept {
        return operation<Rcvr>(std::move(rcvr));
    }
};
class refusing_scheduler {
public:
    using scheduler_concept = ex::scheduler_tag;
    refusing_scheduler() noexcept = default;
    refuses schedule() const noexcept { return {}; }
    bool operator==(const refusing_scheduler&) const noexcept { return true; }
};

// An int whose copies throw on request.
class throwing_copy {
public:
    explicit throwing_copy(int i) noexcept : value(i) {}
    throwing_copy(const throwing_copy& other) : value(other.value) {
        if (value < 0) throw std::runtime_error("copy");
    }
    throwing_copy(throwing_copy&& other) noexcept(false) : value(other.value) {
        if (value < 0) throw std::runtime_error("move");
    }
    throwing_copy& operator=(const throwing_copy&) = default;
    std::string in_words() const { return std::to_string(value); }
    int value;
};

}  // namespace probes
