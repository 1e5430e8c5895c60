// slot_row: the slots and further callbacks of a source in order; for single and finite sources.
#pragma once
// way_back.hpp has the protocol in which a row takes part, and says what each function must do.

#include <coppice/stop/internal/further.hpp>
#include <coppice/stop/internal/running.hpp>
#include <coppice/stop/internal/slot.hpp>
#include <coppice/stop/internal/way_back.hpp>

#include <cstddef>

namespace coppice::internal {

// The slots of a source, and its further callbacks, as the Row of way_back.hpp. Source has N slots:
// slot(i).
template <class Source, std::size_t N>
class slot_row {
public:
    // `further` is nullptr if the source is not tolerant.
    slot_row(const Source& source, further_callbacks* further) noexcept
        : source_(&source), further_(further) {}
    std::size_t size() const noexcept { return N + (further_ != nullptr); }
    static std::size_t after(std::size_t i) noexcept { return i < N ? i + 1 : N; }
    [[gnu::always_inline]] bool pass_on(std::size_t k, std::size_t i,
                                        running_request& request) noexcept {
        for (; k < N; ++k) {
            if (source_->slot(k).watch()) return true;
        }
        further_callbacks* const further = request.further();
        if (further == nullptr) return false;
        settle(i);  // the chain knows its request
        return further->watch(request);
    }
    running_request* watcher(std::size_t k, std::size_t& i) const noexcept {
        running_request* request = nullptr;
        for (i = k; request == nullptr;) request = source_->slot(--i).watcher();
        return request;
    }
    void leave(std::size_t k) noexcept { source_->slot(k).leave(); }
    void wait_for_farewell(std::size_t k) noexcept { source_->slot(k).wait_for_farewell(); }
    met meet(std::size_t k, slot_callback*& callback) noexcept {
        return k == N ? further_->meet(callback) : source_->slot(k).meet(callback);
    }
    void say_farewell(std::size_t k) noexcept {
        if (k == N) {
            further_->say_farewell();
        } else {
            source_->slot(k).say_farewell();
        }
    }
    void settle(std::size_t i, running_request& request) noexcept {
        source_->slot(i).settle(request);
    }
    void settle(std::size_t i) noexcept {
        if (i != N) source_->slot(i).settle();
    }

    [[gnu::always_inline]] static void execute(claimed_callback<slot_callback> next) noexcept {
        next.callback->execute();
    }
    [[gnu::always_inline]] claimed_callback<slot_callback> claim_from(std::size_t i) noexcept {
        for (; i != N; ++i) {
            slot_callback* const callback = source_->slot(i).claim();
            if (callback != nullptr) return {callback, i};
        }
        if (further_ == nullptr) return {};
        return {further_->claim(), i};
    }
    [[gnu::always_inline]] void finish(claimed_callback<slot_callback> former) noexcept {
        if (further_ != nullptr && former.i == N) {
            further_->finish(*former.callback);
        } else {
            source_->slot(former.i).finish();
        }
    }

private:
    const Source* source_;
    further_callbacks* further_;
};

// Ends the registration of a callback in slot i that was claimed and has not returned. Blocks:
// until it returns, unless this runs inside it.
template <class Row>
[[gnu::noinline]] void end_running(Row row, std::size_t i, callback_slot& slot,
                                   slot_callback& callback) noexcept {
    running_request* const request = running_request::forget_callback(&callback);
    if (request == nullptr) {
        slot.wait_done();
    } else {
        coppice::internal::hand_over(row, i, *request);
    }
}

// Ends the registration of a callback in slot i after clear() has failed, or while it runs. Blocks:
// while the callback runs on another thread.
template <class Row>
[[gnu::noinline]] void end_late(Row row, std::size_t i, callback_slot& slot,
                                slot_callback& callback) noexcept {
    const callback_slot::ending due = slot.end_late();
    if (due == callback_slot::ending::nothing) {
        slot.settle();
    } else if (due == callback_slot::ending::leave_watched) {
        coppice::internal::leave_watched(row, i);
    } else {
        coppice::internal::end_running(row, i, slot, callback);
    }
}

}  // namespace coppice::internal
