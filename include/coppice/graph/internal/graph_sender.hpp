// graph_sender: a run of a task_graph as a sender, and as an operation for any other token.
#pragma once

#include <coppice/base/lifetime.hpp>
#include <coppice/exec/completion_signatures.hpp>
#include <coppice/exec/sender.hpp>
#include <coppice/graph/internal/graph_run.hpp>
#include <coppice/token/completion.hpp>
#include <coppice/token/internal/code_of.hpp>
#include <coppice/token/internal/stop_link.hpp>
#include <coppice/token/transform.hpp>

#include <cstddef>
#include <exception>
#include <system_error>
#include <type_traits>
#include <utility>

namespace coppice::internal {

// The kinds of rounds: one, a number of them, or until a predicate. Each returns true for one more.
struct one_round {
    static bool wants(bool first) noexcept { return first; }
};
struct counted_rounds {
    std::size_t left;
    bool wants(bool) noexcept { return left != 0 && left-- != 0; }
};
template <class Predicate>
struct rounds_until {
    Predicate predicate;
    bool wants(bool first) { return first || !predicate(); }
};

template <class Rounds, class Rcvr>
class run_operation final : graph_run {
public:
    using operation_state_concept = execution::operation_state_tag;
    run_operation(graph_root& graph, const graph_pool& pool, Rounds rounds, Rcvr rcvr)
        : graph_run(graph, pool), rounds_(std::move(rounds)), rcvr_(static_cast<Rcvr&&>(rcvr)) {}
    void start() & noexcept { this->enter(completion_env_of(execution::get_env(rcvr_), link_)); }

private:
    bool wants_round(bool first) override { return rounds_.wants(first); }
    void complete(outcome what) noexcept override {
        link_.reset();
        switch (what) {
            case outcome::value:
                return execution::set_value(static_cast<Rcvr&&>(rcvr_));
            case outcome::error:
                return execution::set_error(static_cast<Rcvr&&>(rcvr_), this->take_error());
            case outcome::stopped:
                return execution::set_stopped(static_cast<Rcvr&&>(rcvr_));
        }
    }

    Rounds rounds_;
    [[no_unique_address]] Rcvr rcvr_;
    [[no_unique_address]] stop_link_for<execution::env_of_t<Rcvr>> link_;
};

// Copyable if the rounds are; each operation is a run of its own.
template <class Rounds>
class [[nodiscard("await it or connect it: it has not begun")]] run_sender {
public:
    using sender_concept = execution::sender_tag;
    run_sender(graph_root& graph, const graph_pool& pool, Rounds rounds)
        : graph_(&graph), pool_(pool), rounds_(std::move(rounds)) {}

    template <class Self, class... Env>
    static consteval auto get_completion_signatures() noexcept {
        return execution::completion_signatures<execution::set_value_t(),
                                                execution::set_error_t(std::exception_ptr),
                                                execution::set_stopped_t()>();
    }
    template <execution::receiver Rcvr>
    auto connect(Rcvr rcvr) const& {
        return run_operation<Rounds, Rcvr>(*graph_, pool_, rounds_, static_cast<Rcvr&&>(rcvr));
    }
    template <execution::receiver Rcvr>
    auto connect(Rcvr rcvr) && {
        return run_operation<Rounds, Rcvr>(*graph_, pool_, std::move(rounds_),
                                           static_cast<Rcvr&&>(rcvr));
    }

private:
    graph_root* graph_;
    graph_pool pool_;
    Rounds rounds_;
};

// A run for completion tokens that report error codes. block and use_future throw the exception.
template <class Rounds>
class run_initiation {
    class kept_run final : public graph_run {
    public:
        kept_run(run_initiation& owner, graph_root& graph, const graph_pool& pool)
            : graph_run(graph, pool), owner_(owner) {}
        using graph_run::enter;
        using graph_run::error;

    private:
        bool wants_round(bool first) override { return owner_.rounds_.wants(first); }
        void complete(outcome what) noexcept override { owner_.complete(what); }
        run_initiation& owner_;
    };

public:
    static constexpr const char* name = "task_graph::run";

    run_initiation(graph_root& graph, const graph_pool& pool, Rounds rounds)
        : graph_(&graph), pool_(pool), rounds_(std::move(rounds)) {}
    // Moves a run that has not begun.
    run_initiation(run_initiation&& other) noexcept(std::is_nothrow_move_constructible_v<Rounds>)
        : graph_(other.graph_), pool_(other.pool_), rounds_(std::move(other.rounds_)) {}
    ~run_initiation() {
        if (has_begun_) run_.destroy();
    }
    void operator()(completion<> done) noexcept {
        done_ = done;
        has_begun_ = true;
        run_.construct(*this, *graph_, pool_).enter(done.get_env());  // this object may be gone
    }
    // Returns what block and use_future throw.
    std::exception_ptr exception() const noexcept {
        return has_begun_ ? run_.get().error() : nullptr;
    }

private:
    void complete(graph_run::outcome what) noexcept {
        std::error_code code = no_error;
        if (what == graph_run::outcome::error) code = code_of(run_.get().error());
        if (what == graph_run::outcome::stopped) {
            code = std::make_error_code(std::errc::operation_canceled);
            done_.tell_stopped();
        }
        std::move(done_)(code);
    }

    graph_root* graph_;
    graph_pool pool_;
    Rounds rounds_;
    completion<> done_;
    bool has_begun_ = false;
    manual_lifetime<kept_run> run_;
};

template <class Rounds, class Token>
auto start_run(graph_root& graph, const graph_pool& pool, Rounds rounds, Token&& token)
    -> decltype(auto) {
    if constexpr (std::is_same_v<std::remove_cvref_t<Token>, use_await_t>) {
        return run_sender<Rounds>(graph, pool, std::move(rounds));
    } else {
        return completion_token_transform<void(std::error_code)>(
            static_cast<Token&&>(token), run_initiation<Rounds>(graph, pool, std::move(rounds)));
    }
}

}  // namespace coppice::internal
