// named_request: the requests of message.hpp and collective.hpp, one for each kind of call.
#pragma once

#include <coppice/mpi/communicator.hpp>
#include <coppice/mpi/internal/element.hpp>
#include <coppice/mpi/internal/request.hpp>

#include <cstddef>
#include <cstdint>

namespace coppice::mpi {

// How reductions combine two numbers. The result of floating-point sums and products may depend on
// the number of processes.
enum class reduction : std::uint8_t { sum, product, minimum, maximum };

}  // namespace coppice::mpi

namespace coppice::mpi::internal {

// The operations, one enumerator each.
enum class kind : std::uint8_t {
    send,
    receive,
    send_receive,
    receive_all,
    probe,
    barrier,
    broadcast,
    reduce,
    all_reduce,
    gather,
    scatter,
    all_to_all,
    all_gather,
    scan,
    exclusive_scan,
};

// The arguments of any call; each kind uses some.
struct call_arguments {
    call_arguments(const communicator& c, kind k) noexcept
        : owner(&communicator_access::owner(c)), over(c.native_handle()), what(k) {}
    engine* owner;
    MPI_Comm over;
    kind what;
    reduction op = reduction::sum;
    memory from;
    memory into;
    int to_rank = 0;  // or the root
    int to_tag = 0;
    address source{0, 0};
    // Gives `container` the size of a message, for receive_all; false: no memory.
    bool (*resize)(void* container, std::size_t count, memory& into) noexcept = nullptr;
    void* container = nullptr;
    bool holds_others = false;  // see request::hold_others()
    // Writes the result that MPI leaves out, once the call has completed.
    void (*fill)(const memory& into, reduction op) noexcept = nullptr;
};

class call_request : public request {
public:
    using arguments = call_arguments;

protected:
    call_request(call_arguments& a, bool can_cancel) noexcept
        : request(*a.owner, can_cancel), call_(a) {
        hold_others(a.holds_others);
    }
    ~call_request() = default;
    const envelope& seen() const noexcept { return seen_; }

private:
    outcome start(handles& made) noexcept final;
    void keep(const MPI_Status& status) noexcept final;
    int start_message(handles& made) noexcept;
    int start_collective(MPI_Request& made) noexcept;
    bool lend_memory() noexcept;
    void return_results() noexcept;
    void see(const MPI_Status& status) noexcept;
    bool receives() const noexcept {
        return call_.what < kind::barrier && call_.what != kind::send;
    }
    int look(bool take, handles& made, bool& found) noexcept;

    call_arguments& call_;  // those of the initiation
    memory results_;        // the program's memory, if call_.into is a copy
    envelope seen_{0, 0, 0};
};

inline constexpr const char* names_of_kinds[] = {
    "send",    "receive",    "send_receive", "receive",    "probe",
    "barrier", "broadcast",  "reduce",       "all_reduce", "gather",
    "scatter", "all_to_all", "all_gather",   "scan",       "exclusive_scan"};

template <kind K>
inline constexpr bool has_envelope =
    K == kind::receive || K == kind::send_receive || K == kind::receive_all || K == kind::probe;

template <kind K>
class named_request : public call_request {
public:
    static constexpr const char* name = names_of_kinds[static_cast<int>(K)];
    static constexpr bool can_cancel = has_envelope<K> && K != kind::send_receive;
    using value_type = std::conditional_t<has_envelope<K>, envelope, void>;
    explicit named_request(call_arguments& a) noexcept : call_request(a, can_cancel) {}
    envelope take() const noexcept { return seen(); }

protected:
    ~named_request() = default;
};

}  // namespace coppice::mpi::internal
