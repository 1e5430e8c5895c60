// parts_request: the requests of varying.hpp, whose processes give or get parts of any size.
#pragma once
// If the receivers know the sizes, one call moves the parts. Otherwise there are three steps, each
// a collective call: the processes tell each other the sizes, each makes room, and they agree
// whether all have room, also for the copies that a watch for failures needs. So an error at one
// process is an error at all, and none waits for parts that never come.

#include <coppice/mpi/communicator.hpp>
#include <coppice/mpi/internal/element.hpp>
#include <coppice/mpi/internal/request.hpp>
#include <coppice/mpi/partition.hpp>

#include <cstddef>
#include <cstdint>

namespace coppice::mpi::internal {

enum class parts_kind : std::uint8_t { gather, scatter, all_gather, all_to_all };

struct parts_arguments {
    parts_arguments(const communicator& c, parts_kind k) noexcept
        : owner(&communicator_access::owner(c)), over(c.native_handle()), what(k), rank(c.rank()) {}
    engine* owner;
    MPI_Comm over;
    parts_kind what;
    int rank;
    int root = 0;
    memory from;
    memory into;
    const partition* from_parts = nullptr;
    const partition* into_parts = nullptr;
    // Not null: the sizes are not known, and are written here.
    partition* learned = nullptr;
    bool (*resize)(void* container, std::size_t count, memory& into) noexcept = nullptr;
    void* container = nullptr;
    bool holds_others = false;  // see request::hold_others()
};

class parts_request : public request {
public:
    using arguments = parts_arguments;
    using value_type = void;
    static constexpr const char* name = "collective of parts";
    static constexpr bool can_cancel = false;
    explicit parts_request(const parts_arguments& a) noexcept;

protected:
    ~parts_request();

private:
    enum class step : std::uint8_t { tell, agree, move };
    // What MPI reads of a partition: its memory, or a copy.
    struct arrays {
        const int* counts = nullptr;
        const int* offsets = nullptr;
    };

    outcome start(handles& made) noexcept final;
    void keep(const MPI_Status&) noexcept final;
    bool continues() noexcept final;
    bool is_collective() const noexcept final { return true; }
    int tell(MPI_Request& made) noexcept;
    int make_room() noexcept;
    int move(MPI_Request& made) noexcept;
    bool is_too_large() const noexcept;
    int make_type() noexcept;
    void ignore_unused() noexcept;
    bool tells_all() const noexcept;
    bool lend_numbers() noexcept;
    bool lend_parts() noexcept;
    bool lend_arrays(const partition* p, arrays& lent) noexcept;

    parts_arguments call_;
    arrays from_parts_;
    arrays into_parts_;
    MPI_Datatype type_ = MPI_DATATYPE_NULL;
    bool type_is_made_ = false;  // and freed at the end
    step step_;
    void* results_ = nullptr;  // the program's memory, of which call_.into may be a copy
    // What the processes tell each other. Copies, if the engine watches for failures.
    int numbers_[2] = {0, 0};
    int* own_count_ = &numbers_[0];
    int* verdict_ = &numbers_[1];  // the worst of make_room() here, and then of all processes
    int* learned_ = nullptr;       // the counts that come
};

}  // namespace coppice::mpi::internal
