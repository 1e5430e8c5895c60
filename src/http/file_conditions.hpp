// What the fields of a request say about a file: conditions and ranges; behind http/files.hpp.
#pragma once

#include <coppice/http/message.hpp>

#include "file_bodies.hpp"

#include <sys/stat.h>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace coppice::http {

// A strong entity tag, "\"0123456789abcdef0123456789abcdef\"". It follows from the file system, the
// inode, the size, and both times in nanoseconds: that of the content and that of the inode, which
// no program can set. So another content has another tag, also one of the same size and mtime: a
// file that takes the place of another is another inode. The exception are two changes in place
// within one tick of the kernel's clock (up to 10 ms) that leave the size as it was. It is a hash,
// since an inode's number is nobody's business.
std::string etag_of(const struct stat& file);

// The time of the last change for Last-Modified: within what a date can say, and not in the future
// (RFC 9110 section 8.8.2.1).
std::int64_t modified_at(const struct stat& file, std::int64_t now) noexcept;

// What a request's conditions say about a file (RFC 9110 section 13.2.2): 200 to go on, 304 or 412.
int precondition(const request& r, std::string_view etag, std::int64_t modified, std::int64_t now);

// What is sent of a file: nothing of it for 416, a part or several for 206.
struct selection {
    int status;
    std::vector<byte_range> parts;
};

// The ranges of bytes that are asked for; 200 if the whole file is to be sent: also where they are
// many or overlap, which asks for more than there is (RFC 9110 sections 14.2 and 17.15).
selection select(const request& r, std::uint64_t size, std::string_view etag, std::int64_t modified,
                 std::int64_t now);

}  // namespace coppice::http
