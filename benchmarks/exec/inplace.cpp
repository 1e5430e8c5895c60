// when_all as the draft specifies it, reduced to what ten children without values need: the same
// protocol and the same operations on an inplace_stop_source.
#include "cancellable.hpp"
#include "rivals.hpp"

#include "../harness.hpp"

#include <coppice/base/internal/atomic.hpp>
#include <coppice/base/lifetime.hpp>
#include <coppice/stop/inplace.hpp>

namespace bench_exec {

namespace {

class all_of_ten {
public:
    explicit all_of_ten(counting_receiver rcvr) noexcept : rcvr_(rcvr) {
        for (auto& child : children_) {
            child.construct_with(
                [this] { return ex::connect(cancellable(), child_receiver(*this)); });
        }
    }
    all_of_ten(all_of_ten&&) = delete;
    ~all_of_ten() {
        for (auto& child : children_) child.destroy();
    }
    void start() noexcept {
        on_stop_.engage(coppice::get_stop_token(ex::get_env(rcvr_)),
                        ex::internal::request_stop_of(source_));
        for (auto& child : children_) ex::start(child.get());
    }

private:
    class child_receiver {
    public:
        using receiver_concept = ex::receiver_tag;
        explicit child_receiver(all_of_ten& op) noexcept : op_(&op) {}
        void set_value() && noexcept { op_->arrive(); }
        void set_stopped() && noexcept {
            bool expected = false;
            // relaxed: as in when_all
            if (op_->stopped_.compare_exchange_strong(expected, true, coppice::internal::relaxed,
                                                      coppice::internal::relaxed)) {
                op_->source_.request_stop();
            }
            op_->arrive();
        }
        ex::prop<coppice::get_stop_token_t, coppice::inplace_stop_token> get_env() const noexcept {
            return {coppice::get_stop_token, op_->source_.get_token()};
        }

    private:
        all_of_ten* op_;
    };
    void arrive() noexcept {
        if (pending_.fetch_sub(1, coppice::internal::acq_rel) != 1) return;
        on_stop_.reset();
        ex::set_stopped(std::move(rcvr_));
    }

    counting_receiver rcvr_;
    coppice::inplace_stop_source source_;
    coppice::internal::atomic<std::size_t> pending_{10};
    coppice::internal::atomic<bool> stopped_{false};
    ex::internal::stop_registration<coppice::inplace_stop_token,
                                    ex::internal::request_stop_of<coppice::inplace_stop_source>>
        on_stop_;
    coppice::manual_lifetime<ex::connect_result_t<cancellable, child_receiver>> children_[10];
};

}  // namespace

std::uint64_t stop_10_inplace(std::size_t size) {
    std::uint64_t stops = 0;
    for (std::size_t i = 0; i != size; ++i) {
        coppice::inplace_stop_source source;
        all_of_ten op(counting_receiver(stops, source));
        op.start();
        source.request_stop();
    }
    return bench::hash().add(stops).value();
}

std::size_t stop_10_inplace_bytes() {
    return sizeof(all_of_ten);
}

}  // namespace bench_exec
