// files: serves the files of one directory, with conditions and ranges; nothing leads out of it.
#pragma once
// The kernel resolves each path beneath the directory (openat2 with RESOLVE_BENEATH), so that no
// spelling and no link leads out of it, even while links change. If that call is missing or
// forbidden, which the constructor detects, the path is walked directory by directory instead, and
// every link is refused. What is not a regular file counts as missing. Small files are copied into
// the answer. The kernel sends larger ones (sendfile) without copying them through the process's
// memory.
//
// Fields: Content-Type by the ending of the name, Last-Modified, a strong ETag, and Accept-Ranges.
// If-Match, If-Unmodified-Since, If-None-Match, and If-Modified-Since are evaluated in the order of
// RFC 9110 section 13.2.2. Range: up to 16 ranges, subject to If-Range. Several ranges are answered
// with multipart/byteranges, and overlapping ranges with the whole file.
//
// The ETag is computed from the file system, the inode, the size, and the two times in nanoseconds,
// one of which no program can set. Another file of the same size and time therefore has another
// tag, and so has the same file on another machine. The tag cannot tell apart two changes in place
// that leave the size as it was and happen within one tick of the kernel's clock (up to 10 ms):
// replace files by rename. A client that asks by date (If-Range, If-Modified-Since) depends on
// Last-Modified alone, which programs can set. If a file is truncated while it is sent, the
// connection ends with a reset.

#include <coppice/http/message.hpp>

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace coppice::http {

// What http::files serves, and which fields it adds.
struct files_options {
    // If true, names that start with '.' are served, such as .git, .env, and .htpasswd. Each part
    // of the path counts. .well-known (RFC 8615) is always served. For a link, its own name counts,
    // not that of its target.
    bool hidden = false;
    // The name of the file that is served for a directory, such as "index.html"; "": directories
    // get 404. The path of a directory without the last '/' is redirected to the path with it.
    std::string index = {};
    // The value of Cache-Control, such as "public, max-age=3600"; "": no such field.
    std::string cache_control = {};
    // If true, clients that accept gzip get FILE.gz, if it exists and is not older than FILE. It
    // has its own ETag and ranges, and the answer says Vary. FILE itself must exist for the other
    // clients.
    bool gzip_siblings = false;
    // If true, answers say X-Content-Type-Options: nosniff. Browsers then trust the Content-Type,
    // and never run as a script what was uploaded as text.
    bool nosniff = true;
    // Endings and their media types, such as {".gpx", "application/gpx+xml"}. They override those
    // of media_type_of().
    std::vector<std::pair<std::string, std::string>> media_types = {};
};

// A handler for routes that end in {path...}: routes.get("/static/{path...}", http::files(root)).
// Copyable. Threads: any. Blocks: for the disk, if a file is not in memory. Lifetime: outlives its
// answers, as a router's handlers do.
class files {
public:
    // Files of up to this many bytes are read at once and sent with their head.
    static constexpr std::size_t read_bytes_max = 32 * 1024;

    // Opens the directory. Errors: std::system_error if it cannot be opened or searched, or its
    // name has a NUL in it; std::invalid_argument for an index that is not a plain name, and for
    // texts that no field may have.
    explicit files(const std::string& root, files_options options = {});

    // Answers a request. Errors: answers 404 for what does not exist; 503 while the process has no
    // descriptor or memory left.
    response operator()(const request& r) const;

    // Returns true if links that stay beneath the root are followed, false if openat2 is missing or
    // forbidden.
    bool follows_links() const noexcept;

private:
    class directory;
    std::shared_ptr<const directory> root_;
};

// Returns the media type for the ending of a file's name.
static_text media_type_of(std::string_view name) noexcept;

}  // namespace coppice::http
