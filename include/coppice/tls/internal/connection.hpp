// connection: what the operations of a stream share: engine, next stream, bytes between them.
#pragma once
// It stays where it is, so a stream can be moved. The stream and each operation that was started
// share it. Everything here is used on the loop's thread.

#include <coppice/base/internal/check.hpp>
#include <coppice/base/lifetime.hpp>
#include <coppice/io/context.hpp>
#include <coppice/io/internal/record_memory.hpp>
#include <coppice/tls/engine.hpp>
#include <coppice/tls/internal/namespaces.hpp>

#include <array>
#include <cstddef>
#include <memory>
#include <span>
#include <utility>

namespace coppice::tls::internal {

// An operation of a stream, as the other one sees it.
struct lane_user {
    virtual void lane_is_free() noexcept = 0;

protected:
    ~lane_user() = default;
};

// One direction of the next stream, which one operation uses at a time. Usually that is a send, or
// a receive. But a receive may have to send: an alert, or the answer to a key update; and a send
// may have to receive: the rest of a message about keys, whose beginning has come.
class lane {
public:
    // Returns true if `op` may use it now. Otherwise its lane_is_free() is called when it may.
    bool take(lane_user& op) noexcept {
        if (owner_ != nullptr && owner_ != &op) {
            waiting_ = &op;
            return false;
        }
        owner_ = &op;
        return true;
    }
    void free(const lane_user& op) noexcept {
        if (owner_ != &op) return;
        owner_ = nullptr;
        if (waiting_ != nullptr) std::exchange(waiting_, nullptr)->lane_is_free();
    }
    // Called when the operation ends.
    void leave(const lane_user& op) noexcept {
        if (waiting_ == &op) waiting_ = nullptr;
        free(op);
    }
    bool is_free() const noexcept { return owner_ == nullptr; }

private:
    const lane_user* owner_ = nullptr;
    lane_user* waiting_ = nullptr;
};

template <class Next>
class connection : public std::enable_shared_from_this<connection<Next>>, immovable {
public:
    connection(Next&& n, tls::engine&& e) noexcept : next(std::move(n)), engine(std::move(e)) {}

    io::context& owner() const noexcept { return next.owner(); }

    // ---- The two directions: one operation at a time in each ----
    void enter(const lane_user& op, bool reads, bool writes) noexcept {
        COPPICE_CHECK((!reads || reader_ == nullptr) && (!writes || writer_ == nullptr),
                      "two operations in one direction on one tls::stream: await the first one "
                      "before the next");
        if (reads) reader_ = &op;
        if (writes) writer_ = &op;
    }
    void leave(const lane_user& op) noexcept {
        if (reader_ == &op) reader_ = nullptr;
        if (writer_ == &op) writer_ = nullptr;
        incoming.leave(op);
        outgoing.leave(op);
        if (engine.unread() == 0 && incoming.is_free()) large_.release();
    }

    // ---- Bytes from the peer ----
    // Returns where the next bytes go: to a small place while the next record has not begun, so
    // that a connection that waits uses little memory. Empty: there is no memory.
    std::span<std::byte> place_for_input() noexcept {
        const bool much = !engine.is_ready() || engine.wanted() > header_size || was_full_;
        if (!much) {
            large_.release();
            return small_;
        }
        return large_.acquire() ? large_.all() : std::span<std::byte>();
    }
    // Takes `bytes` bytes that were received into that place; 0 is the end of the stream.
    void came(std::size_t bytes) noexcept {
        if (bytes == 0) {
            engine.end_input();
            return;
        }
        const std::span<std::byte> place = large_.is_there() ? large_.all() : small_;
        was_full_ = bytes == place.size();
        engine.input(place.first(bytes));
    }

    // ---- Bytes to the peer ----
    bool has_output() const noexcept { return engine.written() > sent_; }
    // Gives the engine room. Returns false if there is no memory.
    bool make_room() noexcept {
        if (room_.is_there()) return true;
        if (!room_.acquire()) return false;
        engine.output(room_.all());
        sent_ = 0;
        return true;
    }
    std::span<const std::byte> output() const noexcept {
        return room_.all().first(engine.written()).subspan(sent_);
    }
    void went(std::size_t bytes) noexcept {
        sent_ += bytes;
        drop_empty_room();
    }
    void drop_empty_room() noexcept {
        if (has_output() || !room_.is_there()) return;
        engine.output({});
        sent_ = 0;
        room_.release();
    }

    Next next;
    tls::engine engine;
    lane incoming, outgoing;

private:
    static constexpr std::size_t header_size = 5;
    const lane_user* reader_ = nullptr;  // the pending operations; one may be both
    const lane_user* writer_ = nullptr;
    bool was_full_ = false;              // the last bytes filled their place: there are more
    std::size_t sent_ = 0;               // bytes of the room that have been sent
    io::internal::record_memory room_;   // what the engine has written
    io::internal::record_memory large_;  // what has come, if there is much
    std::array<std::byte, 1536> small_;
};

}  // namespace coppice::tls::internal
