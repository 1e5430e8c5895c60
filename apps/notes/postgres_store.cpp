// Notes in PostgreSQL. libpq sends and parses without blocking; the request's loop waits for its
// socket. A few connections are shared by all loops; a request that finds none waits for one.
#include "store.hpp"

#include <coppice/base/lifetime.hpp>
#include <coppice/exec/starts_on.hpp>
#include <coppice/exec/sync_wait.hpp>
#include <coppice/exec/timeout.hpp>
#include <coppice/io/context.hpp>
#include <coppice/io/initiate.hpp>
#include <coppice/io/open_file.hpp>
#include <coppice/sync/semaphore.hpp>

#include <libpq-fe.h>
#include <sys/epoll.h>
#include <unistd.h>
#include <cerrno>
#include <charconv>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <system_error>
#include <thread>
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

// The connection cannot be used any longer.
[[noreturn]] void fail(const connection& c) {
    throw unavailable(::PQerrorMessage(c.get()));
}

// Called by a loop when an epoll instance has something to report: does nothing.
class ready_request : public coppice::io::descriptor_request<> {
public:
    using value_type = void;
    static constexpr const char* name = "wait for PostgreSQL";
    struct arguments {
        explicit arguments(const coppice::io::descriptor_reference& f) noexcept : file(f) {}
        coppice::io::descriptor_reference file;
    };
    explicit ready_request(const arguments& a) noexcept
        : descriptor_request<>(a.file, coppice::io::opcode::read) {}

protected:
    ~ready_request() = default;

private:
    // A loop reads what is ready; an epoll instance cannot be read.
    int judge(int returned) noexcept override { return returned == -EINVAL ? 0 : returned; }
};

// Watches libpq's socket, which libpq still owns, through an epoll instance that the loop owns.
class socket_watch : coppice::io::open_file {
public:
    // `events`: EPOLLIN, EPOLLOUT or both.
    socket_watch(context& loop, int socket, std::uint32_t events)
        : open_file(watching(loop, socket, events)) {}
    // Waits for one of the events. Heeds stop tokens and deadlines.
    auto ready() noexcept {
        return coppice::io::initiate<ready_request>(ready_request::arguments(reference()),
                                                    coppice::use_await);
    }

private:
    static open_file watching(context& loop, int socket, std::uint32_t events) {
        const int watch = ::epoll_create1(EPOLL_CLOEXEC);
        if (watch < 0) throw std::system_error(errno, std::system_category(), "epoll_create1");
        auto adopted = loop.adopt(watch);
        if (!adopted) ::close(watch);
        open_file file(loop, std::move(adopted).value_or_throw("PostgreSQL"));
        epoll_event event{};
        event.events = events;
        if (::epoll_ctl(watch, EPOLL_CTL_ADD, socket, &event) != 0) {
            throw std::system_error(errno, std::system_category(), "epoll_ctl");
        }
        return file;
    }
};

// At most connections_max connections, shared by all loops. The semaphore counts the turns to use
// one; the list has those that are open and not in use.
class connection_pool {
public:
    // A turn to use a connection. It passes to the next request when it ends. With an empty
    // connection, the holder must make one.
    class lease {
    public:
        lease(connection_pool& p, coppice::async_semaphore::permit turn) noexcept
            : pool_(&p), turn_(std::move(turn)), held(p.take()) {}
        lease(lease&&) = delete;
        // Gives the connection back before the turn ends, so that the next holder finds it.
        ~lease() { pool_->give(std::move(held)); }

    private:
        connection_pool* pool_;
        coppice::async_semaphore::permit turn_;

    public:
        connection held;
    };

    // Waits for a turn, from which to make a lease. Heeds stop tokens and deadlines.
    auto turn() { return turns_.acquire(); }
    // Closes the connections that are not in use, since their server has failed to answer on
    // another one.
    void distrust_idle() noexcept {
        std::vector<connection> closed;
        const std::lock_guard lock(mutex_);
        closed.swap(idle_);
    }

private:
    connection take() noexcept {
        const std::lock_guard lock(mutex_);
        if (idle_.empty()) return nullptr;
        connection c = std::move(idle_.back());
        idle_.pop_back();
        return c;
    }
    void give(connection c) noexcept {
        const bool good = c != nullptr && ::PQstatus(c.get()) == CONNECTION_OK &&
                          ::PQtransactionStatus(c.get()) == PQTRANS_IDLE;
        if (!good) return;
        const std::lock_guard lock(mutex_);
        idle_.push_back(std::move(c));
    }

    coppice::async_semaphore turns_{connections_max};
    std::mutex mutex_;  // guards the member below, and is never held during a wait
    std::vector<connection> idle_;
};

class postgres_store final : public store {
public:
    // Blocks: while the table is made, at most for the limit.
    postgres_store(std::string url, std::chrono::nanoseconds limit)
        : url_(std::move(url)), limit_(limit) {
        context loop;
        const context::work_guard guard(loop);
        std::thread runner([&] { loop.run(); });
        const coppice::scope_exit end([&] {
            loop.stop();
            runner.join();
        });
        coppice::this_thread::sync_wait(
            coppice::execution::starts_on(loop.get_scheduler(), prepare(loop)));
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
    // Not a braced list: GCC 12 cannot compile one in a co_await expression.
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

    task<> prepare(context& loop) {
        co_await ask(loop,
                     "CREATE TABLE IF NOT EXISTS notes (id BIGSERIAL PRIMARY KEY, "
                     "text TEXT NOT NULL)",
                     parameters());
    }

    // Runs one statement and gets its answer, without blocking the loop.
    task<rows> ask(context& loop, const char* sql, std::vector<std::string> texts) {
        try {
            co_return co_await coppice::execution::timeout(
                ask_at_leisure(loop, sql, std::move(texts)), limit_);
        } catch (const std::system_error& e) {
            if (e.code() != std::errc::timed_out) throw unavailable(e.what());
        }
        pool_.distrust_idle();
        throw unavailable("PostgreSQL did not answer in time");
    }

    task<rows> ask_at_leisure(context& loop, const char* sql, std::vector<std::string> texts) {
        auto turn = co_await pool_.turn();
        connection_pool::lease lease(pool_, std::move(turn));
        // A handler has no scheduler, so it goes on where the last holder's turn has ended.
        if (!loop.is_current()) co_await loop.get_scheduler().schedule();
        // The server may have closed the connection meanwhile.
        if (lease.held != nullptr && ::PQconsumeInput(lease.held.get()) == 0) lease.held.reset();
        if (lease.held == nullptr) co_await connect(loop, lease.held);
        const connection& c = lease.held;
        std::vector<const char*> values;
        for (const std::string& p : texts) values.push_back(p.c_str());
        if (::PQsendQueryParams(c.get(), sql, static_cast<int>(values.size()), nullptr,
                                values.data(), nullptr, nullptr, 0) == 0) {
            fail(c);
        }
        for (int left; (left = ::PQflush(c.get())) != 0;) {
            if (left < 0) fail(c);
            socket_watch watch(loop, ::PQsocket(c.get()), EPOLLIN | EPOLLOUT);
            co_await watch.ready();
            if (::PQconsumeInput(c.get()) == 0) fail(c);
        }
        rows answer;
        for (bool more = true; more;) {
            while (::PQisBusy(c.get()) != 0) {
                socket_watch watch(loop, ::PQsocket(c.get()), EPOLLIN);
                co_await watch.ready();
                if (::PQconsumeInput(c.get()) == 0) fail(c);
            }
            rows next(::PQgetResult(c.get()));
            more = next != nullptr;
            if (more) answer = std::move(next);
        }
        const ExecStatusType status = ::PQresultStatus(answer.get());
        if (status != PGRES_TUPLES_OK && status != PGRES_COMMAND_OK) {
            if (::PQstatus(c.get()) != CONNECTION_OK) fail(c);
            throw std::runtime_error(::PQresultErrorMessage(answer.get()));
        }
        co_return answer;
    }

    task<> connect(context& loop, connection& c) {
        c.reset(::PQconnectStart(url_.c_str()));
        if (c == nullptr || ::PQstatus(c.get()) == CONNECTION_BAD) fail(c);
        ::PQsetNoticeProcessor(c.get(), [](void*, const char*) {}, nullptr);
        PostgresPollingStatusType next = PGRES_POLLING_WRITING;
        while (next != PGRES_POLLING_OK) {
            if (next == PGRES_POLLING_FAILED) fail(c);
            const bool reading = next == PGRES_POLLING_READING;
            socket_watch watch(loop, ::PQsocket(c.get()), reading ? EPOLLIN : EPOLLOUT);
            co_await watch.ready();
            next = ::PQconnectPoll(c.get());
        }
        if (::PQsetnonblocking(c.get(), 1) != 0) fail(c);
    }

    const std::string url_;
    const std::chrono::nanoseconds limit_;
    connection_pool pool_;
};

}  // namespace

std::unique_ptr<store> open_postgres(const std::string& url, std::chrono::nanoseconds limit) {
    return std::make_unique<postgres_store>(url, limit);
}

}  // namespace notes
