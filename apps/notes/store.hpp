// store: keeps notes; one interface over SQLite and PostgreSQL.
#pragma once

#include <coppice/io/context.hpp>
#include <coppice/task/task.hpp>

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

namespace notes {

struct note {
    std::int64_t id;
    std::string text;
};

// The database cannot be reached, or does not answer in time; it may later. It may have done what
// was asked nevertheless.
class unavailable : public std::runtime_error {
public:
    using std::runtime_error::runtime_error;
};

// Threads: any, several at once. Every call suspends its coroutine instead of blocking the thread
// while the database works; the coroutine may resume on another thread. A call ends early when its
// request is stopped. Errors: unavailable, at the latest when the store's limit has passed since
// the call; other std::runtime_error with the database's message.
class store {
public:
    virtual ~store() = default;
    // `loop` is the request's. A store that waits on a loop waits on this one.
    virtual coppice::task<std::vector<note>> list(coppice::io::context& loop) = 0;
    virtual coppice::task<std::optional<note>> find(coppice::io::context& loop,
                                                    std::int64_t id) = 0;
    virtual coppice::task<std::int64_t> add(coppice::io::context& loop, std::string text) = 0;
    // Gives false if there is no such note.
    virtual coppice::task<bool> replace(coppice::io::context& loop, std::int64_t id,
                                        std::string text) = 0;
    virtual coppice::task<bool> remove(coppice::io::context& loop, std::int64_t id) = 0;
};

// The most notes that list() gives: the newest ones.
inline constexpr int listed_max = 100;

// Opens a file, and creates it if it is missing; ":memory:" disappears with the store. Its queries
// run on a separate thread, one after the other. `limit`: how long a call waits for that thread and
// for other processes that have locked the file. Blocks: at most for `limit`. Errors:
// std::runtime_error.
std::unique_ptr<store> open_sqlite(const std::string& file, std::chrono::nanoseconds limit);

// Connects to a server, over a few connections that the requests' loops wait for. `limit`: for a
// whole call, including the wait for a free or a new connection and for the answer. A connection
// whose call did not complete is dropped. Blocks: at most for `limit`, and for the resolver if the
// URL has a name instead of a number. Errors: std::runtime_error if the server cannot be reached.
std::unique_ptr<store> open_postgres(const std::string& url, std::chrono::nanoseconds limit);

}  // namespace notes
