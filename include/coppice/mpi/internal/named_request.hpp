// named_request: the requests of message.hpp and collective.hpp, one for each kind of call.
#pragma once

#include <coppice/mpi/communicator.hpp>
#include <coppice/mpi/internal/element.hpp>
#include <coppice/mpi/internal/request.hpp>

#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace coppice::mpi {

// How reductions combine two numbers. The result of floating-point sums and products may depend on
// the number of processes.
class reduction {
public:
    enum of_numbers : std::uint8_t { sum, product, minimum, maximum };
    // By each bit, and by whether the integers are 0: a logical result is 0 or 1. If there is only
    // one integer to combine, it stays as it is.
    enum only_of_integers : std::uint8_t { bit_and = 4, bit_or, bit_xor, logical_and, logical_or };

    constexpr reduction(of_numbers op) noexcept : op_(op) {}
    // An operation that combines floating-point numbers takes no other.
    reduction(only_of_integers) = delete;  // use integers, or an integer_reduction
    constexpr operator of_numbers() const noexcept { return op_; }

private:
    of_numbers op_;
};

// How reductions combine two integers.
class integer_reduction {
public:
    constexpr integer_reduction(reduction op) noexcept : index_(op) {}
    constexpr integer_reduction(reduction::of_numbers op) noexcept : index_(op) {}
    constexpr integer_reduction(reduction::only_of_integers op) noexcept : index_(op) {}
    // Returns the value of the enumerator.
    constexpr int index() const noexcept { return index_; }

private:
    std::uint8_t index_;
};

// How reductions combine two numbers of type T.
template <class T>
using reduction_of = std::conditional_t<std::is_integral_v<T>, integer_reduction, reduction>;

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
    reduce_scatter,
};

// The arguments of any call; each kind uses some.
struct call_arguments {
    call_arguments(const communicator& c, kind k) noexcept
        : owner(&communicator_access::owner(c)), over(c.native_handle()), what(k) {}
    engine* owner;
    MPI_Comm over;
    kind what;
    integer_reduction op = reduction::sum;  // any
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
    void (*fill)(const memory& into, integer_reduction op) noexcept = nullptr;
};

class call_request : public request {
public:
    using arguments = call_arguments;

protected:
    call_request(call_arguments& a, bool can_cancel) noexcept
        : request(*a.owner, a.over, can_cancel), call_(a) {
        hold_others(a.holds_others);
    }
    ~call_request() = default;
    const envelope& seen() const noexcept { return seen_; }

private:
    outcome start(handles& made) noexcept final;
    void keep(const MPI_Status& status) noexcept final;
    bool is_collective() const noexcept final { return call_.what >= kind::barrier; }
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

// All processes tell each other bits, also if some have failed, or the communicator was revoked.
class agree_request : public request {
public:
    struct arguments {
        engine* owner;
        MPI_Comm over;
        int bits;
    };
    using value_type = int;
    static constexpr const char* name = "agree";
    static constexpr bool can_cancel = false;
    explicit agree_request(const arguments& a) noexcept
        : request(*a.owner, MPI_COMM_NULL, can_cancel), over_(a.over), bits_(a.bits) {}
    int take() const noexcept { return bits_; }
    std::error_code error() const noexcept;

protected:
    ~agree_request() = default;

private:
    outcome start(handles& made) noexcept final;
    void keep(const MPI_Status&) noexcept final;

    MPI_Comm over_;
    int bits_;
    int* agreed_ = &bits_;  // or a copy, if the engine watches for failures
};

inline constexpr const char* names_of_kinds[] = {
    "send",       "receive", "send_receive",   "receive",       "probe",   "barrier",
    "broadcast",  "reduce",  "all_reduce",     "gather",        "scatter", "all_to_all",
    "all_gather", "scan",    "exclusive_scan", "reduce_scatter"};

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
