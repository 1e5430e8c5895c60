// mailbox: hands operations from other threads to a loop, and wakes the loop only if it sleeps.
#pragma once
// A stack of operations. Any thread pushes; the loop takes the whole stack. One word holds the
// state:
//
//   0            empty, the loop is awake
//   asleep (1)   empty, the loop sleeps or is about to
//   a pointer    the operation pushed last, linked to those pushed before it
//
//   push     any word -> pointer; the push that replaces `asleep` must wake the loop
//   sleep    0 -> asleep, only by the loop; refused if an operation has been pushed
//   take     any word -> 0, only by the loop
//
// No wake-up is lost, because sleep() and push() change the same word. Either sleep() comes first,
// and the push that follows sees `asleep`; or the push comes first, and sleep() is refused. Only
// the push that finds `asleep` wakes the loop, so a burst of pushes costs one system call.
// Model: tests/model/mailbox_model.cpp.

#include <coppice/base/internal/atomic.hpp>
#include <coppice/base/internal/namespaces.hpp>
#include <coppice/base/lifetime.hpp>

#include <cstdint>

namespace coppice::io::internal {

// T has a member `T* next`. Threads: push() by any; take() and sleep() by the loop. Cost: push() is
// one compare-exchange; take() is one load when empty, else one exchange. No allocation.
template <class T>
class mailbox : immovable {
public:
    enum class [[nodiscard]] pushed { quietly, wake_the_loop };

    pushed push(T& item) noexcept {
        std::uintptr_t head = head_.load(relaxed);
        do {
            item.next = head == asleep ? nullptr : to_item(head);
            // edge mailbox.hand_over (release): the operation and its link are written
        } while (!head_.compare_exchange_weak(head, to_word(&item), release, relaxed));
        return head == asleep ? pushed::wake_the_loop : pushed::quietly;
    }

    // Returns what has been pushed, oldest first, linked by `next`; nullptr if nothing was.
    // Afterwards the word says that the loop is awake.
    T* take() noexcept {
        // relaxed: a push that is missed here is taken in the next turn
        if (head_.load(relaxed) == 0) return nullptr;
        // edge mailbox.hand_over (acquire): sees the operations
        const std::uintptr_t head = head_.exchange(0, acquire);
        if (head == asleep) return nullptr;
        T* oldest_first = nullptr;
        for (T* item = to_item(head); item != nullptr;) {
            T* const older = item->next;
            item->next = oldest_first;
            oldest_first = item;
            item = older;
        }
        return oldest_first;
    }

    // Returns true if something was pushed since the last take(). A result of false may be stale.
    bool has_mail() const noexcept { return head_.load(relaxed) > asleep; }

    // Returns true if the loop may sleep; the next push will then wake it. Returns false if
    // something was pushed.
    [[nodiscard]] bool sleep() noexcept {
        std::uintptr_t expected = 0;
        if (planted("mailbox.sleep_unasked")) {
            head_.store(asleep, relaxed);
            return true;
        }
        // Relaxed: success publishes nothing, and failure leads to take().
        return head_.compare_exchange_strong(expected, asleep, relaxed, relaxed);
    }

private:
    static constexpr std::uintptr_t asleep = 1;
    static T* to_item(std::uintptr_t word) noexcept { return reinterpret_cast<T*>(word); }
    static std::uintptr_t to_word(T* item) noexcept {
        return reinterpret_cast<std::uintptr_t>(item);
    }

    atomic<std::uintptr_t> head_{0};  // see the table above
};

}  // namespace coppice::io::internal
