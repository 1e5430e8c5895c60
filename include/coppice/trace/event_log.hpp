// event_log: what one thread did and when, in a bounded buffer; for the traces of pools.
#pragma once
// The writer appends events until the buffer is full; after that it drops them and counts the
// drops. It never overwrites an event, so any thread may read a published event at any time. A
// begin is recorded only if the buffer has room for its end too. Recorded begins and ends therefore
// balance, except for what is still running.
//
//   size_      the number of events written; changed by the writer only
//
// Model: tests/model/event_log_model.cpp.

#include <coppice/base/internal/atomic.hpp>
#include <coppice/base/lifetime.hpp>
#include <coppice/trace/counter.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <set>
#include <string>
#include <string_view>

namespace coppice::trace {

// What an event marks. The values are the letters of the trace event format.
enum class event_kind : char { begin = 'B', end = 'E', instant = 'i' };

// An event as a reader gets it back.
struct event {
    std::int64_t time_ns = 0;  // by the writer's clock
    const char* name = "";     // a string literal
    std::uint64_t value = 0;   // meaning depends on the name; no_value if there is none
    event_kind kind = event_kind::instant;  // what the event marks
    // The value of an event that has none.
    static constexpr std::uint64_t no_value = ~std::uint64_t{0};
};

// Threads: begin(), end(), and instant() by one writer; everything else by any thread.
// Blocks: never.
// Cost: one store of an event and one of the size; one comparison if the capacity is 0.
class event_log : immovable {
public:
    // Allocates the buffer; later, only keep() allocates. A log of capacity 0 records nothing and
    // counts no drops.
    explicit event_log(std::size_t capacity)
        : events_(capacity == 0 ? nullptr : new record[capacity]), capacity_(capacity) {}

    // Returns true if the capacity is not 0. Check it before reading a clock for an event.
    bool enabled() const noexcept { return capacity_ != 0; }

    // Records that something begins. Returns true if there was room; pass the result to the
    // matching end(). `name` must be a string literal, or outlive the log.
    [[nodiscard]] bool begin(std::int64_t time_ns, const char* name,
                             std::uint64_t value = event::no_value) noexcept {
        if (!has_room(2)) return false;
        ++open_;
        append({time_ns, name, value, event_kind::begin});
        return true;
    }
    // Records the end of the newest begin that is still open. `begun` is what begin() returned: if
    // false, there is no begin to end, and nothing is recorded.
    void end(bool begun, std::int64_t time_ns) noexcept {
        if (!begun) return;
        --open_;
        append({time_ns, "", event::no_value, event_kind::end});
    }
    // Returns a copy of `name` that lives as long as the log, for a begin whose name is no literal.
    // Returns an empty name if there is no memory for it, or no room for the begin: a full log
    // keeps no more names. Called by the writer. Cost: O(log names); an allocation for a new name.
    const char* keep(std::string_view name) noexcept {
        // Relaxed: only the writer changes the word.
        if (size_.load(internal::relaxed) + open_ + 2 > capacity_) return "";
        try {
            const auto kept = names_.find(name);
            return kept != names_.end() ? kept->c_str() : names_.emplace(name).first->c_str();
        } catch (const std::bad_alloc&) {
            return "";
        }
    }
    // Records something without duration, if there is room. `name`: as for begin().
    void instant(std::int64_t time_ns, const char* name,
                 std::uint64_t value = event::no_value) noexcept {
        if (has_room(1)) append({time_ns, name, value, event_kind::instant});
    }

    // Returns the number of events that can be read. Later events are appended behind them.
    std::size_t size() const noexcept {
        // edge trace.publish (acquire): the events below are written
        return size_.load(internal::acquire);
    }
    // Returns event `i`, which must be below a size() that this thread has seen.
    event at(std::size_t i) const noexcept {
        const record& r = events_[i];
        return {r.time_ns.read(), r.name.read(), r.value.read(), event_kind{r.kind.read()}};
    }
    // Returns the number of events for which there was no room.
    std::uint64_t dropped() const noexcept { return dropped_.read(); }

private:
    // Written by the writer before size_ counts it; read by any thread afterwards.
    struct record {
        internal::plain<std::int64_t> time_ns;
        internal::plain<const char*> name;
        internal::plain<std::uint64_t> value;
        internal::plain<char> kind;
    };
    bool has_room(std::size_t events) noexcept {
        if (!enabled()) return false;
        // Relaxed: only the writer changes the word.
        if (size_.load(internal::relaxed) + open_ + events <= capacity_) return true;
        dropped_.add(events);
        return false;
    }
    void append(const event& e) noexcept {
        // Relaxed: only the writer changes the word.
        const std::size_t size = size_.load(internal::relaxed);
        record& r = events_[size];
        r.time_ns.write(e.time_ns);
        r.name.write(e.name);
        r.value.write(e.value);
        r.kind.write(static_cast<char>(e.kind));
        // edge trace.publish (release): the event is written
        size_.store(size + 1, internal::release);
    }

    const std::unique_ptr<record[]>
        events_;  // written by the writer; below size_, read by any thread
    const std::size_t capacity_;
    std::size_t open_ = 0;                   // begins that have no end yet; used by the writer
    internal::atomic<std::size_t> size_{0};  // written by the writer; read by any thread
    counter dropped_;
    // Used by the writer. Readers see only the characters.
    std::set<std::string, std::less<>> names_;
};

// Returns the log of the pool's worker that this thread is. nullptr: it is no worker, or its pool
// keeps no trace. What is recorded there stands inside the worker's runs.
inline event_log*& this_thread_log() noexcept {
    return internal::thread_slot<event_log, event_log*>();
}

}  // namespace coppice::trace
