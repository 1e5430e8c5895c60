// Opens with openat2(RESOLVE_BENEATH), so that no spelling of a path leaves the root.
#include "static_files.hpp"

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <cerrno>
#include <system_error>
#include <utility>

namespace serve {

namespace {

using coppice::http::response;
using coppice::http::static_text;

struct media_type {
    std::string_view ending;
    static_text type;
};
constexpr media_type media_types[] = {
    {".html", "text/html; charset=utf-8"},
    {".css", "text/css; charset=utf-8"},
    {".js", "text/javascript; charset=utf-8"},
    {".json", "application/json"},
    {".txt", "text/plain; charset=utf-8"},
    {".svg", "image/svg+xml"},
    {".png", "image/png"},
    {".jpg", "image/jpeg"},
    {".webp", "image/webp"},
    {".ico", "image/x-icon"},
    {".wasm", "application/wasm"},
};

static_text type_of(std::string_view path) {
    for (const media_type& m : media_types) {
        if (path.ends_with(m.ending)) return m.type;
    }
    return "application/octet-stream";
}

class opened_file {
public:
    explicit opened_file(int fd) noexcept : fd_(fd) {}
    opened_file(const opened_file&) = delete;
    ~opened_file() {
        if (fd_ >= 0) ::close(fd_);
    }
    int get() const noexcept { return fd_; }

private:
    int fd_;
};

}  // namespace

static_files::static_files(const std::string& root)
    : root_(::open(root.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)) {
    if (root_ < 0 || ::access(root.c_str(), R_OK | X_OK) != 0) {
        const int error = errno;
        if (root_ >= 0) ::close(root_);
        throw std::system_error(error, std::system_category(), root);
    }
}

static_files::static_files(static_files&& other) noexcept : root_(std::exchange(other.root_, -1)) {}

static_files::~static_files() {
    if (root_ >= 0) ::close(root_);
}

response static_files::answer(const std::string& path) const {
    open_how how{};
    how.flags = O_RDONLY | O_CLOEXEC | O_NONBLOCK;  // a FIFO must not hold the loop
    how.resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS;
    const opened_file file(
        static_cast<int>(::syscall(SYS_openat2, root_, path.c_str(), &how, sizeof how)));
    if (file.get() < 0) {
        return response::status(errno == EMFILE || errno == ENFILE ? 503 : 404);
    }
    struct stat status{};
    if (::fstat(file.get(), &status) != 0 || !S_ISREG(status.st_mode)) return response::status(404);
    const auto size = static_cast<std::size_t>(status.st_size);
    if (size > file_bytes_max) return response::status(503, "the file is too large to serve yet");
    std::string content(size, '\0');
    std::size_t read = 0;
    while (read != size) {
        const ssize_t n =
            ::pread(file.get(), content.data() + read, size - read, static_cast<off_t>(read));
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) return response::status(500);  // changed or broken while it was read
        read += static_cast<std::size_t>(n);
    }
    return response(200).body(std::move(content)).content_type(type_of(path));
}

}  // namespace serve
