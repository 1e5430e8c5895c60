// Calls of functions in other processes, on both sides.
#include <coppice/mpi/internal/remote_service.hpp>

#include <coppice/exec/just.hpp>
#include <coppice/exec/spawn.hpp>
#include <coppice/exec/starts_on.hpp>
#include <coppice/exec/sync_wait.hpp>
#include <coppice/exec/then.hpp>
#include <coppice/mpi/collective.hpp>
#include <coppice/mpi/error.hpp>
#include <coppice/mpi/internal/share.hpp>
#include <coppice/mpi/message.hpp>
#include <coppice/mpi/remote.hpp>
#include <coppice/pool/default_pool.hpp>
#include <coppice/token/block.hpp>
#include <coppice/token/use_await.hpp>

#include <array>
#include <exception>
#include <new>
#include <string>
#include <system_error>

namespace coppice::mpi::internal {

namespace {

constexpr int request_tag = 0;
constexpr int last_possible_tag = 32767;  // every implementation has so many

struct request_header {
    std::uint32_t function;
    std::int32_t reply_tag;
};

// What a reply begins with. The result follows, or the category and the code, or the text.
enum class reply : std::uint32_t { value, code, text };
enum class known_category : std::uint32_t { generic, system, mpi, none };

// A reply that needs no other memory.
struct reply_of_code {
    reply_of_code(known_category c, int v) noexcept : category(c), value(v) {}
    reply kind = reply::code;
    known_category category;
    std::int32_t value;
};

known_category number_of(const std::error_category& c) noexcept {
    if (c == std::generic_category()) return known_category::generic;
    if (c == std::system_category()) return known_category::system;
    return c == mpi_category() ? known_category::mpi : known_category::none;
}

const std::error_category& category_of(known_category c) noexcept {
    if (c == known_category::generic) return std::generic_category();
    return c == known_category::system ? std::system_category() : mpi_category();
}

bytes reply_of_text(const char* text) {
    bytes made;
    write(made, reply::text);
    write(made, std::string(text));
    return made;
}

bytes reply_of(const std::exception_ptr& failure) {
    try {
        std::rethrow_exception(failure);
    } catch (const std::system_error& e) {
        const known_category category = number_of(e.code().category());
        if (category == known_category::none) return reply_of_text(e.what());
        bytes made;
        write(made, reply_of_code(category, e.code().value()));
        return made;
    } catch (const std::bad_alloc&) {
        throw;
    } catch (const std::exception& e) {
        return reply_of_text(e.what());
    } catch (...) {
        return reply_of_text("an exception that is no std::exception");
    }
}

[[noreturn]] void throw_failure(reply kind, std::span<const std::byte> from, int rank) {
    if (kind == reply::text) throw remote_error(read<std::string>(from), rank);
    const known_category category = read<known_category>(from);
    const int value = read<int>(from);
    throw std::system_error(value, category_of(category),
                            "mpi::remote: the function failed in process " + std::to_string(rank));
}

// Errors: std::bad_alloc.
bytes result_or_failure(remote_service::function f, std::span<const std::byte> arguments) {
    try {
        bytes made;
        write(made, reply::value);
        f(arguments, made);
        return made;
    } catch (...) {
        return reply_of(std::current_exception());
    }
}

// Returns true if a shorter reply may be sent.
bool is_of_size(std::error_code error) noexcept {
    return error == std::errc::not_enough_memory || error == std::errc::value_too_large ||
           error == errc::no_resources;
}

}  // namespace

// The tag of a call. At the end of the call it is free, unless the reply is still to come.
class remote_service::reply_tag : immovable {
public:
    reply_tag(remote_service& service, int rank)
        : service_(service), number_(service.take_tag()), rank_(rank) {}
    ~reply_tag() {
        if (waits_) {
            service_.abandon(rank_, number_);
        } else {
            service_.give_tag(number_);
        }
    }
    int number() const noexcept { return number_; }
    void set_waiting(bool waits) noexcept { waits_ = waits; }

private:
    remote_service& service_;
    int number_;
    int rank_;
    bool waits_ = false;
};

remote_service::remote_service(const communicator& over, std::span<const function> table)
    : own_(over.duplicate()), table_(table) {
    execution::spawn(execution::starts_on(default_pool().get_scheduler(), serve()),
                     listeners_.get_token(), end_service(own_));
}

// Between the barriers the listeners still take the large replies to calls that were stopped, which
// the other handlers could not send otherwise. If a process has failed, the barriers fail at once,
// and only the functions that run are waited for.
remote_service::~remote_service() {
    std::error_code error;
    barrier(own_, block[error]);
    this_thread::sync_wait(handlers_.join());
    barrier(own_, block[error]);
    listeners_.request_stop();
    this_thread::sync_wait(listeners_.join());
}

int remote_service::take_tag() {
    const std::scoped_lock lock(mutex_);
    if (free_tags_.empty()) {
        if (last_tag_ == last_possible_tag)
            throw std::system_error(make_error_code(errc::no_resources),
                                    "mpi::remote: more than 32767 calls wait for a reply");
        free_tags_.reserve(static_cast<std::size_t>(last_tag_) + 1);
        return ++last_tag_;
    }
    const int tag = free_tags_.back();
    free_tags_.pop_back();
    return tag;
}

void remote_service::give_tag(int tag) noexcept {
    const std::scoped_lock lock(mutex_);
    free_tags_.push_back(tag);
}

task<bytes> remote_service::call(int rank, std::uint32_t index, bytes arguments) {
    reply_tag tag(*this, rank);
    const request_header header{index, tag.number()};
    const auto first = std::as_bytes(std::span<const request_header, 1>(&header, 1));
    arguments.insert(arguments.begin(), first.begin(), first.end());
    co_await send(own_, arguments, {rank, request_tag});
    tag.set_waiting(true);
    bytes answer;
    const bool has_come = co_await (receive_all(own_, answer, {rank, tag.number()}) |
                                    execution::then([](const envelope&) noexcept { return true; }) |
                                    execution::upon_stopped([]() noexcept { return false; }));
    if (!has_come) co_await execution::just_stopped();
    tag.set_waiting(false);
    std::span<const std::byte> from(answer);
    const reply kind = read<reply>(from);
    if (kind != reply::value) throw_failure(kind, from, rank);
    answer.erase(answer.begin(), answer.begin() + sizeof(reply));
    co_return answer;
}

// Takes the reply when it comes. If there is no memory for the task, the tag is not used again.
void remote_service::abandon(int rank, int tag) noexcept {
    try {
        execution::spawn(drop_reply(rank, tag), listeners_.get_token(),
                         [](const std::exception_ptr&) noexcept {});
    } catch (const std::exception&) {
    }
}

// MPI drops what is longer than the memory, so this takes a reply of any size.
task<> remote_service::drop_reply(int rank, int tag) {
    std::array<std::byte, 1> dropped;
    std::error_code error;
    co_await receive(own_, dropped, {rank, tag}, use_await[error]);
    if (!error || error == errc::truncated) give_tag(tag);
}

task<> remote_service::serve() {
    while (true) {
        bytes message;
        const envelope e = co_await receive_all(own_, message, {any_source, request_tag});
        execution::spawn(execution::starts_on(default_pool().get_scheduler(),
                                              handle(e.source, std::move(message))),
                         handlers_.get_token(), end_service(own_));
    }
}

// The caller waits for a reply. If there is no memory for the right one, or it is too long for MPI,
// it gets that error instead. If there is none for that either, the service ends.
task<> remote_service::handle(int source, bytes message) {
    std::span<const std::byte> from(message);
    const request_header header = read<request_header>(from);
    const address caller{source, header.reply_tag};
    std::error_code error;
    try {
        const bytes answer = header.function < table_.size()
                                 ? result_or_failure(table_[header.function], from)
                                 : reply_of_text(
                                       "mpi::remote: no such function; all processes must "
                                       "name the same functions");
        co_await send(own_, answer, caller, use_await[error]);
    } catch (const std::bad_alloc&) {
        error = std::make_error_code(std::errc::not_enough_memory);
    }
    if (!is_of_size(error)) co_return;
    const std::array<reply_of_code, 1> instead{{{number_of(error.category()), error.value()}}};
    co_await send(own_, instead, caller);
}

}  // namespace coppice::mpi::internal
