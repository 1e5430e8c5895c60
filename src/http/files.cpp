// Opening, conditions and ranges of http/files.hpp.
#include <coppice/http/body.hpp>
#include <coppice/http/date.hpp>
#include <coppice/http/files.hpp>
#include <coppice/http/scan.hpp>

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <algorithm>
#include <cerrno>
#include <charconv>
#include <ctime>
#include <random>
#include <system_error>
#include <vector>

namespace coppice::http {

namespace {

struct media_type {
    std::string_view ending;
    static_text type;
};
constexpr media_type media_types[] = {
    {".html", "text/html; charset=utf-8"},
    {".htm", "text/html; charset=utf-8"},
    {".css", "text/css; charset=utf-8"},
    {".js", "text/javascript; charset=utf-8"},
    {".mjs", "text/javascript; charset=utf-8"},
    {".json", "application/json"},
    {".map", "application/json"},
    {".txt", "text/plain; charset=utf-8"},
    {".md", "text/markdown; charset=utf-8"},
    {".csv", "text/csv; charset=utf-8"},
    {".xml", "application/xml"},
    {".svg", "image/svg+xml"},
    {".png", "image/png"},
    {".jpg", "image/jpeg"},
    {".jpeg", "image/jpeg"},
    {".gif", "image/gif"},
    {".webp", "image/webp"},
    {".avif", "image/avif"},
    {".ico", "image/x-icon"},
    {".pdf", "application/pdf"},
    {".wasm", "application/wasm"},
    {".woff", "font/woff"},
    {".woff2", "font/woff2"},
    {".ttf", "font/ttf"},
    {".mp3", "audio/mpeg"},
    {".ogg", "audio/ogg"},
    {".mp4", "video/mp4"},
    {".webm", "video/webm"},
    {".gz", "application/gzip"},
    {".zip", "application/zip"},
};

class owned_file : immovable {
public:
    explicit owned_file(int fd) noexcept : fd_(fd) {}
    ~owned_file() {
        if (fd_ >= 0) ::close(fd_);
    }
    int get() const noexcept { return fd_; }

private:
    int fd_;
};

// Reads up to `size` bytes at `offset`; fewer at the end of the file, or if it is broken.
std::size_t read_at(int file, char* to, std::size_t size, std::uint64_t offset) noexcept {
    std::size_t read = 0;
    while (read != size) {
        const ssize_t n = ::pread(file, to + read, size - read, static_cast<off_t>(offset + read));
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) break;
        read += static_cast<std::size_t>(n);
    }
    return read;
}

// A part of a file that is sent by the kernel, or by pieces if a filter wants to see it.
class file_body final : public body_source {
public:
    file_body(std::shared_ptr<const owned_file> file, std::uint64_t offset, std::uint64_t size)
        : file_(std::move(file)), part_{file_->get(), offset, size} {}
    std::optional<std::uint64_t> length() const noexcept override { return part_.size; }
    std::optional<file_part> file() const noexcept override { return part_; }
    task<> write_to(body_writer& out) override {
        std::string piece(std::size_t{16} * 1024, '\0');
        for (std::uint64_t done = 0; done != part_.size;) {
            const auto most =
                static_cast<std::size_t>(std::min<std::uint64_t>(piece.size(), part_.size - done));
            const std::size_t n = read_at(part_.file, piece.data(), most, part_.offset + done);
            if (n == 0) break;  // cut short meanwhile: the answer is shorter than it said
            co_await out.write({piece.data(), n});
            done += n;
        }
    }

private:
    std::shared_ptr<const owned_file> file_;
    file_part part_;
};

// "\"5f3a-1c\"": changes with the time of change, in nanoseconds, and the size.
std::string etag_of(const struct stat& s) {
    char text[64];
    char* at = text;
    *at++ = '"';
    const auto ns = static_cast<std::uint64_t>(s.st_mtim.tv_sec) * 1'000'000'000 +
                    static_cast<std::uint64_t>(s.st_mtim.tv_nsec);
    at = std::to_chars(at, text + sizeof text, ns, 16).ptr;
    *at++ = '-';
    at = std::to_chars(at, text + sizeof text, static_cast<std::uint64_t>(s.st_size), 16).ptr;
    *at++ = '"';
    return {text, at};
}

enum class comparison : bool { strong, weak };

// Whether a list of entity tags, or "*", has this strong one (RFC 9110 section 8.8.3.2).
bool lists(std::string_view list, std::string_view etag, comparison how) {
    if (trim(list) == "*") return true;
    // Our own tags have no commas, so members that a comma inside a tag cuts in two never match.
    return !for_each_member(list, [&](std::string_view member) {
        if (how == comparison::weak && member.starts_with("W/")) member.remove_prefix(2);
        return member != etag;
    });
}

// What a request's conditions say about a file (RFC 9110 section 13.2.2): 200 to go on, 304 or 412.
int precondition(const request& r, std::string_view etag, std::int64_t modified) {
    const std::int64_t now = std::time(nullptr);
    const auto date = [&](const char* name) -> std::optional<std::int64_t> {
        const auto text = r.find(name);
        return text ? parse_date(*text, now) : std::nullopt;
    };
    if (const auto match = r.find("If-Match")) {
        if (!lists(*match, etag, comparison::strong)) return 412;
    } else if (const auto unmodified = date("If-Unmodified-Since")) {
        if (modified > *unmodified) return 412;
    }
    if (const auto none_match = r.find("If-None-Match")) {
        if (lists(*none_match, etag, comparison::weak)) return 304;
    } else if (const auto since = date("If-Modified-Since")) {
        if (modified <= *since) return 304;
    }
    return 200;
}

struct byte_range {
    std::uint64_t first;
    std::uint64_t size;  // 0: no byte of the file is in the range
};

// "first-last", "first-" or "-size". Nothing: it is malformed.
std::optional<byte_range> read_range(std::string_view spec, std::uint64_t size) {
    const std::size_t dash = spec.find('-');
    if (dash == spec.npos) return std::nullopt;
    const auto last = parse_integer<std::uint64_t>(spec.substr(dash + 1));
    if (dash == 0) {  // the last bytes
        if (!last) return std::nullopt;
        const std::uint64_t wanted = std::min(*last, size);
        return byte_range{size - wanted, wanted};
    }
    const auto first = parse_integer<std::uint64_t>(spec.substr(0, dash));
    if (!first || (!last && dash + 1 != spec.size()) || (last && *last < *first)) {
        return std::nullopt;
    }
    if (*first >= size) return byte_range{0, 0};
    return byte_range{*first, std::min(last.value_or(size - 1), size - 1) - *first + 1};
}

// What is sent of a file: nothing of it for 416, a part or several for 206.
struct selection {
    int status;
    std::vector<byte_range> parts;
};

constexpr std::size_t ranges_max = 16;

// The ranges of bytes that are asked for; 200 if the whole file is to be sent: also where they are
// many or overlap, which asks for more than there is (RFC 9110 sections 14.2 and 17.15).
selection select(const request& r, std::uint64_t size, std::string_view etag,
                 std::int64_t modified) {
    const selection whole{200, {}};
    const auto range = r.find("Range");
    if (!range || r.verb() != method::get) return whole;
    if (const auto condition = r.find("If-Range")) {
        const bool same = condition->starts_with('"') || condition->starts_with("W/")
                              ? *condition == etag
                              : parse_date(*condition, std::time(nullptr)) == modified;
        if (!same) return whole;
    }
    if (!equals_ignoring_case(range->substr(0, 6), "bytes=")) return whole;
    selection chosen{206, {}};
    std::size_t asked = 0;
    const bool good = for_each_member(range->substr(6), [&](std::string_view member) {
        const std::optional<byte_range> part = read_range(member, size);
        if (!part || ++asked > ranges_max) return false;
        if (part->size == 0) return true;  // beyond the end: the others count
        for (const byte_range& p : chosen.parts) {
            if (part->first < p.first + p.size && p.first < part->first + part->size) return false;
        }
        chosen.parts.push_back(*part);
        return true;
    });
    if (!good || asked == 0) return whole;
    if (chosen.parts.empty()) chosen.status = 416;
    return chosen;
}

std::string content_range(const byte_range& part, std::uint64_t size) {
    return "bytes " + std::to_string(part.first) + "-" +
           std::to_string(part.first + part.size - 1) + "/" + std::to_string(size);
}

// Several parts of a file, each with a head of its own (RFC 9110 section 14.6).
class multipart_body final : public body_source {
public:
    multipart_body(std::shared_ptr<const owned_file> file, std::vector<byte_range> parts,
                   std::uint64_t size, std::string_view type, std::string_view boundary)
        : file_(std::move(file)), parts_(std::move(parts)) {
        for (const byte_range& p : parts_) {
            std::string head("\r\n--");
            head.append(boundary).append("\r\nContent-Type: ").append(type);
            head.append("\r\nContent-Range: ").append(content_range(p, size)).append("\r\n\r\n");
            length_ += head.size() + p.size;
            heads_.push_back(std::move(head));
        }
        end_.append("\r\n--").append(boundary).append("--\r\n");
        length_ += end_.size();
    }
    std::optional<std::uint64_t> length() const noexcept override { return length_; }
    task<> write_to(body_writer& out) override {
        for (std::size_t i = 0; i != parts_.size(); ++i) {
            co_await out.write(heads_[i]);
            file_body part(file_, parts_[i].first, parts_[i].size);
            co_await part.write_to(out);
        }
        co_await out.write(end_);
    }

private:
    std::shared_ptr<const owned_file> file_;
    std::vector<byte_range> parts_;
    std::vector<std::string> heads_;
    std::string end_;
    std::uint64_t length_ = 0;
};

// What separates the parts of an answer; random, so that no file has it in it.
const std::string& boundary() {
    static const std::string chosen = [] {
        std::random_device random;
        return "coppice-" + std::to_string(random()) + "-" + std::to_string(random());
    }();
    return chosen;
}
static_text multipart_type() {
    static const std::string type = "multipart/byteranges; boundary=" + boundary();
    return static_text::promised(type);
}

}  // namespace

static_text media_type_of(std::string_view name) noexcept {
    const std::size_t dot = name.rfind('.');
    for (const media_type& m : media_types) {
        if (dot != name.npos && equals_ignoring_case(name.substr(dot), m.ending)) return m.type;
    }
    return "application/octet-stream";
}

class files::directory : immovable {
public:
    explicit directory(const std::string& root)
        : root_(::open(root.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)) {
        if (root_.get() < 0 || ::faccessat(root_.get(), ".", R_OK | X_OK, AT_EACCESS) != 0) {
            throw std::system_error(errno, std::system_category(), root);
        }
    }
    // The file, or -1 with errno.
    int open(const std::string& path) const noexcept {
        open_how how{};
        how.flags = O_RDONLY | O_CLOEXEC | O_NONBLOCK;  // a FIFO must not hold the loop
        how.resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS;
        int fd = -1;
        // EAGAIN: something was renamed while the kernel looked.
        for (int tries = 0; tries != 16; ++tries) {
            fd = static_cast<int>(
                ::syscall(SYS_openat2, root_.get(), path.c_str(), &how, sizeof how));
            if (fd >= 0 || (errno != EAGAIN && errno != EINTR)) break;
        }
        return fd;
    }

private:
    owned_file root_;
};

files::files(const std::string& root) : root_(std::make_shared<const directory>(root)) {}

response files::operator()(const request& r) const {
    const std::optional<std::string> path = r.parameter<std::string>("path");
    if (!path) return response::status(404);
    const auto file = std::make_shared<const owned_file>(root_->open(*path));
    if (file->get() < 0) {
        return response::status(errno == EMFILE || errno == ENFILE ? 503 : 404);
    }
    struct stat status{};
    if (::fstat(file->get(), &status) != 0 || !S_ISREG(status.st_mode)) {
        return response::status(404);
    }
    const auto size = static_cast<std::uint64_t>(status.st_size);
    const std::int64_t modified = std::max<std::int64_t>(0, status.st_mtim.tv_sec);
    const std::string etag = etag_of(status);
    date_cache dates;
    response answer(precondition(r, etag, modified));
    answer.add("ETag", etag).add("Last-Modified", dates.at(modified));
    if (answer.status() == 304) return answer;
    if (answer.status() == 412) return response::status(412);
    answer.add("Accept-Ranges", "bytes").content_type(media_type_of(*path));
    byte_range part{0, size};
    selection chosen = select(r, size, etag, modified);
    if (chosen.status == 416) {
        return response::status(416).add("Content-Range", "bytes */" + std::to_string(size));
    }
    if (chosen.parts.size() == 1) {
        part = chosen.parts[0];
        answer.with_status(206).add("Content-Range", content_range(part, size));
    } else if (chosen.parts.size() > 1) {
        return answer.with_status(206)
            .content_type(multipart_type())
            .body(std::make_shared<multipart_body>(file, std::move(chosen.parts), size,
                                                   media_type_of(*path).view(), boundary()));
    }
    if (part.size > read_bytes_max || r.verb() == method::head) {
        return answer.body(std::make_shared<file_body>(file, part.first, part.size));
    }
    std::string content(static_cast<std::size_t>(part.size), '\0');
    if (read_at(file->get(), content.data(), content.size(), part.first) != content.size()) {
        return response::status(500);  // changed or broken while it was read
    }
    return answer.body(std::move(content));
}

}  // namespace coppice::http
