// store: where notes are kept; one interface over SQLite and PostgreSQL.
#pragma once

#include <coppice/io/context.hpp>
#include <coppice/task/task.hpp>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace notes {

struct note {
    std::int64_t id;
    std::string text;
};

// Threads: any, several at once. Every call suspends its coroutine instead of holding the thread
// while the database works; the coroutine may go on on another thread.
// Errors: std::runtime_error with what the database said.
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
// their own, one after the other. Errors: std::runtime_error.
std::unique_ptr<store> open_sqlite(const std::string& file);

// A server, asked over a few connections that the requests' loops wait for.
// Errors: std::runtime_error if it cannot be reached.
std::unique_ptr<store> open_postgres(const std::string& url);

}  // namespace notes
