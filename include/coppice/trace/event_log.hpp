// event_log: what one thread did and when, in a bounded buffer; for pools' traces.
#pragma once
// Events are appended until the buffer is full, then dropped and counted; nothing is overwritten,
// so what has been published can be read at any time. A begin is only recorded if there is room for
// its end too: what is recorded is balanced, but for what still runs.
//
//   size_      events that are written; moved by the writer alone
//
// Model: tests/model/event_log_model.cpp.

#include <coppice/base/atomic.hpp>
#include <coppice/base/lifetime.hpp>
#include <coppice/trace/counter.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>

namespace coppice::trace {

// What an event says of its moment; the letters are those of the trace event format.
enum class event_kind : char { begin = 'B', end = 'E', instant = 'i' };

// Something that happened, as it is read back.
struct event {
    std::int64_t time_ns = 0;  // of the clock of whoever records
    const char* name = "";     // a literal
    std::uint64_t value = 0;   // what the name says; no_value: nothing
    event_kind kind = event_kind::instant;
    static constexpr std::uint64_t no_value = ~std::uint64_t{0};
};

// Threads: begin(), end() and instant() by one writer; the rest by any. Blocks: never.
// Cost: a store of an event and of a size; one comparison if the capacity is 0.
class event_log : immovable {
public:
    // Cost: allocates the buffer, here and only here. 0: records nothing and counts no drops.
    explicit event_log(std::size_t capacity)
        : events_(capacity == 0 ? nullptr : new record[capacity]), capacity_(capacity) {}

    bool enabled() const noexcept { return capacity_ != 0; }

    // What it returns is for the end() that belongs to it: whether it was recorded.
    [[nodiscard]] bool begin(std::int64_t time_ns, const char* name,
                             std::uint64_t value = event::no_value) noexcept {
        if (!has_room(2)) return false;
        ++open_;
        append({time_ns, name, value, event_kind::begin});
        return true;
    }
    void end(bool begun, std::int64_t time_ns) noexcept {
        if (!begun) return;
        --open_;
        append({time_ns, "", event::no_value, event_kind::end});
    }
    void instant(std::int64_t time_ns, const char* name,
                 std::uint64_t value = event::no_value) noexcept {
        if (has_room(1)) append({time_ns, name, value, event_kind::instant});
    }

    // How many events there are to read; more come only behind them.
    std::size_t size() const noexcept {
        // edge trace.publish (acquire): the events below are written
        return size_.load(internal::acquire);
    }
    // i < a size() that this thread has seen.
    event at(std::size_t i) const noexcept {
        const record& r = events_[i];
        return {r.time_ns.read(), r.name.read(), r.value.read(), event_kind{r.kind.read()}};
    }
    // Events for which there was no room.
    std::uint64_t dropped() const noexcept { return dropped_.read(); }

private:
    // Written before size_ counts it, read after.
    struct record {
        internal::plain<std::int64_t> time_ns;
        internal::plain<const char*> name;
        internal::plain<std::uint64_t> value;
        internal::plain<char> kind;
    };
    bool has_room(std::size_t events) noexcept {
        if (!enabled()) return false;
        // Relaxed: the writer's own word.
        if (size_.load(internal::relaxed) + open_ + events <= capacity_) return true;
        dropped_.add(events);
        return false;
    }
    void append(const event& e) noexcept {
        const std::size_t size = size_.load(internal::relaxed);  // relaxed: the writer's own word
        record& r = events_[size];
        r.time_ns.write(e.time_ns);
        r.name.write(e.name);
        r.value.write(e.value);
        r.kind.write(static_cast<char>(e.kind));
        // edge trace.publish (release): the event is written
        size_.store(size + 1, internal::release);
    }

    const std::unique_ptr<record[]> events_;  // written by the writer, read below size_
    const std::size_t capacity_;
    std::size_t open_ = 0;         // begins without their end; the writer's own
    internal::atomic<std::size_t> size_{0};  // written by the writer; read by any
    counter dropped_;
};

}  // namespace coppice::trace
