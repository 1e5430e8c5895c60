// The rooms of the chat, and the visitors in them.
#pragma once

#include <coppice/base/lifetime.hpp>
#include <coppice/sync/broadcast_channel.hpp>
#include <coppice/sync/event.hpp>

#include <cstddef>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <utility>

namespace chat {

// What a page gets as one message: a word for its kind, and what belongs to it. Shared by all who
// get it.
//
//   here NAME NAME...   first: the visitors in the room
//   joined NAME         a visitor came, perhaps you
//   left NAME
//   said NAME TEXT      TEXT is as it was sent, also with spaces and line breaks
//   missed COUNT        you read so slowly that COUNT messages are lost for you
//   refused REASON      what you sent was not passed on
//   closing             the server ends; the close code 1001 follows
using line = std::shared_ptr<const std::string>;
using lines = coppice::broadcast_channel<line>;

struct hall_limits {
    std::size_t rooms;
    std::size_t visitors;  // of one room
    std::size_t backlog;   // lines that a reader may be behind
};

class seat;

// A room exists while a visitor is in it. Threads: any. Lifetime: outlives its seats.
class hall : coppice::immovable {
public:
    explicit hall(const hall_limits& limits) : limits_(limits) {}
    // Returns a place in the room, which is made if it is missing. Errors: http::status_error: 400
    // for a name that is not 1 to 32 letters, digits, and any of -_. ; 409 if a visitor in the room
    // has that name; 503 if a limit is reached, or after close().
    seat enter(std::string_view room, std::string_view name);
    // Ends all talk: readers get what is left, and then the end. No visitor may enter from now on.
    void close();
    // Completes when the hall was closed and the last visitor has left. For one waiter.
    auto wait_until_empty() { return empty_.wait(); }

private:
    friend class seat;
    struct room {
        explicit room(std::size_t backlog) : said(backlog) {}
        lines said;
        std::set<std::string, std::less<>> names;  // guarded by the hall's mutex
    };
    std::string names_in(const room& r) const;
    void leave(const std::string& room_name, const std::string& name) noexcept;

    const hall_limits limits_;
    mutable std::mutex mutex_;  // guards what follows; no line is sent while it is locked
    std::map<std::string, std::shared_ptr<room>, std::less<>> rooms_;
    bool closed_ = false;
    coppice::async_event empty_;
};

// A visitor's place in a room, and its name there, until it is destroyed. Threads: any.
class seat {
public:
    seat(seat&& other) noexcept = default;
    seat& operator=(seat&&) = delete;
    ~seat();

    const std::string& name() const noexcept { return name_; }
    // Tells the room that this visitor has come; destroying the seat tells that it has left.
    void join();
    // Returns the line that begins a visit.
    std::string who_is_here() const { return hall_->names_in(*room_); }
    // Returns a reader of what is said from now on. Lifetime: the seat's.
    lines::receiver listen() { return room_->said.subscribe(); }
    void say(std::string_view text);

private:
    friend class hall;
    seat(hall& in, std::string room_name, std::shared_ptr<hall::room> room, std::string name)
        : hall_(&in),
          room_name_(std::move(room_name)),
          room_(std::move(room)),
          name_(std::move(name)) {}
    void tell(std::string text) {
        room_->said.send(std::make_shared<std::string>(std::move(text)));
    }

    hall* hall_;
    std::string room_name_;
    std::shared_ptr<hall::room> room_;  // nullptr after a move
    std::string name_;
    bool joined_ = false;
};

}  // namespace chat
