// chrome: event logs as a trace that Chrome's about:tracing and ui.perfetto.dev open.
#pragma once

#include <coppice/trace/event_log.hpp>

#include <cstdint>
#include <span>
#include <string>

namespace coppice::trace {

// One line of the picture.
struct track {
    std::string name;
    const event_log* log;  // alive during the call that is given the track
};

// The logs as JSON in the trace event format. Every track's events are in the order of its log, and
// balanced: what had not ended is ended at `now_ns`. Times are in microseconds since the first
// event of all. Dropped events are counted in otherData and marked at the end of their track.
// Threads: any, also while the logs are written. Errors: std::bad_alloc. Cost: O(events).
// Source: the Trace Event Format of the Chromium project.
std::string chrome_json(std::span<const track> tracks, std::int64_t now_ns);

// Replaces the file at `path`. Errors: std::system_error; also for a name with a NUL in
// it. Blocks: on the file system.
void write_file(const std::string& path, const std::string& content);

}  // namespace coppice::trace
