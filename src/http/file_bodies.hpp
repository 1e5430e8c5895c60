// Bodies from an open file, the whole file or parts of it; for http/files.hpp.
#pragma once

#include <coppice/http/body.hpp>
#include <coppice/http/message.hpp>

#include "file_tree.hpp"

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace coppice::http {

// Reads up to `size` bytes at `offset`. Returns how many: fewer at the end of the file, or after an
// error.
std::size_t read_at(int file, char* to, std::size_t size, std::uint64_t offset) noexcept;

struct byte_range {
    std::uint64_t first;
    std::uint64_t size;  // 0: the range has no byte of the file
};

// Returns "bytes 0-9/100", for Content-Range.
std::string content_range(const byte_range& part, std::uint64_t size);

// Makes a body of a part of a file. The kernel sends it, or it is sent in pieces if a filter needs
// to see them. If the file is truncated meanwhile, the connection ends with a reset, so the client
// never takes a part for the whole.
std::shared_ptr<body_source> part_of_file(std::shared_ptr<const owned_file> file,
                                          const byte_range& part);

// Makes a body of several parts of a file, each with its own head (RFC 9110 section 14.6), and sets
// their media type.
std::shared_ptr<body_source> parts_of_file(std::shared_ptr<const owned_file> file,
                                           std::vector<byte_range> parts, std::uint64_t size,
                                           std::string_view type);
static_text type_of_parts();

}  // namespace coppice::http
