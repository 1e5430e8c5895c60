// Calls of functions in other processes, on both sides.
#include <coppice/mpi/internal/remote_service.hpp>

#include <coppice/base/internal/check.hpp>
#include <coppice/exec/spawn.hpp>
#include <coppice/exec/sync_wait.hpp>
#include <coppice/exec/write_env.hpp>
#include <coppice/mpi/call.hpp>
#include <coppice/mpi/collective.hpp>
#include <coppice/mpi/error.hpp>
#include <coppice/mpi/internal/share.hpp>
#include <coppice/mpi/message.hpp>
#include <coppice/mpi/remote.hpp>
#include <coppice/token/block.hpp>
#include <coppice/token/use_await.hpp>

#include <mpi.h>
#include <array>
#include <cstddef>
#include <exception>
#include <memory>
#include <new>
#include <string>
#include <system_error>

namespace coppice::mpi::internal {

namespace {

// Tags are twice the number of the call, and one more for a reply. Every implementation has 32767.
constexpr std::size_t last_possible_number = 16383;
constexpr int request_tag(int number) noexcept {
    return 2 * number;
}
constexpr int reply_tag(int number) noexcept {
    return 2 * number + 1;
}
constexpr bool is_reply(int tag) noexcept {
    return tag % 2 != 0;
}
constexpr int number_of_call(int tag) noexcept {
    return tag / 2;
}

// What a reply begins with. The result follows, or the category and the code, or the text.
enum class reply : std::uint32_t { value, code, text };
enum class known_category : std::uint32_t { generic, system, mpi, none };

known_category number_of(const std::error_category& c) noexcept {
    if (c == std::generic_category()) return known_category::generic;
    if (c == std::system_category()) return known_category::system;
    return c == mpi_category() ? known_category::mpi : known_category::none;
}

// A reply that needs no other memory.
struct reply_of_code {
    explicit reply_of_code(std::error_code e) noexcept
        : category(number_of(e.category())), value(e.value()) {}
    reply kind = reply::code;
    known_category category;
    std::int32_t value;
};

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
        const reply_of_code known(e.code());
        if (known.category == known_category::none || !e.code()) return reply_of_text(e.what());
        bytes made;
        write(made, known);
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

// Returns the reply to a request, which is the index of a function and the arguments. Errors:
// std::bad_alloc.
bytes reply_to(std::span<const std::byte> request,
               std::span<const remote_service::function> table) {
    try {
        const std::uint32_t index = read<std::uint32_t>(request);
        if (index >= table.size())
            return reply_of_text(
                "mpi::remote: no such function; all processes must name the same functions");
        bytes made;
        write(made, reply::value);
        table[index](request, made);
        return made;
    } catch (...) {
        return reply_of(std::current_exception());
    }
}

// Receives what is thrown away. Nothing reads it.
constexpr std::size_t piece_bytes = 4096;
alignas(64) std::byte thrown_away[piece_bytes];

// Receives a message of any size, all pieces into the same memory. A receive with too little memory
// would drop the rest too, but Open MPI 4.1 then writes beyond the memory if it reads the message
// from the other process's memory.
// MPI's standard does not allow a type whose pieces overlap for a receive. Open MPI 4.1 and MPICH
// 4.0 receive into it.
int receive_nowhere(MPI_Comm over, const envelope& e, MPI_Request* made) noexcept {
    const int pieces = static_cast<int>((e.count + piece_bytes - 1) / piece_bytes);
    MPI_Datatype piece = MPI_DATATYPE_NULL, again = MPI_DATATYPE_NULL;
    int code = ::MPI_Type_contiguous(piece_bytes, MPI_BYTE, &piece);
    if (code != MPI_SUCCESS) return code;
    code = ::MPI_Type_create_resized(piece, 0, 0, &again);
    if (code == MPI_SUCCESS) {
        code = ::MPI_Type_commit(&again);
        if (code == MPI_SUCCESS)
            code = ::MPI_Irecv(thrown_away, pieces, again, e.source, e.tag, over, made);
        ::MPI_Type_free(&again);  // MPI keeps it until the receive has ended
    }
    ::MPI_Type_free(&piece);
    return code;
}

// Return senders of what a listener does without memory of ours. Its process would hold the others
// if it could not.
auto drop(const communicator& over, const envelope& e, std::error_code& error) noexcept {
    const MPI_Comm handle = over.native_handle();
    return mpi::call(
        over, [handle, e](MPI_Request* made) noexcept { return receive_nowhere(handle, e, made); },
        use_await[error]);
}
auto send_code(const communicator& over, const reply_of_code& code, address caller) noexcept {
    call_arguments a(over, kind::send);
    a.from = memory_of(std::span<const reply_of_code>(&code, 1));
    a.to_rank = caller.rank;
    a.to_tag = caller.tag;
    a.holds_others = true;
    return initiate<named_request<kind::send>>(a, use_await);
}

}  // namespace

// The number of a call. At the end of the call it is free, unless the reply is still to come.
class remote_service::numbered_call : immovable {
public:
    explicit numbered_call(remote_service& service)
        : service_(service),
          place_(std::make_shared<awaited_reply>()),
          number_(service.add_call(place_)) {}
    ~numbered_call() { service_.leave_call(number_, place_, !sent_); }
    int number() const noexcept { return number_; }
    awaited_reply& reply() const noexcept { return *place_; }
    // How the send of the request has ended. It is written when the send ends, also if the task's
    // scheduler has ended meanwhile, so that the task does not continue.
    std::error_code& sent() noexcept { return sent_; }

private:
    remote_service& service_;
    reply_place place_;
    int number_;
    std::error_code sent_ = std::make_error_code(std::errc::operation_canceled);
};

remote_service::remote_service(const communicator& over, std::span<const function> table)
    : table_(table), own_(over.duplicate()) {
    service_.start(own_, listeners_.get_token());
}

// After the first barrier only functions that run make calls, and their callers' numbers are not
// free before they have returned. After the second one each process has got the replies to all of
// its calls, also to those that were stopped. So no message is left. MPI gives
// the number of a communicator that has ended to the next one, which would receive the message. If
// a process has failed, the barriers fail at once, the listener ends with an error, and only the
// functions that run are waited for.
remote_service::~remote_service() {
    std::error_code error;
    barrier(own_, block[error]);
    if (!error) wait_for_replies();
    barrier(own_, block[error]);
    this_thread::sync_wait(handlers_.join());
    listeners_.request_stop();
    this_thread::sync_wait(listeners_.join());
}

void remote_service::wait_for_replies() noexcept {
    {
        const std::scoped_lock lock(mutex_);
        is_closing_ = true;
        note_end_of_call();
    }
    have_all_come_.wait();
}

void remote_service::note_end_of_call() noexcept {
    const bool none_waits = free_numbers_.size() + 1 == calls_.size();
    if (!is_closing_ || !(end_ || none_waits)) return;
    is_closing_ = false;
    have_all_come_.set();
}

int remote_service::add_call(const reply_place& place) {
    const std::scoped_lock lock(mutex_);
    if (end_) throw std::system_error(end_, "mpi::remote");
    if (!free_numbers_.empty()) {
        const int number = free_numbers_.back();
        free_numbers_.pop_back();
        calls_[static_cast<std::size_t>(number)] = place;
        return number;
    }
    const std::size_t next = calls_.size();
    if (next > last_possible_number)
        throw std::system_error(make_error_code(errc::no_resources),
                                "mpi::remote: more than 16383 calls wait for a reply");
    if (free_numbers_.capacity() < next) free_numbers_.reserve(2 * next);
    calls_.push_back(place);
    return static_cast<int>(next);
}

bool remote_service::has_made_call(int number) noexcept {
    const std::scoped_lock lock(mutex_);
    return number > 0 && static_cast<std::size_t>(number) < calls_.size();
}

// Returns null if the call has left.
remote_service::reply_place remote_service::remove_call(int number) noexcept {
    const std::scoped_lock lock(mutex_);
    return std::move(calls_[static_cast<std::size_t>(number)]);
}

// Called after the receive of a reply. If it has failed, the message stays, and the next probe
// finds it: the number is not free.
void remote_service::free_number(int number, std::error_code received) noexcept {
    if (received) return;
    const std::scoped_lock lock(mutex_);
    free_numbers_.push_back(number);
    note_end_of_call();
}

void remote_service::leave_call(int number, const reply_place& place, bool was_sent) noexcept {
    const std::scoped_lock lock(mutex_);
    reply_place& listed = calls_[static_cast<std::size_t>(number)];
    if (listed != place) return;  // the reply has come
    listed = nullptr;
    if (was_sent) return;
    free_numbers_.push_back(number);
    note_end_of_call();
}

// A call may end inside send(), and takes the lock then.
void remote_service::end_calls(std::error_code error) noexcept {
    for (std::size_t number = 1;; ++number) {
        reply_place place;
        {
            const std::scoped_lock lock(mutex_);
            end_ = error;
            note_end_of_call();
            if (number == calls_.size()) return;
            place = std::move(calls_[number]);
        }
        if (place) place->has_come.send(error);
    }
}

task<bytes> remote_service::call(int rank, std::uint32_t index, bytes arguments) {
    if (rank < 0 || rank >= own_.size())
        throw std::system_error(make_error_code(errc::invalid_rank), "mpi::remote");
    numbered_call own(*this);
    const auto first = std::as_bytes(std::span<const std::uint32_t, 1>(&index, 1));
    arguments.insert(arguments.begin(), first.begin(), first.end());
    co_await send(own_, arguments, {rank, request_tag(own.number())}, use_await[own.sent()]);
    std::error_code error = own.sent();
    if (!error) error = co_await own.reply().has_come.receive();
    if (error) throw std::system_error(error, "mpi::remote");
    bytes answer = std::move(own.reply().answer);
    std::span<const std::byte> from(answer);
    const reply kind = read<reply>(from);
    if (kind != reply::value) throw_failure(kind, from, rank);
    answer.erase(answer.begin(), answer.begin() + sizeof(reply));
    co_return answer;
}

// If the listener ends with an error, no reply comes any longer.
task<> remote_service::listen(task<> serving) {
    try {
        co_await std::move(serving);
    } catch (const std::system_error& e) {
        end_calls(e.code());
        throw;
    } catch (...) {
        end_calls(make_error_code(errc::process_failed));
        throw;
    }
}

// Continues on the environment's thread, since its environment names no scheduler. What it spawns
// begins to receive before the next probe, which therefore does not find the same message.
task<> remote_service::serve() {
    while (true) {
        const envelope e = co_await probe<std::byte>(own_, {any_source, any_tag});
        const int number = number_of_call(e.tag);
        reply_place place;
        if (is_reply(e.tag)) {
            COPPICE_CHECK(has_made_call(number),
                          "mpi::remote: a reply to no call. An ended communicator has left this "
                          "message: receive all messages of a communicator before it ends");
            place = remove_call(number);
            if (begin_reply(e, place)) continue;
        } else if (!std::exchange(refuses_next_, false) && begin_request(e)) {
            continue;
        }
        std::error_code error;
        co_await drop(own_, e, error);
        const std::error_code missing = std::make_error_code(std::errc::not_enough_memory);
        if (is_reply(e.tag)) {
            free_number(number, error);
            if (place) place->has_come.send(missing);
        } else if (!error) {
            const reply_of_code instead(missing);
            co_await send_code(own_, instead, {e.source, reply_tag(number)});
        }
    }
}

// Returns false if there is no memory for the request.
bool remote_service::begin_request(envelope e) noexcept {
    try {
        execution::spawn(take_request(e, bytes(e.count)), listeners_.get_token(),
                         end_service(own_));
        return true;
    } catch (const std::bad_alloc&) {
        return false;
    }
}

// If there is no memory for the copy that a watch for failures needs, MPI still has the request,
// and the next probe finds it again. The listener refuses the next request that it finds, so it
// does not try forever.
task<> remote_service::take_request(envelope e, bytes message) {
    std::error_code error;
    co_await receive(own_, message, {e.source, e.tag}, use_await[error]);
    if (error == std::errc::not_enough_memory) {
        refuses_next_ = true;
        co_return;
    }
    if (error) throw std::system_error(error, "mpi::remote");
    const address caller{e.source, reply_tag(number_of_call(e.tag))};
    if (begin_handling(caller, std::move(message))) co_return;
    const reply_of_code instead(std::make_error_code(std::errc::not_enough_memory));
    co_await send_code(own_, instead, caller);
}

// Returns false if there is no memory for the task.
bool remote_service::begin_handling(address caller, bytes message) noexcept {
    try {
        execution::spawn(handle(caller, std::move(message)), handlers_.get_token(),
                         end_service(own_));
        return true;
    } catch (const std::bad_alloc&) {
        return false;
    }
}

// Returns false if there is no memory for the task.
bool remote_service::begin_reply(envelope e, const reply_place& place) noexcept {
    try {
        execution::spawn(take_reply(e, place), listeners_.get_token(), end_service(own_));
        return true;
    } catch (const std::bad_alloc&) {
        return false;
    }
}

// Drops the reply to a call that has left, or for which there is no memory.
task<> remote_service::take_reply(envelope e, reply_place place) {
    bool has_memory = false;
    std::error_code error;
    try {
        if (place) place->answer.resize(e.count);
        has_memory = place != nullptr;
    } catch (const std::bad_alloc&) {
    }
    if (has_memory) {
        co_await receive(own_, place->answer, {e.source, e.tag}, use_await[error]);
    } else {
        co_await drop(own_, e, error);
    }
    free_number(number_of_call(e.tag), error);
    if (!place) co_return;
    if (!has_memory) error = std::make_error_code(std::errc::not_enough_memory);
    place->has_come.send(error);
}

// Goes on to a worker, and to the environment's thread again, since its environment names no
// scheduler. The caller waits for a reply. If the right one cannot be sent, because there is no
// memory or it is too long for MPI, the caller gets that error instead. If that cannot be sent
// either, the service ends.
task<> remote_service::handle(address caller, bytes message) {
    std::error_code error;
    try {
        const std::exception_ptr no_worker =
            co_await execution::unstoppable(on_default_pool([]() noexcept {}));
        const bytes answer = no_worker ? reply_of(no_worker) : reply_to(message, table_);
        co_await send(own_, answer, caller, use_await[error]);
    } catch (const std::bad_alloc&) {
        error = std::make_error_code(std::errc::not_enough_memory);
    }
    if (!error || error == errc::process_failed) co_return;
    const reply_of_code instead(error);
    co_await send_code(own_, instead, caller);
}

}  // namespace coppice::mpi::internal
