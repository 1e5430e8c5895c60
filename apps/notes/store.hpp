// store: where notes are kept; one interface over SQLite and PostgreSQL.
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

// The database cannot be reached, or does not answer in its time; later it may. What was asked may
// have been done all the same.
class unavailable : public std::runtime_error {
public:
    using std::runtime_error::runtime_error;
};

// Threads: any, several at once. Every call suspends its coroutine instead of holding the thread
// while the database works; the coroutine may go on on another thread. A call ends early when its
// request is stopped.
// Errors: unavailable, at the latest when the store's limit has passed since the call; other
// std::runtime_error with what the database said.
class store {
public:
    virtual ~store() = default;
    // `loop` is the request's; the waiting is done there, where it is done on a loop at all.
    virtual coppice::task<std::vector<note>> list(coppice::io::context& loop) = 0;
    virtual coppice::task<std::optional<note>> find(coppice::io::context& loop,
                                                    std::int64_t id) = 0;
    virtual coppice::task<std::int64_t> add(coppice::io::context& loop, std::string text) = 0;
    // False: there is no such note.
    virtual coppice::task<bool> replace(coppice::io::context& loop, std::int64_t id,
                                        std::string text) = 0;
    virtual coppice::task<bool> remove(coppice::io::context& loop, std::int64_t id) = 0;
};

// How many notes list() gives at most: the newest.
inline constexpr int listed_max = 100;

// A file, made if it is missing; ":memory:" is gone with the store. Its queries run on a thread of
// their own, one after the other. `limit`: how long a call waits for the thread and for other
// processes that have locked the file. Blocks: as long, at most. Errors: std::runtime_error.
std::unique_ptr<store> open_sqlite(const std::string& file, std::chrono::nanoseconds limit);

// A server, asked over a few connections that the requests' loops wait for. `limit`: for a call,
// with all that it waits for: a connection that is free, or a new one, and the answer. A connection
// whose call did not end is thrown away. Blocks: for the limit, at most; and for the resolver if
// the URL has a name where it may have a number. Errors: std::runtime_error if the server cannot be
// reached.
std::unique_ptr<store> open_postgres(const std::string& url, std::chrono::nanoseconds limit);

}  // namespace notes
