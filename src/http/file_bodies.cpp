// Reading and sending for file_bodies.hpp.
#include "file_bodies.hpp"

#include <unistd.h>
#include <algorithm>
#include <cerrno>
#include <optional>
#include <random>
#include <system_error>
#include <utility>

namespace coppice::http {

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

std::string content_range(const byte_range& part, std::uint64_t size) {
    return "bytes " + std::to_string(part.first) + "-" +
           std::to_string(part.first + part.size - 1) + "/" + std::to_string(size);
}

namespace {

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
            if (n == 0) {
                throw std::system_error(EIO, std::system_category(),
                                        "a file was cut short while it was sent");
            }
            co_await out.write({piece.data(), n});
            done += n;
        }
    }

private:
    std::shared_ptr<const owned_file> file_;
    file_part part_;
};

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

// Returns what separates the parts of an answer: a random text, so that no file contains it.
const std::string& boundary() {
    static const std::string chosen = [] {
        std::random_device random;
        return "coppice-" + std::to_string(random()) + "-" + std::to_string(random());
    }();
    return chosen;
}
}  // namespace

std::shared_ptr<body_source> part_of_file(std::shared_ptr<const owned_file> file,
                                          const byte_range& part) {
    return std::make_shared<file_body>(std::move(file), part.first, part.size);
}

std::shared_ptr<body_source> parts_of_file(std::shared_ptr<const owned_file> file,
                                           std::vector<byte_range> parts, std::uint64_t size,
                                           std::string_view type) {
    return std::make_shared<multipart_body>(std::move(file), std::move(parts), size, type,
                                            boundary());
}

static_text type_of_parts() {
    static const std::string type = "multipart/byteranges; boundary=" + boundary();
    return static_text::promised(type);
}

}  // namespace coppice::http
