// Notes in PostgreSQL. libpq sends and parses without blocking; the request's loop waits for its
// socket. A few connections are shared by all loops; a request that finds none waits for one.
#include "store.hpp"

#include <coppice/io/open_file.hpp>
#include <coppice/io/timer.hpp>

#include <libpq-fe.h>
#include <unistd.h>
#include <cerrno>
#include <charconv>
#include <coroutine>
#include <deque>
#include <initializer_list>
#include <mutex>
#include <stdexcept>
#include <system_error>
#include <utility>

namespace notes {

namespace {

using coppice::task;
using coppice::io::context;

constexpr std::size_t connections_max = 8;

struct finish {
    void operator()(PGconn* c) const noexcept { ::PQfinish(c); }
};
using connection = std::unique_ptr<PGconn, finish>;
struct clear {
    void operator()(PGresult* r) const noexcept { ::PQclear(r); }
};
using rows = std::unique_ptr<PGresult, clear>;

[[noreturn]] void fail(const connection& c) {
    throw std::runtime_error(::PQerrorMessage(c.get()));
}

// Awaits that a socket, which stays its owner's, has something to read: a read of no bytes, which
// the loop makes when the socket is ready.
class readable : coppice::io::ring_operation {
public:
    readable(context& loop, int socket)
        : ring_operation(&ended, coppice::io::opcode::read), file_(loop, watched(loop, socket)) {}
    bool await_ready() const noexcept { return false; }
    bool await_suspend(std::coroutine_handle<> waiter) noexcept {
        waiter_ = waiter;
        on = file_.slot();
        return !file_.owner().start(*this);
    }
    void await_resume() const {
        if (result < 0) throw std::system_error(-result, std::system_category(), "PostgreSQL");
    }

private:
    // A descriptor of the same socket that is the loop's for this wait.
    struct watched_file : coppice::io::open_file {
        using open_file::open_file;
        coppice::io::descriptor* slot() const noexcept { return reference().on; }
    };
    static coppice::io::descriptor* watched(context& loop, int socket) {
        const int copy = ::dup(socket);
        if (copy < 0) throw std::system_error(errno, std::system_category(), "dup");
        auto adopted = loop.adopt(copy);
        if (!adopted) ::close(copy);
        return std::move(adopted).value_or_throw("PostgreSQL");
    }
    static void ended(operation* op) noexcept {
        static_cast<readable*>(static_cast<ring_operation*>(op))->waiter_.resume();
    }
    watched_file file_;
    std::coroutine_handle<> waiter_;
};

// Connections that are open and not in use, and who waits for one.
class connection_pool {
public:
    // A turn to use a connection; given on when it ends. An empty connection: make one.
    class lease {
    public:
        lease(connection_pool& p, connection c) noexcept : pool_(&p), held(std::move(c)) {}
        lease(lease&& other) noexcept
            : pool_(std::exchange(other.pool_, nullptr)), held(std::move(other.held)) {}
        ~lease() {
            if (pool_ != nullptr) pool_->give(std::move(held));
        }

    private:
        connection_pool* pool_;

    public:
        connection held;
    };

    // Awaits a turn; resumes on `loop`.
    class turn : coppice::io::operation {
    public:
        turn(connection_pool& p, context& loop) noexcept
            : operation(&arrive), pool_(p), loop_(loop) {}
        bool await_ready() const noexcept { return false; }
        bool await_suspend(std::coroutine_handle<> waiter) noexcept {
            waiter_ = waiter;
            const std::lock_guard lock(pool_.mutex_);
            if (pool_.in_use_ == connections_max) {
                pool_.waiting_.push_back(this);
                return true;
            }
            ++pool_.in_use_;
            if (!pool_.idle_.empty()) {
                connection_ = std::move(pool_.idle_.back());
                pool_.idle_.pop_back();
            }
            return false;
        }
        lease await_resume() noexcept { return {pool_, std::move(connection_)}; }

    private:
        friend connection_pool;
        static void arrive(operation* op) noexcept { static_cast<turn*>(op)->waiter_.resume(); }
        connection_pool& pool_;
        context& loop_;
        connection connection_;
        std::coroutine_handle<> waiter_;
    };

private:
    void give(connection c) noexcept {
        const bool good = c != nullptr && ::PQstatus(c.get()) == CONNECTION_OK &&
                          ::PQtransactionStatus(c.get()) == PQTRANS_IDLE;
        if (!good) c.reset();
        const std::lock_guard lock(mutex_);
        if (!waiting_.empty()) {
            turn& next = *waiting_.front();
            waiting_.pop_front();
            next.connection_ = std::move(c);
            next.loop_.post(next);
            return;
        }
        --in_use_;
        if (c != nullptr) idle_.push_back(std::move(c));
    }

    std::mutex mutex_;  // guards the three below
    std::vector<connection> idle_;
    std::deque<turn*> waiting_;
    std::size_t in_use_ = 0;
};

class postgres_store final : public store {
public:
    // Blocks: while the table is made.
    explicit postgres_store(std::string url) : url_(std::move(url)) {
        const connection c(::PQconnectdb(url_.c_str()));
        if (::PQstatus(c.get()) != CONNECTION_OK) fail(c);
        const rows made(::PQexec(c.get(),
                                 "SET client_min_messages = warning; CREATE TABLE IF NOT EXISTS "
                                 "notes (id BIGSERIAL PRIMARY KEY, text TEXT NOT NULL)"));
        if (::PQresultStatus(made.get()) != PGRES_COMMAND_OK) fail(c);
    }

    task<std::vector<note>> list(context& loop) override {
        const rows found =
            co_await ask(loop, "SELECT id, text FROM notes ORDER BY id DESC LIMIT $1",
                         parameters(std::to_string(listed_max)));
        std::vector<note> all;
        for (int i = 0; i != ::PQntuples(found.get()); ++i) all.push_back(row(found, i));
        co_return all;
    }
    task<std::optional<note>> find(context& loop, std::int64_t id) override {
        const rows found = co_await ask(loop, "SELECT id, text FROM notes WHERE id = $1",
                                        parameters(std::to_string(id)));
        std::optional<note> result;
        if (::PQntuples(found.get()) != 0) result = row(found, 0);
        co_return result;
    }
    task<std::int64_t> add(context& loop, std::string text) override {
        const rows made =
            co_await ask(loop, "INSERT INTO notes (text) VALUES ($1) RETURNING id, ''",
                         parameters(std::move(text)));
        co_return row(made, 0).id;
    }
    task<bool> replace(context& loop, std::int64_t id, std::string text) override {
        const rows done = co_await ask(loop, "UPDATE notes SET text = $2 WHERE id = $1",
                                       parameters(std::to_string(id), std::move(text)));
        co_return ::PQcmdTuples(done.get()) != std::string_view("0");
    }
    task<bool> remove(context& loop, std::int64_t id) override {
        const rows done =
            co_await ask(loop, "DELETE FROM notes WHERE id = $1", parameters(std::to_string(id)));
        co_return ::PQcmdTuples(done.get()) != std::string_view("0");
    }

private:
    // Not a braced list: GCC 12 cannot have one in a co_await expression.
    template <class... Text>
    static std::vector<std::string> parameters(Text&&... texts) {
        std::vector<std::string> all;
        (all.push_back(std::forward<Text>(texts)), ...);
        return all;
    }
    static note row(const rows& r, int index) {
        const char* const id = ::PQgetvalue(r.get(), index, 0);
        note n{};
        std::from_chars(id, id + ::PQgetlength(r.get(), index, 0), n.id);
        n.text.assign(::PQgetvalue(r.get(), index, 1),
                      static_cast<std::size_t>(::PQgetlength(r.get(), index, 1)));
        return n;
    }

    // One statement and its answer, without holding the loop.
    task<rows> ask(context& loop, const char* sql, std::vector<std::string> texts) {
        if (!loop.is_current()) co_await loop.get_scheduler().schedule();
        connection_pool::lease lease = co_await connection_pool::turn(pool_, loop);
        if (lease.held == nullptr) co_await connect(loop, lease.held);
        const connection& c = lease.held;
        std::vector<const char*> values;
        for (const std::string& p : texts) values.push_back(p.c_str());
        if (::PQsendQueryParams(c.get(), sql, static_cast<int>(values.size()), nullptr,
                                values.data(), nullptr, nullptr, 0) == 0) {
            fail(c);
        }
        // A statement that the socket does not take at once is rare: looked at every millisecond.
        for (int left; (left = ::PQflush(c.get())) != 0;) {
            if (left < 0 || ::PQconsumeInput(c.get()) == 0) fail(c);
            co_await coppice::io::timer(loop).wait_for(std::chrono::milliseconds(1));
        }
        rows answer;
        for (bool more = true; more;) {
            while (::PQisBusy(c.get()) != 0) {
                co_await readable(loop, ::PQsocket(c.get()));
                if (::PQconsumeInput(c.get()) == 0) fail(c);
            }
            rows next(::PQgetResult(c.get()));
            more = next != nullptr;
            if (more) answer = std::move(next);
        }
        const ExecStatusType status = ::PQresultStatus(answer.get());
        if (status != PGRES_TUPLES_OK && status != PGRES_COMMAND_OK) {
            throw std::runtime_error(::PQresultErrorMessage(answer.get()));
        }
        co_return answer;
    }

    task<> connect(context& loop, connection& c) {
        c.reset(::PQconnectStart(url_.c_str()));
        if (c == nullptr || ::PQstatus(c.get()) == CONNECTION_BAD) fail(c);
        PostgresPollingStatusType next = PGRES_POLLING_WRITING;
        while (next != PGRES_POLLING_OK) {
            if (next == PGRES_POLLING_FAILED) fail(c);
            if (next == PGRES_POLLING_READING) {
                co_await readable(loop, ::PQsocket(c.get()));
            } else {
                co_await coppice::io::timer(loop).wait_for(std::chrono::milliseconds(1));
            }
            next = ::PQconnectPoll(c.get());
        }
        if (::PQsetnonblocking(c.get(), 1) != 0) fail(c);
    }

    std::string url_;
    connection_pool pool_;
};

}  // namespace

std::unique_ptr<store> open_postgres(const std::string& url) {
    return std::make_unique<postgres_store>(url);
}

}  // namespace notes
