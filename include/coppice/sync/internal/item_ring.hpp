// item_ring, single_item: where a channel keeps items until they are received.
#pragma once
// Both are guarded by the queue_lock of their channel. They move items, so a move must not throw.

#include <coppice/base/internal/check.hpp>
#include <coppice/base/lifetime.hpp>

#include <cstddef>
#include <memory>
#include <new>
#include <optional>
#include <utility>

namespace coppice::internal {

// A ring of `capacity` slots, allocated once. Errors of the constructor: std::bad_alloc.
template <class T>
class item_ring : immovable {
public:
    explicit item_ring(std::size_t capacity)
        : slots_(capacity == 0 ? nullptr : new manual_lifetime<T>[capacity]), capacity_(capacity) {}
    ~item_ring() {
        while (!empty()) drop_front();
    }

    std::size_t capacity() const noexcept { return capacity_; }
    std::size_t size() const noexcept { return size_; }
    bool empty() const noexcept { return size_ == 0; }
    bool full() const noexcept { return size_ == capacity_; }
    // Moves `item` behind the newest one. Precondition: not full().
    void push(T& item) noexcept {
        slots_[back_].construct(std::move(item));
        back_ = after(back_);
        ++size_;
    }
    // Moves the oldest item into `place`, which is empty. Precondition: not empty().
    void pop(std::optional<T>& place) noexcept {
        place.emplace(std::move(slots_[front_].get()));
        drop_front();
    }

private:
    std::size_t after(std::size_t i) const noexcept { return i + 1 == capacity_ ? 0 : i + 1; }
    void drop_front() noexcept {
        slots_[front_].destroy();
        front_ = after(front_);
        --size_;
    }

    const std::unique_ptr<manual_lifetime<T>[]> slots_;
    const std::size_t capacity_;
    std::size_t front_ = 0;  // the oldest item
    std::size_t back_ = 0;   // the slot for the next item
    std::size_t size_ = 0;
};

// A slot for one item, inside the object.
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
