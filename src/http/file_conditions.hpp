// What the fields of a request say about a file: conditions and ranges; for http/files.hpp.
#pragma once

#include <coppice/http/message.hpp>

#include "file_bodies.hpp"

#include <sys/stat.h>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace coppice::http {

// Returns a strong entity tag, "\"0123456789abcdef0123456789abcdef\"". It is computed from the file
// system, the inode, the size, and both times in nanoseconds: that of the content, and that of the
// inode, which no program can set. Other content therefore has another tag, also at the same size
// and mtime; a file that replaces another is another inode. The exception is two changes in place
// within one tick of the kernel's clock (up to 10 ms) that leave the size as it was. The tag is a
// hash, so that it does not reveal the inode's number.
std::string etag_of(const struct stat& file);

// Returns the time of the last change for Last-Modified, limited to what a date can express and not
// in the future (RFC 9110 section 8.8.2.1).
std::int64_t modified_at(const struct stat& file, std::int64_t now) noexcept;

// Evaluates a request's conditions for a file (RFC 9110 section 13.2.2). Returns 200 to continue,
// 304, or 412.
int precondition(const request& r, std::string_view etag, std::int64_t modified, std::int64_t now);

// What is sent of a file: nothing for 416, one part or several for 206.
struct selection {
    int status;
    std::vector<byte_range> parts;
};

// Returns the requested ranges of bytes; 200 if the whole file is to be sent. Many or overlapping
// ranges also get the whole file, since they ask for more than the file has (RFC 9110 sections 14.2
// and 17.15).
selection select(const request& r, std::uint64_t size, std::string_view etag, std::int64_t modified,
                 std::int64_t now);

}  // namespace coppice::http
