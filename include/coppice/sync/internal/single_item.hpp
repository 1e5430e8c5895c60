// single_item: the slot of a oneshot, inside the object.
#pragma once

#include <coppice/base/lifetime.hpp>

#include <cstddef>
#include <optional>
#include <utility>

namespace coppice::internal {

// Guarded by the queue_lock of its channel. Moving an item must not throw.
template <class T>
class single_item : immovable {
public:
    static constexpr std::size_t capacity() noexcept { return 1; }
    std::size_t size() const noexcept { return item_ ? 1 : 0; }
    bool empty() const noexcept { return !item_; }
    bool full() const noexcept { return item_.has_value(); }
    void push(T& item) noexcept { item_.emplace(std::move(item)); }
    void pop(std::optional<T>& place) noexcept {
        place.emplace(std::move(*item_));
        item_.reset();
    }

private:
    std::optional<T> item_;
};

}  // namespace coppice::internal
