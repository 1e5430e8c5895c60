// Notes in SQLite. Its calls block, on the disk and on each other. A separate thread therefore
// makes them, and requests move to it and leave their loops to others.
#include "store.hpp"

#include <coppice/base/saturating.hpp>
#include <coppice/pool/thread_pool.hpp>

#include <sqlite3.h>
#include <chrono>
#include <memory>
#include <stdexcept>
#include <utility>

namespace notes {

namespace {

using coppice::task;
using coppice::io::context;

// A connection and its prepared statements. Threads: one at a time.
class database {
public:
    database(const std::string& file, std::chrono::nanoseconds limit) {
        sqlite3* opened = nullptr;
        const int status = ::sqlite3_open(file.c_str(), &opened);
        handle_.reset(opened);  // there is a handle to close even if that failed
        check(status);
        wait_at_most(limit);
        check(::sqlite3_exec(opened,
                             "PRAGMA journal_mode = WAL;"
                             "CREATE TABLE IF NOT EXISTS notes ("
                             "  id INTEGER PRIMARY KEY AUTOINCREMENT, text TEXT NOT NULL)",
                             nullptr, nullptr, nullptr));
    }
    void check(int status) const {
        if (status == SQLITE_OK || status == SQLITE_ROW || status == SQLITE_DONE) return;
        const int kind = status & 0xff;
        if (kind == SQLITE_BUSY || kind == SQLITE_LOCKED) throw unavailable("the file is locked");
        throw std::runtime_error(::sqlite3_errmsg(handle()));
    }
    // Sets how long a statement waits for a lock that another process holds.
    void wait_at_most(std::chrono::nanoseconds time) const {
        const auto ms = std::chrono::ceil<std::chrono::milliseconds>(time).count();
        ::sqlite3_busy_timeout(handle(), coppice::saturating_cast<int>(ms));
    }
    std::int64_t last_id() const { return ::sqlite3_last_insert_rowid(handle()); }
    bool changed() const { return ::sqlite3_changes(handle()) != 0; }
    sqlite3* handle() const { return handle_.get(); }

private:
    struct close {
        void operator()(sqlite3* opened) const noexcept { ::sqlite3_close(opened); }
    };
    std::unique_ptr<sqlite3, close> handle_;
};

// A statement that is prepared once, with parameters bound from 1 on.
class statement {
public:
    statement(database& d, const char* sql) : database_(d) {
        d.check(::sqlite3_prepare_v2(d.handle(), sql, -1, &handle_, nullptr));
    }
    statement(const statement&) = delete;
    ~statement() { ::sqlite3_finalize(handle_); }

    // One run of a statement. The statement is ready for the next run when this ends.
    class run {
    public:
        explicit run(statement& s) : statement_(s) {}
        run(const run&) = delete;
        ~run() { ::sqlite3_reset(statement_.handle_); }
        run& bind(int index, std::int64_t value) {
            statement_.database_.check(::sqlite3_bind_int64(statement_.handle_, index, value));
            return *this;
        }
        run& bind(int index, const std::string& text) {
            statement_.database_.check(::sqlite3_bind_text(statement_.handle_, index, text.data(),
                                                           static_cast<int>(text.size()),
                                                           SQLITE_TRANSIENT));
            return *this;
        }
        // Returns true if there is a row.
        bool step() {
            const int status = ::sqlite3_step(statement_.handle_);
            statement_.database_.check(status);
            return status == SQLITE_ROW;
        }
        note row() const {
            const void* const text = ::sqlite3_column_blob(statement_.handle_, 1);
            const int size = ::sqlite3_column_bytes(statement_.handle_, 1);
            return {::sqlite3_column_int64(statement_.handle_, 0),
                    std::string(static_cast<const char*>(text), static_cast<std::size_t>(size))};
        }

    private:
        statement& statement_;
    };

private:
    database& database_;
    sqlite3_stmt* handle_ = nullptr;
};

class sqlite_store final : public store {
public:
    sqlite_store(const std::string& file, std::chrono::nanoseconds limit)
        : limit_(limit), database_(file, limit) {}

    task<std::vector<note>> list(context&) override {
        const time_point late = deadline();
        co_await worker_.get_scheduler().schedule();
        wait_until(late);
        statement::run run(list_);
        run.bind(1, listed_max);
        std::vector<note> all;
        while (run.step()) all.push_back(run.row());
        co_return all;
    }
    task<std::optional<note>> find(context&, std::int64_t id) override {
        const time_point late = deadline();
        co_await worker_.get_scheduler().schedule();
        wait_until(late);
        statement::run run(find_);
        std::optional<note> found;
        if (run.bind(1, id).step()) found = run.row();
        co_return found;
    }
    task<std::int64_t> add(context&, std::string text) override {
        const time_point late = deadline();
        co_await worker_.get_scheduler().schedule();
        wait_until(late);
        statement::run run(add_);
        run.bind(1, text).step();
        co_return database_.last_id();
    }
    task<bool> replace(context&, std::int64_t id, std::string text) override {
        const time_point late = deadline();
        co_await worker_.get_scheduler().schedule();
        wait_until(late);
        statement::run run(replace_);
        run.bind(1, text).bind(2, id).step();
        co_return database_.changed();
    }
    task<bool> remove(context&, std::int64_t id) override {
        const time_point late = deadline();
        co_await worker_.get_scheduler().schedule();
        wait_until(late);
        statement::run run(remove_);
        run.bind(1, id).step();
        co_return database_.changed();
    }

private:
    using clock = std::chrono::steady_clock;
    using time_point = clock::time_point;

    time_point deadline() const { return coppice::saturating_add(clock::now(), limit_); }
    // Called on the worker: limits how long the next statement waits for locks. If it waited behind
    // others, none of its time may be left.
    void wait_until(time_point late) const {
        const std::chrono::nanoseconds left = late - clock::now();
        if (left <= std::chrono::nanoseconds(0)) throw unavailable("the file is locked");
        database_.wait_at_most(left);
    }

    const std::chrono::nanoseconds limit_;
    // Used only by the worker, except when it is made and destroyed.
    database database_;
    statement list_{database_, "SELECT id, text FROM notes ORDER BY id DESC LIMIT ?"};
    statement find_{database_, "SELECT id, text FROM notes WHERE id = ?"};
    statement add_{database_, "INSERT INTO notes (text) VALUES (?)"};
    statement replace_{database_, "UPDATE notes SET text = ? WHERE id = ?"};
    statement remove_{database_, "DELETE FROM notes WHERE id = ?"};
    coppice::thread_pool worker_{1};
};

}  // namespace

std::unique_ptr<store> open_sqlite(const std::string& file, std::chrono::nanoseconds limit) {
    return std::make_unique<sqlite_store>(file, limit);
}

}  // namespace notes
