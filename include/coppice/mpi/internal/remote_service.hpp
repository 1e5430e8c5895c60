// remote_service: carries the calls of remote.hpp to other processes, and serves theirs.
#pragma once
// A request is a message of which function and the arguments. Its tag has the number of the call,
// as that of the reply has. A service has a communicator of its own. One probe looks for messages
// of all kinds, so what a turn costs does not depend on how many calls wait. The listener begins to
// receive a message before it looks for the next one. A worker of the default pool calls the
// function of a request, and sends the reply. If there is no memory for that, the listener drops
// the request, and its reply is the error.
//
// A number is used again only after its reply has come. A call that was stopped has left the table,
// and its late reply is dropped.

#include <coppice/base/lifetime.hpp>
#include <coppice/exec/scope.hpp>
#include <coppice/mpi/communicator.hpp>
#include <coppice/mpi/internal/bytes.hpp>
#include <coppice/mpi/internal/service.hpp>
#include <coppice/sync/oneshot.hpp>
#include <coppice/task/task.hpp>
#include <coppice/token/block_latch.hpp>

#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <system_error>
#include <vector>

namespace coppice::mpi::internal {

class remote_service : immovable {
public:
    // Calls a function with arguments that it reads, and writes its result.
    using function = void (*)(std::span<const std::byte> arguments, bytes& result);

    remote_service(const communicator& over, std::span<const function> table);
    ~remote_service();

    // Calls table[index], and returns the bytes of its result. Errors: those of remote().
    task<bytes> call(int rank, std::uint32_t index, bytes arguments);

private:
    // What a call waits for. Shared by the call and by the listener, which outlives it.
    struct awaited_reply {
        bytes answer;
        oneshot<std::error_code> has_come;
    };
    using reply_place = std::shared_ptr<awaited_reply>;
    class numbered_call;

    task<> listen(task<> serving);
    task<> serve();
    bool begin_request(envelope e) noexcept;
    task<> take_request(envelope e, bytes message);
    bool begin_handling(address caller, bytes message) noexcept;
    bool begin_reply(envelope e, const reply_place& place) noexcept;
    task<> take_reply(envelope e, reply_place place);
    task<> handle(address caller, bytes message);
    int add_call(const reply_place& place);
    // Returns true if a call has had this number.
    bool has_made_call(int number) noexcept;
    reply_place remove_call(int number) noexcept;
    void free_number(int number, std::error_code received) noexcept;
    void leave_call(int number, const reply_place& place, bool was_sent) noexcept;
    void end_calls(std::error_code error) noexcept;
    // Blocks until the replies to all calls have come, or none will come any longer.
    void wait_for_replies() noexcept;
    // Wakes wait_for_replies() if it is time. Called under the lock.
    void note_end_of_call() noexcept;

    std::span<const function> table_;
    execution::counting_scope handlers_;   // of calls by others
    execution::counting_scope listeners_;  // receive messages
    bool refuses_next_ = false;  // used by the listeners: there is no memory for a request
    std::mutex mutex_;           // of the four below
    // At the number of a call, from 1 on. Null: it is free, or the call has left.
    std::vector<reply_place> calls_{nullptr};
    std::vector<int> free_numbers_;  // has room for all
    std::error_code end_;            // why no reply will come
    bool is_closing_ = false;        // wait_for_replies() waits
    block_latch have_all_come_;
    service service_{listen(serve())};
    communicator own_;
};

}  // namespace coppice::mpi::internal
