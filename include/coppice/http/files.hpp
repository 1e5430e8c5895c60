// files: answers with the files of one directory; conditional requests, ranges, no way out.
#pragma once
// The kernel resolves each path beneath the directory (openat2 with RESOLVE_BENEATH), so that no
// spelling and no link leads out of it, also while links change. What is not a regular file does
// not exist. Small files go into the answer; larger ones are sent by the kernel (sendfile), without
// passing through memory.
//
// Fields: Content-Type by the name's ending, Last-Modified, a strong ETag of time and size, and
// Accept-Ranges. If-Match, If-Unmodified-Since, If-None-Match and If-Modified-Since are answered in
// the order of RFC 9110 section 13.2.2. Range: up to 16 ranges, subject to If-Range; several
// are answered with multipart/byteranges, overlapping ones with the whole file.

#include <coppice/http/message.hpp>

#include <memory>
#include <string>
#include <string_view>

namespace coppice::http {

// A handler for routes that end in {path...}: routes.get("/static/{path...}", http::files(root)).
// Copyable. Threads: any. Blocks: for the disk, where a file is not in memory.
class files {
public:
    // Files up to this size are read at once and sent with their head.
    static constexpr std::size_t read_bytes_max = 32 * 1024;

    // Errors: std::system_error if the directory cannot be opened or searched.
    explicit files(const std::string& root);

    // Errors: 404 for what is not there; 503 while the process has no descriptor left.
    response operator()(const request& r) const;

private:
    class directory;
    std::shared_ptr<const directory> root_;
};

// The media type that the ending of a file's name stands for.
static_text media_type_of(std::string_view name) noexcept;

}  // namespace coppice::http
