// Bodies that come out of an open file, as a whole or in parts; behind http/files.hpp.
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

// Reads up to `size` bytes at `offset`; fewer at the end of the file, or if it is broken.
std::size_t read_at(int file, char* to, std::size_t size, std::uint64_t offset) noexcept;

struct byte_range {
    std::uint64_t first;
    std::uint64_t size;  // 0: no byte of the file is in the range
};

// "bytes 0-9/100", for Content-Range.
std::string content_range(const byte_range& part, std::uint64_t size);

// A part of a file that is sent by the kernel, or by pieces if a filter wants to see it. A file
// that is cut short meanwhile ends the connection with a reset: its client is never told that the
// part is the whole.
std::shared_ptr<body_source> part_of_file(std::shared_ptr<const owned_file> file,
                                          const byte_range& part);

// Several parts of a file, each with a head of its own (RFC 9110 section 14.6), and their type.
std::shared_ptr<body_source> parts_of_file(std::shared_ptr<const owned_file> file,
                                           std::vector<byte_range> parts, std::uint64_t size,
                                           std::string_view type);
static_text type_of_parts();

}  // namespace coppice::http
