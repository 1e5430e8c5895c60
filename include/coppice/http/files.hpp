// files: answers with the files of one directory; conditional requests, ranges, no way out.
#pragma once
// The kernel resolves each path beneath the directory (openat2 with RESOLVE_BENEATH), so that no
// spelling and no link leads out of it, also while links change. Where that call is missing or
// forbidden, which is found out at construction, the path is walked from directory to directory
// instead, and every link is refused. What is not a regular file does not exist. Small files go
// into the answer; larger ones are sent by the kernel (sendfile), without passing through memory.
//
// Fields: Content-Type by the name's ending, Last-Modified, a strong ETag and Accept-Ranges.
// If-Match, If-Unmodified-Since, If-None-Match and If-Modified-Since are answered in the order of
// RFC 9110 section 13.2.2. Range: up to 16 ranges, subject to If-Range; several are answered with
// multipart/byteranges, overlapping ones with the whole file.
//
// The ETag follows from the file system, the inode, its size and its two times in nanoseconds, one
// of which no program can set: another file of the same size and time has another tag, and so has
// the same file on another machine. It cannot tell two changes in place that leave the size as it
// was, within one tick of the kernel's clock (up to 10 ms): replace files by rename. A client that
// asks by date (If-Range, If-Modified-Since) has the word of Last-Modified alone, which programs
// can set. A file that is cut short while it is sent ends the connection with a reset.

#include <coppice/http/message.hpp>

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace coppice::http {

// What http::files serves, and what it says beside.
struct files_options {
    // Whether names that start with '.' are served: .git, .env, .htpasswd. Each part of the path
    // counts; .well-known (RFC 8615) is always served. A link's own name counts, not its target's.
    bool hidden = false;
    // The name of the file that answers for a directory, "index.html"; "": directories are 404. A
    // directory's path without the last '/' is redirected to the one with it.
    std::string index = {};
    // The value of Cache-Control, "public, max-age=3600"; "": no such field.
    std::string cache_control = {};
    // Whether FILE.gz, if it is there and no older than FILE, is sent to clients that take gzip:
    // with its own ETag and ranges, and with Vary. FILE itself must be there for the others.
    bool gzip_siblings = false;
    // Whether answers say X-Content-Type-Options: nosniff, so that browsers take the Content-Type
    // for what it says, and never run as a script what was uploaded as a text.
    bool nosniff = true;
    // Endings and their media types, {".gpx", "application/gpx+xml"}; before those of
    // media_type_of().
    std::vector<std::pair<std::string, std::string>> media_types = {};
};

// A handler for routes that end in {path...}: routes.get("/static/{path...}", http::files(root)).
// Copyable. Threads: any. Blocks: for the disk, where a file is not in memory.
// Lifetime: outlives its answers, as a router's handlers do.
class files {
public:
    // Files up to this size are read at once and sent with their head.
    static constexpr std::size_t read_bytes_max = 32 * 1024;

    // Errors: std::system_error if the directory cannot be opened or searched, or its name
    // has a NUL in it; std::invalid_argument for an index that is no plain name, and for texts that
    // no field can have.
    explicit files(const std::string& root, files_options options = {});

    // Errors: 404 for what is not there; 503 while the process has no descriptor or memory left.
    response operator()(const request& r) const;

    // Whether links that stay beneath the root are followed: false where openat2 is missing or
    // forbidden.
    bool follows_links() const noexcept;

private:
    class directory;
    std::shared_ptr<const directory> root_;
};

// The media type that the ending of a file's name stands for.
static_text media_type_of(std::string_view name) noexcept;

}  // namespace coppice::http
