// contract_slot: one cache line that holds the life and the callables of a contract; for groups.
#pragma once
// The callables of a contract lie together in one body: in the slot if the body fits into 40 bytes,
// otherwise in one allocation. Empty callables take no space. A body never moves, so callables need
// not be movable once they are in place.
//
// Threads: construct() by the creator, in a vacant slot; everything else by the thread that has
// claimed the contract.

#include <coppice/base/lifetime.hpp>
#include <coppice/contract/internal/life.hpp>
#include <coppice/contract/work_contract_token.hpp>
#include <coppice/exec/internal/invoke.hpp>
#include <coppice/signal/internal/directory.hpp>

#include <concepts>
#include <cstddef>
#include <exception>
#include <new>
#include <type_traits>
#include <utility>

namespace coppice::internal {

class contract_watcher;

// Take the place of the release callable and the exception handler in contracts without them.
struct no_release {
    void operator()() const noexcept {}
};
struct no_handler {};

template <class Work, class Release, class OnException>
class contract_body {
public:
    template <class W, class R, class E>
    contract_body(W&& work, R&& release, E&& on_exception)
        : work_(std::forward<W>(work)),
          release_(std::forward<R>(release)),
          on_exception_(std::forward<E>(on_exception)) {}

    void run(work_contract_token& token) {
        if constexpr (std::invocable<Work&, work_contract_token&>) {
            guarded([this, &token] { execution::internal::invoke(work_, token); });
        } else {
            guarded([this] { work_(); });
        }
    }
    void release() {
        guarded([this] { release_(); });
    }

private:
    template <class Call>
    void guarded(Call call) {
        if constexpr (std::is_same_v<OnException, no_handler>) {
            call();
        } else {
            try {
                call();
            } catch (...) {
                execution::internal::invoke(on_exception_, std::current_exception());
            }
        }
    }

    [[no_unique_address]] Work work_;
    [[no_unique_address]] Release release_;
    [[no_unique_address]] OnException on_exception_;
};

class alignas(line_size) contract_slot : immovable {
public:
    static constexpr std::size_t inline_size = 40;

    template <class Body>
    static constexpr bool is_inline =
        sizeof(Body) <= inline_size && alignof(Body) <= alignof(void*);

    // Errors: what constructing or allocating the body throws; the slot is then unchanged.
    template <class Body, class... Args>
    void construct(Args&&... args) {
        if constexpr (is_inline<Body>) {
            ::new (static_cast<void*>(storage_)) Body(std::forward<Args>(args)...);
        } else {
            ::new (static_cast<void*>(storage_)) Body*(new Body(std::forward<Args>(args)...));
        }
        entry_ = &enter<Body>;
    }
    void run(work_contract_token& token) { entry_(storage_, verb::run_work, &token); }
    void release() { entry_(storage_, verb::run_release, nullptr); }
    void destroy() noexcept { entry_(storage_, verb::destroy, nullptr); }

    life_word life;
    contract_watcher* first_watcher = nullptr;  // guarded by the group's watchers_mutex_

private:
    enum class verb : unsigned char { run_work, run_release, destroy };

    template <class Body>
    static void enter(std::byte* storage, verb what, work_contract_token* token) {
        Body* body;
        if constexpr (is_inline<Body>) {
            body = std::launder(reinterpret_cast<Body*>(storage));
        } else {
            body = *std::launder(reinterpret_cast<Body**>(storage));
        }
        switch (what) {
            case verb::run_work:
                return body->run(*token);
            case verb::run_release:
                return body->release();
            case verb::destroy:
                if constexpr (is_inline<Body>) {
                    body->~Body();
                } else {
                    delete body;
                }
        }
    }

    void (*entry_)(std::byte*, verb, work_contract_token*) = nullptr;
    alignas(void*) std::byte storage_[inline_size];
};

static_assert(sizeof(contract_slot) == line_size);

}  // namespace coppice::internal
