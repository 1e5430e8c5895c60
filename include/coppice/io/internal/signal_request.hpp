// signal_request: one wait of a signal_set.
#pragma once

#include <coppice/base/internal/check.hpp>
#include <coppice/io/context.hpp>
#include <coppice/io/internal/request.hpp>
#include <coppice/io/internal/system_calls.hpp>

#include <cerrno>
#include <cstddef>
#include <cstdint>

namespace coppice::io::internal {

// Waits for a signal. The value is its number.
class signal_request : public descriptor_request<> {
public:
    using value_type = int;
    static constexpr const char* name = "wait for a signal";
    struct arguments {
        arguments(const descriptor_reference& f, received_signals* s) noexcept
            : file(f), signals(s) {}
        descriptor_reference file;
        received_signals* signals;
    };
    explicit signal_request(const arguments& a) noexcept
        : descriptor_request<>(a.file, opcode::read), signals_(a.signals) {
        data = reinterpret_cast<std::byte*>(&count_);
        size = sizeof count_;
    }
    int take() const noexcept { return signal_; }

protected:
    ~signal_request() = default;

private:
    bool submit() noexcept final {
        COPPICE_CHECK(
            !is_second(),
            "two waits at once on one io::signal_set: await the first one, or use a set for each");
        return descriptor_request<>::submit();
    }
    // A request that was stopped leaves the signal to the next request.
    int judge(int returned) noexcept final {
        if (returned < 0) return returned;
        if (stop_came()) {
            signals_->keep();
            return -ECANCELED;
        }
        signal_ = signals_->take();
        return signal_ == 0 ? -EAGAIN : 0;
    }

    received_signals* signals_;
    std::uint64_t count_ = 0;
    int signal_ = 0;
};

}  // namespace coppice::io::internal
