// The rival shared source: one lock, one list, one count. .NET returned to this design in 2021.
#pragma once
// A state with a reference count and the list of published_inplace.hpp. A callback holds a
// reference, as the standard describes.

#include "published_inplace.hpp"

#include <coppice/base/internal/atomic.hpp>

#include <cstddef>
#include <utility>

namespace bench_stop::plain_list {

using coppice::internal::acq_rel;
using coppice::internal::atomic;
using coppice::internal::relaxed;

struct state {
    published::source list;
    atomic<std::size_t> owners{1};
    void share() noexcept { owners.fetch_add(1, relaxed); }
    void drop() noexcept {
        if (owners.fetch_sub(1, acq_rel) == 1) delete this;
    }
};

class source {
public:
    source() : state_(new state) {}
    source(const source&) = delete;
    ~source() { state_->drop(); }
    bool request_stop() noexcept { return !state_->list.request_stop(); }
    state* shared() const noexcept { return state_; }

private:
    state* state_;
};

template <class F>
class callback {
public:
    callback(const source& from, F f)
        : state_(share(from.shared())), inner_(state_->list, std::move(f)) {}
    callback(const callback&) = delete;
    // The list entry goes first: members are destroyed in reverse order.
    ~callback() = default;

private:
    struct reference {
        explicit reference(state* s) noexcept : shared(s) {}
        ~reference() { shared->drop(); }
        state* operator->() const noexcept { return shared; }
        state* shared;
    };
    static state* share(state* s) noexcept {
        s->share();
        return s;
    }
    reference state_;
    published::callback<F> inner_;
};

}  // namespace bench_stop::plain_list
