// item_blocks: the items of an unbounded channel, in a list of blocks that are reused.
#pragma once
// Guarded by the queue_lock of its channel, inside which no memory is allocated: if full() is true,
// the sender leaves the lock, allocates a block, and comes back with it. A block whose items are
// received becomes a spare one.

#include <coppice/base/lifetime.hpp>

#include <cstddef>
#include <memory>
#include <optional>
#include <utility>

namespace coppice::internal {

template <class T>
class item_blocks : immovable {
    static constexpr std::size_t block_bytes = 2048;

public:
    static constexpr std::size_t block_items = sizeof(T) * 8 > block_bytes
                                                   ? 8
                                                   : block_bytes / sizeof(T);
    struct block {
        block* next = nullptr;
        manual_lifetime<T> slots[block_items];
    };

    item_blocks() noexcept = default;
    ~item_blocks() {
        while (!empty()) drop_front();
        delete_all(back_);  // the front is the back now
        delete_all(spare_);
    }

    static constexpr std::size_t capacity() noexcept { return ~std::size_t{0} / 16; }
    std::size_t size() const noexcept { return size_; }
    bool empty() const noexcept { return size_ == 0; }
    // Returns true if there is no room for the next item: add a block first.
    bool full() const noexcept { return spare_ == nullptr && back_is_full(); }
    // Moves `item` behind the newest one. Precondition: not full().
    void push(T& item) noexcept {
        if (back_is_full()) link_spare();
        back_->slots[back_index_++].construct(std::move(item));
        ++size_;
    }
    // Moves the oldest item into `place`, which is empty. Precondition: not empty().
    void pop(std::optional<T>& place) noexcept {
        place.emplace(std::move(front_->slots[front_index_].get()));
        drop_front();
    }
    // Adds a block, so that full() is false.
    void add(std::unique_ptr<block> added) noexcept { keep(*added.release()); }
    // Returns the blocks without items, for delete_all() outside the lock.
    block* take_spare() noexcept {
        if (size_ == 0 && back_ != nullptr) {
            keep(*back_);
            front_ = back_ = nullptr;  // both indices are 0
        }
        return std::exchange(spare_, nullptr);
    }
    static void delete_all(block* list) noexcept {
        while (list != nullptr) delete std::exchange(list, list->next);
    }

private:
    bool back_is_full() const noexcept { return back_ == nullptr || back_index_ == block_items; }
    void keep(block& b) noexcept {
        b.next = spare_;
        spare_ = &b;
    }
    void link_spare() noexcept {
        block* const b = spare_;
        spare_ = b->next;
        b->next = nullptr;
        if (back_ == nullptr) {
            front_ = b;
        } else {
            back_->next = b;
        }
        back_ = b;
        back_index_ = 0;
    }
    void drop_front() noexcept {
        front_->slots[front_index_++].destroy();
        --size_;
        if (size_ == 0) {
            front_index_ = back_index_ = 0;  // the one block is used from its start again
        } else if (front_index_ == block_items) {
            block* const drained = front_;
            front_ = drained->next;
            front_index_ = 0;
            keep(*drained);
        }
    }

    block* front_ = nullptr;  // the block of the oldest item
    block* back_ = nullptr;   // the block of the next item
    block* spare_ = nullptr;
    std::size_t front_index_ = 0;
    std::size_t back_index_ = 0;
    std::size_t size_ = 0;
};

}  // namespace coppice::internal
