// The two forms of a pipeline: a call that blocks, and a sender.
#pragma once

#include <coppice/exec/internal/child_attrs.hpp>
#include <coppice/exec/internal/inplace_token_of.hpp>
#include <coppice/parallel/internal/algorithm.hpp>
#include <coppice/parallel/internal/pipeline_core.hpp>
#include <coppice/parallel/internal/place.hpp>
#include <coppice/pool/fork_join.hpp>

#include <concepts>
#include <exception>
#include <tuple>
#include <type_traits>
#include <utility>

namespace coppice::parallel::internal {

// Starts a pipeline on a scheduler. Derived has began(), failed(error), and stopped().
template <class Derived>
class begin_receiver {
public:
    using receiver_concept = execution::receiver_tag;
    explicit begin_receiver(Derived& self) noexcept : self_(&self) {}
    void set_value() && noexcept { self_->began(); }
    template <class Error>
    void set_error(Error&& error) && noexcept {
        self_->failed(execution::internal::as_exception(static_cast<Error&&>(error)));
    }
    void set_stopped() && noexcept { self_->stopped(); }

private:
    Derived* self_;
};

// The blocking form. Runs on this thread if it is a worker of the place. Otherwise the place's
// scheduler runs the pipeline, while this thread waits.
template <class Sch, class Core>
class blocking_pipeline final : public pipeline_end, immovable {
public:
    explicit blocking_pipeline(const Sch& sch, Core& core) noexcept : sch_(sch), core_(core) {}

    bool run(bool here) {
        if (here) {
            began();
            call_.wait();
        } else {
            auto operation = execution::connect(execution::schedule(sch_),
                                                begin_receiver<blocking_pipeline>(*this));
            execution::start(operation);
            call_.wait();
        }
        if (!error_) error_ = core_.error();
        if (error_) std::rethrow_exception(std::move(error_));
        return !stopped_ && core_.is_complete();
    }
    void began() noexcept { core_.run(token_, *this); }
    void failed(std::exception_ptr error) noexcept {
        error_ = std::move(error);
        call_.finish();
    }
    void stopped() noexcept {
        stopped_ = true;
        call_.finish();
    }
    void ended() noexcept override { call_.finish(); }

private:
    const Sch& sch_;
    Core& core_;
    const inplace_stop_token token_ = fork_join_stop_token();
    blocking_call call_;
    std::exception_ptr error_;
    bool stopped_ = false;
};

// The operation of the sender.
template <class Rcvr, class Sch, class Core>
class pipeline_operation final : public pipeline_end, immovable {
    using token_type = stop_token_of_t<execution::env_of_t<Rcvr>>;

public:
    using operation_state_concept = execution::operation_state_tag;

    template <class Source, class Stages>
    pipeline_operation(const Sch& sch, std::size_t max_in_flight, Source&& source, Stages&& stages,
                       Rcvr&& rcvr)
        : rcvr_(static_cast<Rcvr&&>(rcvr)),
          core_(sch, max_in_flight, static_cast<Source&&>(source), static_cast<Stages&&>(stages)),
          stop_(get_stop_token(execution::get_env(rcvr_))),
          begin_(execution::connect(execution::schedule(sch),
                                    begin_receiver<pipeline_operation>(*this))) {}

    void start() & noexcept {
        stop_.listen(get_stop_token(execution::get_env(rcvr_)));
        execution::start(begin_);
    }
    void began() noexcept { core_.run(stop_.get(), *this); }
    void failed(std::exception_ptr error) noexcept {
        stop_.reset();
        execution::set_error(static_cast<Rcvr&&>(rcvr_), std::move(error));
    }
    void stopped() noexcept {
        stop_.reset();
        execution::set_stopped(static_cast<Rcvr&&>(rcvr_));
    }
    void ended() noexcept override {
        std::exception_ptr error = core_.error();
        if (error) return failed(std::move(error));
        if (!core_.is_complete()) return stopped();
        stop_.reset();
        execution::set_value(static_cast<Rcvr&&>(rcvr_));
    }

private:
    Rcvr rcvr_;
    Core core_;
    execution::internal::inplace_token_of<token_type> stop_;
    execution::connect_result_t<execution::schedule_result_t<Sch>,
                                begin_receiver<pipeline_operation>>
        begin_;
};

template <class Sch, class Source, class... Stages>
class pipeline_sender {
    using child_type = execution::schedule_result_t<Sch>;
    using core_type = pipeline_core<Sch, Source, Stages...>;

public:
    using sender_concept = execution::sender_tag;
    using completion_signatures =
        execution::completion_signatures<execution::set_value_t(),
                                         execution::set_error_t(std::exception_ptr),
                                         execution::set_stopped_t()>;

    pipeline_sender(const Sch& sch, std::size_t max_in_flight, Source source,
                    std::tuple<Stages...> stages)
        : sch_(sch),
          max_in_flight_(max_in_flight),
          source_(static_cast<Source&&>(source)),
          stages_(static_cast<std::tuple<Stages...>&&>(stages)) {}

    template <execution::receiver Rcvr>
    pipeline_operation<Rcvr, Sch, core_type> connect(Rcvr rcvr) && {
        return {sch_, max_in_flight_, static_cast<Source&&>(source_),
                static_cast<std::tuple<Stages...>&&>(stages_), static_cast<Rcvr&&>(rcvr)};
    }
    template <execution::receiver Rcvr>
        requires std::copy_constructible<Source> && (std::copy_constructible<Stages> && ...)
    pipeline_operation<Rcvr, Sch, core_type> connect(Rcvr rcvr) const& {
        return {sch_, max_in_flight_, Source(source_), std::tuple<Stages...>(stages_),
                static_cast<Rcvr&&>(rcvr)};
    }

private:
    Sch sch_;
    std::size_t max_in_flight_;
    Source source_;
    std::tuple<Stages...> stages_;
};

// Returns true if a pipeline of that place can begin on this thread.
template <class Sch>
bool begins_here(const Sch& sch) noexcept {
    return internal::is_worker_of(sch);
}
inline bool begins_here(const nearest_scheduler&) noexcept {
    return !should_move();
}

// The types of the items fit together, and only the last stage returns nothing.
template <class Source, class... Stages>
concept pipeline_parts = sizeof...(Stages) != 0 && (is_stage<Stages> && ...) &&
                         std::invocable<Source&> && requires { typename source_item_t<Source>; };

struct pipeline_function {
    template <place Place, class Source, class... Stages>
        requires pipeline_parts<Source, Stages...>
    bool operator()(Place where, std::size_t max_in_flight, Source source, Stages... stages) const {
        using Sch = std::remove_cvref_t<decltype(where.get_scheduler())>;
        using core_type = pipeline_core<Sch, Source, Stages...>;
        const Sch sch = where.get_scheduler();
        core_type core(sch, max_in_flight, static_cast<Source&&>(source),
                       std::tuple<Stages...>(static_cast<Stages&&>(stages)...));
        return blocking_pipeline<Sch, core_type>(sch, core).run(internal::begins_here(sch));
    }
    template <class Source, class... Stages>
        requires pipeline_parts<Source, Stages...>
    bool operator()(std::size_t max_in_flight, Source source, Stages... stages) const {
        return (*this)(nearest_place(), max_in_flight, static_cast<Source&&>(source),
                       static_cast<Stages&&>(stages)...);
    }
};

struct async_pipeline_function {
    template <place Place, class Source, class... Stages>
        requires pipeline_parts<Source, Stages...>
    [[nodiscard]] auto operator()(Place where, std::size_t max_in_flight, Source source,
                                  Stages... stages) const {
        using Sch = std::remove_cvref_t<decltype(where.get_scheduler())>;
        return pipeline_sender<Sch, Source, Stages...>(
            where.get_scheduler(), max_in_flight, static_cast<Source&&>(source),
            std::tuple<Stages...>(static_cast<Stages&&>(stages)...));
    }
    template <class Source, class... Stages>
        requires pipeline_parts<Source, Stages...>
    [[nodiscard]] auto operator()(std::size_t max_in_flight, Source source,
                                  Stages... stages) const {
        return (*this)(nearest_place(), max_in_flight, static_cast<Source&&>(source),
                       static_cast<Stages&&>(stages)...);
    }
};

}  // namespace coppice::parallel::internal
