// growing_deque: a Chase-Lev deque that grows; its old buffers are kept, or counted and freed.
#pragma once
// Works as pool/internal/deque.hpp, whose proof for the last item holds here too. When the buffer
// is full, the owner copies its contents into one of twice the size. A thief may still read the old
// one:
//
//   kept_buffers      Every buffer lives as long as the deque. All old buffers together take at
//                     most as much memory as the current one. A thief may read any of them: an
//                     index that can still be stolen holds the same item in all of them.
//   counted_buffers   A thief counts itself in while it reads, in the upper bits of the word that
//                     holds the buffer's address. When the owner replaces the buffer, it adds the
//                     number of thieves that were in to a count in the old buffer. A thief that
//                     leaves afterwards subtracts itself from that count. The thread that brings
//                     the sum to zero frees the buffer (as task_join.hpp).
//
// The thesis compares the two (6.3), and so does benchmarks/pool. Source: Chase and Lev 2005.

#include <coppice/base/internal/atomic.hpp>
#include <coppice/base/lifetime.hpp>
#include <coppice/pool/internal/deque.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <utility>

namespace coppice::internal {

template <class T>
struct deque_buffer : immovable {
    explicit deque_buffer(std::int64_t size) : capacity(size), slots(new atomic<T*>[size]) {}
    atomic<T*>& slot(std::int64_t index) noexcept {
        return slots[static_cast<std::size_t>(index & (capacity - 1))];
    }
    const std::int64_t capacity;                // a power of two
    const std::unique_ptr<atomic<T*>[]> slots;  // written by the owner; read by thieves
    std::unique_ptr<deque_buffer> previous;     // kept_buffers: written and read by the owner
    atomic<std::int32_t> readers{0};  // counted_buffers: thieves in it, less those that have left
};

template <class T>
class kept_buffers : immovable {
    using buffer = deque_buffer<T>;

public:
    explicit kept_buffers(std::int64_t capacity) : current_(new buffer(capacity)) {}
    ~kept_buffers() { delete current_.load(relaxed); }           // relaxed: the owner destroys it
    buffer& mine() noexcept { return *current_.load(relaxed); }  // relaxed: written by the owner
    void replace(std::unique_ptr<buffer> next) noexcept {
        next->previous.reset(current_.load(relaxed));
        // edge deque.grow (release): the items are copied
        current_.store(next.release(), release);
    }
    // Keeps the current buffer alive while a thief reads it.
    class reader : immovable {
    public:
        // edge deque.grow (acquire): the items are copied
        explicit reader(kept_buffers& all) noexcept : buffer_(*all.current_.load(acquire)) {}
        buffer& operator*() noexcept { return buffer_; }

    private:
        buffer& buffer_;
    };

private:
    atomic<buffer*> current_;  // written by the owner; read by thieves
};

template <class T>
class counted_buffers : immovable {
    using buffer = deque_buffer<T>;
    static constexpr std::uint64_t one_reader = std::uint64_t{1} << 48;

public:
    explicit counted_buffers(std::int64_t capacity) : current_(word(new buffer(capacity))) {}
    ~counted_buffers() { delete address(current_.load(relaxed)); }
    buffer& mine() noexcept { return *address(current_.load(relaxed)); }
    void replace(std::unique_ptr<buffer> next) noexcept {
        // edge deque.grow (release): the items are copied
        const std::uint64_t before = current_.exchange(word(next.release()), acq_rel);
        const std::uint64_t readers = planted("deque.ignore_readers") ? 0 : before / one_reader;
        leave(address(before), static_cast<std::int32_t>(readers));
    }
    class reader : immovable {
    public:
        explicit reader(counted_buffers& all) noexcept
            : all_(all),
              // edge deque.grow (acquire): the items are copied
              buffer_(address(all.current_.fetch_add(one_reader, acquire))) {}
        ~reader() {
            std::uint64_t now = all_.current_.load(relaxed);
            while (address(now) == buffer_) {
                // edge deque.left (release): this thief no longer reads the buffer
                if (all_.current_.compare_exchange_weak(now, now - one_reader, release, relaxed)) {
                    return;
                }
            }
            leave(buffer_, -1);
        }
        buffer& operator*() noexcept { return *buffer_; }

    private:
        counted_buffers& all_;
        buffer* const buffer_;
    };

private:
    static std::uint64_t word(buffer* b) noexcept { return reinterpret_cast<std::uintptr_t>(b); }
    static buffer* address(std::uint64_t both) noexcept {
        return reinterpret_cast<buffer*>(both % one_reader);
    }
    // The owner adds the number of thieves that were in; each of them subtracts itself.
    static void leave(buffer* old, std::int32_t readers) noexcept {
        // edge deque.left (acq_rel): no thief reads it any longer, seen by the thread that frees it
        if (old->readers.fetch_add(readers, acq_rel) + readers == 0) delete old;
    }
    atomic<std::uint64_t> current_;  // the buffer's address, and the number of thieves that read it
};

// Threads: the owner calls push() and pop(); any thread calls steal() and looks_empty(). Blocks:
// never, except in the allocator when it grows.
template <class T, template <class> class Buffers, std::int64_t Initial = 64,
          std::int64_t CapacityMax = 1 << 20>
class growing_deque : immovable {
    static_assert((Initial & (Initial - 1)) == 0, "the capacity must be a power of two");

public:
    // Returns false if the deque cannot grow; `item` is then still the caller's.
    [[nodiscard]] bool push(T* item) noexcept {
        const std::int64_t bottom = bottom_.load(relaxed);  // relaxed: the owner's own word
        // edge deque.reuse (acquire): the thief that freed the slot has read it
        const std::int64_t top = top_.load(acquire);
        if (bottom - top >= buffers_.mine().capacity && !grow(top, bottom)) return false;
        buffers_.mine().slot(bottom).store(item, relaxed);  // relaxed: published by the store below
        // edge deque.publish (release): slot and item are written
        bottom_.store(bottom + 1, release);
        return true;
    }
    T* pop() noexcept {
        const std::int64_t bottom = bottom_.load(relaxed) - 1;
        // edge deque.last (seq_cst): the owner announces that it wants the item
        bottom_.store(bottom, seq_cst);
        std::int64_t top = top_.load(seq_cst);  // edge deque.last (seq_cst): and looks for thieves
        if (top > bottom) {
            bottom_.store(bottom + 1, relaxed);  // relaxed: it was empty, so the same value stands
            return nullptr;
        }
        T* item = buffers_.mine().slot(bottom).load(relaxed);  // relaxed: written by the owner
        if (top == bottom) {
            // edge deque.last (seq_cst): owner and thief compete for the last item here
            if (!top_.compare_exchange_strong(top, top + 1, seq_cst, relaxed)) item = nullptr;
            bottom_.store(bottom + 1, relaxed);  // relaxed: says empty, publishes nothing
        }
        return item;
    }
    stolen<T> steal() noexcept {
        // edge deque.last (seq_cst): the thief picks an item
        std::int64_t top = top_.load(seq_cst);
        // edge deque.last (seq_cst), edge deque.publish (acquire): does the owner want it too?
        const std::int64_t bottom = bottom_.load(seq_cst);
        if (top >= bottom) return {steal_outcome::empty, nullptr};
        typename Buffers<T>::reader buffer(buffers_);
        T* const item = (*buffer).slot(top).load(relaxed);  // relaxed: ordered by deque.publish
        // edge deque.reuse (release): the slot has been read and may be written again
        if (!top_.compare_exchange_strong(top, top + 1, seq_cst, relaxed)) {
            return {steal_outcome::lost, nullptr};
        }
        return {steal_outcome::taken, item};
    }
    bool looks_empty() const noexcept { return bottom_.load(relaxed) <= top_.load(relaxed); }

private:
    [[gnu::noinline]] bool grow(std::int64_t top, std::int64_t bottom) noexcept {
        deque_buffer<T>& old = buffers_.mine();
        if (old.capacity * 2 > CapacityMax) return false;
        try {
            auto next = std::make_unique<deque_buffer<T>>(old.capacity * 2);
            for (std::int64_t i = top; i != bottom; ++i) {
                next->slot(i).store(old.slot(i).load(relaxed), relaxed);  // relaxed: deque.grow
            }
            buffers_.replace(std::move(next));
        } catch (const std::bad_alloc&) {
            return false;
        }
        return true;
    }

    alignas(64) atomic<std::int64_t> top_{0};     // moved by the owner and thieves
    alignas(64) atomic<std::int64_t> bottom_{0};  // written by the owner; read by thieves
    alignas(64) Buffers<T> buffers_{Initial};
};

}  // namespace coppice::internal
