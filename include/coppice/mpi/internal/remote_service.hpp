// remote_service: carries the calls of remote.hpp to other processes, and serves theirs.
#pragma once
// A request is a message with tag 0: which function, the tag for the reply, and the arguments. A
// service has a communicator of its own. Its listener receives requests, and a worker of the
// default pool calls each and sends the reply. A tag is used again only after its reply has come.
// If a call was stopped, the listener's scope waits for that reply instead.

#include <coppice/base/lifetime.hpp>
#include <coppice/exec/scope.hpp>
#include <coppice/mpi/communicator.hpp>
#include <coppice/mpi/internal/bytes.hpp>
#include <coppice/task/task.hpp>

#include <cstdint>
#include <mutex>
#include <span>
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
    class reply_tag;

    task<> serve();
    task<> handle(int source, bytes message);
    task<> drop_reply(int rank, int tag);
    void abandon(int rank, int tag) noexcept;
    int take_tag();
    void give_tag(int tag) noexcept;

    communicator own_;
    std::span<const function> table_;
    execution::counting_scope handlers_;   // of calls by others
    execution::counting_scope listeners_;  // for requests, and for replies to abandoned calls
    std::mutex mutex_;                     // of the two below
    std::vector<int> free_tags_;           // has room for all
    int last_tag_ = 0;
};

}  // namespace coppice::mpi::internal
