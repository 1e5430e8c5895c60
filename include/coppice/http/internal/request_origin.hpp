// request_origin: what a request knows of its connection, its loop, and its time.
#pragma once

#include <coppice/base/clock.hpp>
#include <coppice/base/internal/namespaces.hpp>
#include <coppice/stop/inplace.hpp>

#include <string>

namespace coppice {
class thread_pool;
}  // namespace coppice

namespace coppice::io {
class context;
}  // namespace coppice::io

namespace coppice::http {
class body_reader;
class peer_address;
class request_marks;
}  // namespace coppice::http

namespace coppice::http::internal {

// Where a request came from, and how long its answer is wanted. The connection owns it.
struct request_origin {
    io::context* loop = nullptr;  // the loop that owns the connection
    int connection = -1;          // its file descriptor
    inplace_stop_token stop;      // requested when the client is gone or the deadline has passed
    time_point deadline = time_point::max();
    time_point arrived{};                   // when its last byte was there; see queued()
    bool followed = false;                  // its connection had answered another one until then
    body_reader* body = nullptr;            // only for handlers declared with read_body()
    const std::string* trailers = nullptr;  // the field lines after a chunked body
    peer_address* peer = nullptr;           // the client's
    request_marks* marks = nullptr;         // its id, and its place in a trace
    thread_pool* pool = nullptr;            // where its handler runs; nullptr: on the loop
};

}  // namespace coppice::http::internal
