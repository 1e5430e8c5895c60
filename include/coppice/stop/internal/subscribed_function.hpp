// subscribed_function: how a node of a stop_state keeps and runs the function of a subscription.
#pragma once

#include <coppice/stop/internal/list.hpp>
#include <coppice/stop/internal/running.hpp>
#include <coppice/stop/internal/stripe.hpp>

#include <exception>
#include <memory>
#include <new>
#include <type_traits>
#include <utility>

namespace coppice::internal {

// Receives the exceptions of subscribed functions during one request.
class exception_sink {
public:
    virtual void take(std::exception_ptr thrown) noexcept = 0;

protected:
    ~exception_sink() = default;
};

template <class OnException>
class exception_sink_of final : public exception_sink {
public:
    explicit exception_sink_of(OnException& on_exception) noexcept : on_exception_(on_exception) {}
    void take(std::exception_ptr thrown) noexcept override { on_exception_(std::move(thrown)); }

private:
    OnException& on_exception_;
};

// A function that lies in its node, or behind a pointer in the node.
template <class Function>
struct subscribed_function {
    static constexpr bool inside =
        sizeof(Function) <= pooled_stop_node::room && alignof(Function) <= alignof(void*);
    static constexpr bool trivial = inside && std::is_trivially_copyable_v<Function>;

    static Function& in(stop_node* node) noexcept {
        void* const storage = static_cast<pooled_stop_node*>(node)->storage;
        if constexpr (inside) {
            return *std::launder(static_cast<Function*>(storage));
        } else {
            return **std::launder(static_cast<Function**>(storage));
        }
    }
    template <class Init>
    static void construct(pooled_stop_node& node, Init&& init) {
        if constexpr (inside) {
            ::new (static_cast<void*>(node.storage)) Function(std::forward<Init>(init));
        } else {
            ::new (static_cast<void*>(node.storage))
                Function*(new Function(std::forward<Init>(init)));
        }
        node.execute = &run;
        node.destroy = trivial ? nullptr : &destroy;
    }
    static void run(stop_node* node) noexcept {
        try {
            in(node)();
        } catch (...) {
            exception_sink* const sink = running_request::exceptions();
            if (sink == nullptr) std::terminate();
            sink->take(std::current_exception());
        }
        if constexpr (!trivial) destroy(static_cast<pooled_stop_node*>(node));
    }
    static void destroy(pooled_stop_node* node) noexcept {
        if constexpr (inside) {
            std::destroy_at(&in(node));
        } else {
            delete &in(node);
        }
    }
};

}  // namespace coppice::internal
