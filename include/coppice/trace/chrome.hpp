// chrome: writes event logs as a trace file for Chrome's about:tracing and ui.perfetto.dev.
#pragma once

#include <coppice/trace/event_log.hpp>

#include <cstdint>
#include <span>
#include <string>

namespace coppice::trace {

// One horizontal line of the picture: the events of one log.
struct track {
    std::string name;      // the label of the line
    const event_log* log;  // must outlive the call that is given the track
};

// Returns the logs as JSON in the trace event format. The events of a track keep the order of their
// log. Each begin has an end: a begin that is still open ends at `now_ns`. Times are microseconds
// since the earliest event of all logs. The number of dropped events is in otherData and at the end
// of their track.
// Threads: any, also while the logs are being written. Errors: std::bad_alloc. Cost: O(events).
// Source: the Trace Event Format of the Chromium project.
std::string chrome_json(std::span<const track> tracks, std::int64_t now_ns);

// Writes `content` to the file at `path` and replaces its former content. Blocks: on the file
// system. Errors: std::system_error if the file cannot be opened or written, or if `path` contains
// a NUL.
void write_file(const std::string& path, const std::string& content);

}  // namespace coppice::trace
