// graph_profile: when each node ran, and on which worker, in a bounded buffer.
#pragma once

#include <coppice/base/internal/atomic.hpp>
#include <coppice/base/lifetime.hpp>
#include <coppice/graph/internal/graph_node.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

namespace coppice::internal {

// Threads: add() by any worker of the run; json() when no run is under way.
class graph_profile : immovable {
public:
    explicit graph_profile(std::size_t events) : events_(new event[events]), capacity_(events) {}

    // Returns the time now. Units: nanoseconds.
    static std::int64_t now() noexcept;
    // Records that a node ran, or waited, from `began` until now. Drops the event if there is no
    // room.
    void add(const graph_node& node, std::int64_t began, bool has_waited) noexcept;
    // Returns the events in the trace event format. Errors: std::bad_alloc.
    std::string json() const;

private:
    // Has a copy of the name, cut to its room: the node of a subgraph may be gone when it is read.
    struct event {
        std::int64_t began;
        std::int64_t ended;
        std::uint32_t index;
        std::uint16_t worker;
        bool has_waited;
        char name[41];
    };
    const std::unique_ptr<event[]> events_;  // each is written by the worker that counted it
    const std::size_t capacity_;
    atomic<std::size_t> count_{0};  // counts dropped events too
};

}  // namespace coppice::internal
