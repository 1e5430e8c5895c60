// Choosing a file and answering with it, for http/files.hpp.
#include <coppice/http/date.hpp>
#include <coppice/http/files.hpp>
#include <coppice/http/filters.hpp>
#include <coppice/http/internal/scan.hpp>

#include "file_bodies.hpp"
#include "file_conditions.hpp"
#include "file_tree.hpp"

#include <sys/stat.h>
#include <cerrno>
#include <optional>
#include <stdexcept>

namespace coppice::http {

using namespace internal;

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

bool ends_with_ignoring_case(std::string_view text, std::string_view ending) noexcept {
    return text.size() >= ending.size() &&
           equals_ignoring_case(text.substr(text.size() - ending.size()), ending);
}

// Throws std::invalid_argument if `value` cannot be sent in a field.
void check_field(const char* option, std::string_view name, std::string_view value) {
    try {
        response().add(name, value);
    } catch (const std::invalid_argument&) {
        throw std::invalid_argument("files_options::" + std::string(option) + " is \"" +
                                    std::string(value) + "\"; allowed: what a field can have");
    }
}

void check(const files_options& options) {
    const std::string& index = options.index;
    if (index == "." || index == ".." || index.find('/') != index.npos ||
        index.find('\0') != index.npos) {
        throw std::invalid_argument("files_options::index is \"" + index +
                                    "\"; allowed: the name of a file, without '/'");
    }
    check_field("cache_control", "Cache-Control", options.cache_control);
    for (const auto& [ending, type] : options.media_types) {
        if (!ending.starts_with('.')) {
            throw std::invalid_argument("files_options::media_types has the ending \"" + ending +
                                        "\"; allowed: those that start with '.'");
        }
        check_field("media_types", "Media-Type", type);
    }
}

// Redirects to the same path with a slash at its end, by a relative reference. It is relative so
// that no spelling of the path can lead to another site.
response to_directory(const request& r) {
    std::string target("./");
    target.append(r.path().substr(r.path().rfind('/') + 1)).append("/");
    if (!r.head().query().empty()) target.append("?").append(r.head().query());
    return response::status(301).add("Location", target);
}

// An open regular file, and what is known about it.
struct found_file {
    std::shared_ptr<const owned_file> file;
    struct stat status{};

    explicit found_file(int fd) : file(std::make_shared<const owned_file>(fd)) {}
    bool is_directory() const noexcept { return S_ISDIR(status.st_mode); }
};

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
    directory(const std::string& root, files_options&& options)
        : tree(root), options_(std::move(options)) {
        check(options_);
    }

    response answer(const request& r) const {
        std::optional<std::string> path = r.parameter<std::string>("path");
        if (!path || (!options_.hidden && names_hidden_file(*path))) return response::status(404);
        if (!options_.index.empty() && (path->empty() || path->ends_with('/'))) {
            *path += options_.index;
        }
        found_file found(tree.open(*path));
        if (const int error = look_at(found); error != 0) {
            const bool exhausted = error == EMFILE || error == ENFILE || error == ENOMEM;
            return response::status(exhausted ? 503 : 404);
        }
        if (found.is_directory() && !options_.index.empty()) return to_directory(r);
        if (!S_ISREG(found.status.st_mode)) return response::status(404);
        bool packed = false;
        if (options_.gzip_siblings &&
            choose_coding(r.find("Accept-Encoding").value_or("")) == "gzip") {
            packed = take_sibling(*path, found);
        }
        return answer(r, found, type_of(*path), packed);
    }

    const file_tree tree;

private:
    // Returns 0, or the error.
    static int look_at(found_file& found) noexcept {
        if (found.file->get() < 0 || ::fstat(found.file->get(), &found.status) != 0) return errno;
        return 0;
    }

    // Returns true if `found` is now the compressed sibling.
    bool take_sibling(const std::string& path, found_file& found) const {
        found_file sibling(tree.open(path + ".gz"));
        if (look_at(sibling) != 0 || !S_ISREG(sibling.status.st_mode)) return false;
        const timespec& ours = sibling.status.st_mtim;
        const timespec& plain = found.status.st_mtim;
        if (ours.tv_sec != plain.tv_sec ? ours.tv_sec < plain.tv_sec
                                        : ours.tv_nsec < plain.tv_nsec) {
            return false;  // compressed from earlier content
        }
        found = std::move(sibling);
        return true;
    }

    static_text type_of(std::string_view name) const noexcept {
        for (const auto& [ending, type] : options_.media_types) {
            if (ends_with_ignoring_case(name, ending)) return static_text::promised(type);
        }
        return media_type_of(name);
    }

    response answer(const request& r, const found_file& found, static_text type,
                    bool packed) const {
        const auto size = static_cast<std::uint64_t>(found.status.st_size);
        const std::int64_t now = r.wall_time().time_since_epoch().count();
        const std::int64_t modified = modified_at(found.status, now);
        const std::string etag = etag_of(found.status);
        date_cache dates;
        response answer(precondition(r, etag, modified, now));
        if (answer.status() == 412) return response::status(412);
        answer.add("ETag", etag).add("Last-Modified", dates.at(modified));
        if (!options_.cache_control.empty()) answer.add("Cache-Control", options_.cache_control);
        if (options_.gzip_siblings) answer.add("Vary", "Accept-Encoding");
        if (answer.status() == 304) return answer;
        selection chosen = select(r, size, etag, modified, now);
        if (chosen.status == 416) {
            return response::status(416).add("Content-Range", "bytes */" + std::to_string(size));
        }
        answer.add("Accept-Ranges", "bytes").content_type(type);
        if (packed) answer.add("Content-Encoding", "gzip");
        if (options_.nosniff) answer.add("X-Content-Type-Options", "nosniff");
        if (chosen.parts.size() > 1) {
            return answer.with_status(206)
                .content_type(type_of_parts())
                .body(parts_of_file(found.file, std::move(chosen.parts), size, type.view()));
        }
        byte_range part{0, size};
        if (chosen.parts.size() == 1) {
            part = chosen.parts[0];
            answer.with_status(206).add("Content-Range", content_range(part, size));
        }
        return with_content(answer, r, found, part);
    }

    static response with_content(response& answer, const request& r, const found_file& found,
                                 const byte_range& part) {
        if (part.size > read_bytes_max || r.verb() == method::head) {
            return std::move(answer.body(part_of_file(found.file, part)));
        }
        std::string content(static_cast<std::size_t>(part.size), '\0');
        if (read_at(found.file->get(), content.data(), content.size(), part.first) !=
            content.size()) {
            return response::status(500);  // changed or unreadable while it was read
        }
        return std::move(answer.body(std::move(content)));
    }

    const files_options options_;
};

files::files(const std::string& root, files_options options)
    : root_(std::make_shared<const directory>(root, std::move(options))) {}

response files::operator()(const request& r) const {
    return root_->answer(r);
}

bool files::follows_links() const noexcept {
    return root_->tree.follows_links();
}

}  // namespace coppice::http
