// Intrusive containers: the hook lives in the object, so linking never allocates.
#pragma once
// All three are owned by one thread or guarded by the caller. An object must outlive its stay in a
// container, and may be in one container per hook. Costs are O(1) unless a line says otherwise.

#include <coppice/base/check.hpp>
#include <coppice/base/lifetime.hpp>

#include <cstddef>
#include <utility>

namespace coppice {

// First in, first out, singly linked by the member Next.
template <class T, T* T::*Next>
class intrusive_queue {
public:
    intrusive_queue() noexcept = default;
    intrusive_queue(intrusive_queue&& other) noexcept
        : head_(std::exchange(other.head_, nullptr)), tail_(std::exchange(other.tail_, nullptr)) {}
    intrusive_queue& operator=(intrusive_queue&&) = delete;

    bool empty() const noexcept { return head_ == nullptr; }
    void push_back(T* item) noexcept {
        item->*Next = nullptr;
        if (tail_ != nullptr) {
            tail_->*Next = item;
        } else {
            head_ = item;
        }
        tail_ = item;
    }
    void push_front(T* item) noexcept {
        item->*Next = head_;
        head_ = item;
        if (tail_ == nullptr) tail_ = item;
    }
    // The oldest item, or nullptr.
    T* pop_front() noexcept {
        T* const item = head_;
        if (item != nullptr) {
            head_ = item->*Next;
            if (head_ == nullptr) tail_ = nullptr;
        }
        return item;
    }
    // Moves all of `other` behind what is here.
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

// The hook of an intrusive_list: derive from it, with a tag for each list an object may be in.
template <class Tag = void>
class list_hook : immovable {
public:
    bool linked() const noexcept { return next_ != nullptr; }

private:
    template <class T, class U>
    friend class intrusive_list;
    list_hook* next_ = nullptr;  // nullptr: in no list
    list_hook* previous_ = nullptr;
};

// Doubly linked and circular around its own sentinel; any member leaves in O(1).
// Destroying a list that is not empty is a mistake and stops the process.
template <class T, class Tag = void>
class intrusive_list : immovable {
public:
    intrusive_list() noexcept { sentinel_.next_ = sentinel_.previous_ = &sentinel_; }
    ~intrusive_list() {
        COPPICE_CHECK(empty(), "an intrusive_list was destroyed with members in it");
        sentinel_.next_ = nullptr;
    }

    bool empty() const noexcept { return sentinel_.next_ == &sentinel_; }
    void push_back(T& item) noexcept { link(item, *sentinel_.previous_, sentinel_); }
    void push_front(T& item) noexcept { link(item, sentinel_, *sentinel_.next_); }
    T* front() noexcept { return empty() ? nullptr : object(sentinel_.next_); }
    T* pop_front() noexcept {
        T* const item = front();
        if (item != nullptr) erase(*item);
        return item;
    }
    static void erase(T& item) noexcept {
        hook& h = item;
        COPPICE_CHECK(h.linked(), "erased from a list it is not in");
        h.previous_->next_ = h.next_;
        h.next_->previous_ = h.previous_;
        h.next_ = h.previous_ = nullptr;
    }
    // Moves every member of `other` behind what is here.
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
    // Visits each member; the visited one may leave the list or be destroyed. O(size).
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
        COPPICE_CHECK(!h.linked(), "linked into a second list");
        h.previous_ = &before;
        h.next_ = &after;
        before.next_ = &h;
        after.previous_ = &h;
    }

    hook sentinel_;
};

}  // namespace coppice
