// Intrusive containers: the hook is in the object, so linking never allocates.
#pragma once
// One thread owns a container, or the user guards it. An object must outlive its membership, and
// can be in one container per hook. All operations are O(1) unless noted.

#include <coppice/base/internal/check.hpp>
#include <coppice/base/lifetime.hpp>

#include <cstddef>
#include <utility>

namespace coppice {

// A first-in, first-out queue, singly linked through the member Next.
template <class T, T* T::* Next>
class intrusive_queue {
public:
    intrusive_queue() noexcept = default;
    intrusive_queue(intrusive_queue&& other) noexcept
        : head_(std::exchange(other.head_, nullptr)), tail_(std::exchange(other.tail_, nullptr)) {}
    intrusive_queue& operator=(intrusive_queue&&) = delete;

    // Returns true if there is no item.
    bool empty() const noexcept { return head_ == nullptr; }

    // Links `item`, which must be in no queue, behind the newest item.
    void push_back(T* item) noexcept {
        item->*Next = nullptr;
        if (tail_ != nullptr) {
            tail_->*Next = item;
        } else {
            head_ = item;
        }
        tail_ = item;
    }
    // Links `item`, which must be in no queue, before the oldest item.
    void push_front(T* item) noexcept {
        item->*Next = head_;
        head_ = item;
        if (tail_ == nullptr) tail_ = item;
    }
    // Takes the oldest item, or returns nullptr.
    T* pop_front() noexcept {
        T* const item = head_;
        if (item != nullptr) {
            head_ = item->*Next;
            if (head_ == nullptr) tail_ = nullptr;
        }
        return item;
    }
    // Moves all items of `other` behind the items of this queue.
    void append(intrusive_queue&& other) noexcept {
        if (other.empty()) return;
        if (tail_ != nullptr) {
            tail_->*Next = other.head_;
        } else {
            head_ = other.head_;
        }
        tail_ = other.tail_;
        other.head_ = other.tail_ = nullptr;
    }

private:
    T* head_ = nullptr;
    T* tail_ = nullptr;
};

// The hook of an intrusive_list. Derive from it, with one tag for each list that an object may be
// in.
template <class Tag = void>
class list_hook : immovable {
public:
    constexpr list_hook() noexcept = default;
    // Returns true if the object is in the list of this hook.
    bool linked() const noexcept { return next_ != nullptr; }

private:
    template <class T, class U>
    friend class intrusive_list;
    list_hook* next_ = nullptr;  // nullptr: in no list
    list_hook* previous_ = nullptr;
};

// A doubly linked list, circular around its own sentinel; any member can leave in O(1). Misuse:
// destroying a list that is not empty, linking a linked object, or erasing one that is not linked
// stops the process.
template <class T, class Tag = void>
class intrusive_list : immovable {
public:
    // Makes a list without members.
    constexpr intrusive_list() noexcept { sentinel_.next_ = sentinel_.previous_ = &sentinel_; }
    constexpr ~intrusive_list() {
        COPPICE_CHECK(empty(),
                      "an intrusive_list was destroyed with members in it: erase them first");
        sentinel_.next_ = nullptr;
    }

    // Returns true if the list has no member.
    constexpr bool empty() const noexcept { return sentinel_.next_ == &sentinel_; }
    // Link `item` behind the last member; before the first one.
    void push_back(T& item) noexcept { link(item, *sentinel_.previous_, sentinel_); }
    void push_front(T& item) noexcept { link(item, sentinel_, *sentinel_.next_); }
    // Both return the first member, or nullptr; pop_front() also removes it.
    T* front() noexcept { return empty() ? nullptr : object(sentinel_.next_); }
    T* pop_front() noexcept {
        T* const item = front();
        if (item != nullptr) erase(*item);
        return item;
    }
    // Removes `item` from the list that it is in.
    static void erase(T& item) noexcept {
        hook& h = item;
        COPPICE_CHECK(h.linked(), "erased from a list it is not in");
        h.previous_->next_ = h.next_;
        h.next_->previous_ = h.previous_;
        h.next_ = h.previous_ = nullptr;
    }
    // Moves all members of `other` behind the members of this list.
    void append(intrusive_list& other) noexcept {
        if (other.empty()) return;
        hook* const first = other.sentinel_.next_;
        hook* const last = other.sentinel_.previous_;
        first->previous_ = sentinel_.previous_;
        sentinel_.previous_->next_ = first;
        last->next_ = &sentinel_;
        sentinel_.previous_ = last;
        other.sentinel_.next_ = other.sentinel_.previous_ = &other.sentinel_;
    }
    // Visits each member. The visited member may leave the list or be destroyed. Cost: O(size).
    template <class Visit>
    void for_each(Visit visit) {
        for (hook* h = sentinel_.next_; h != &sentinel_;) {
            hook* const next = h->next_;
            visit(*object(h));
            h = next;
        }
    }

private:
    using hook = list_hook<Tag>;
    static T* object(hook* h) noexcept { return static_cast<T*>(h); }
    static void link(hook& h, hook& before, hook& after) noexcept {
        COPPICE_CHECK(!h.linked(), "linked into a second list: erase it from the first one");
        h.previous_ = &before;
        h.next_ = &after;
        before.next_ = &h;
        after.previous_ = &h;
    }

    hook sentinel_;
};

}  // namespace coppice
