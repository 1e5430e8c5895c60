// The compression filter of http/filters.hpp, with zlib.
#include <coppice/exec/just.hpp>
#include <coppice/http/body.hpp>
#include <coppice/http/filters.hpp>
#include <coppice/http/internal/scan.hpp>

#include "lines.hpp"
#include "whole_writes.hpp"

#include <zlib.h>

#include <algorithm>
#include <new>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>

namespace coppice::http {

using namespace internal;

namespace {

// Returns the weight of one member of Accept-Encoding in thousandths; -1 if it is malformed.
int weight_of(std::string_view parameters) noexcept {
    if (parameters.empty()) return 1000;
    if (parameters.front() != ';') return -1;
    parameters = trim(parameters.substr(1));
    if (parameters.size() < 3 || lower(parameters[0]) != 'q' || parameters[1] != '=') return -1;
    parameters.remove_prefix(2);
    if (parameters.size() > 5 || (parameters[0] != '0' && parameters[0] != '1')) return -1;
    int weight = (parameters[0] - '0') * 1000;
    if (parameters.size() > 1 && parameters[1] != '.') return -1;
    int scale = 100;
    for (const char c : parameters.substr(std::min<std::size_t>(2, parameters.size()))) {
        if (!is(c, digit_byte)) return -1;
        weight += (c - '0') * scale;
        scale /= 10;
    }
    return weight > 1000 ? -1 : weight;
}

// Says that the answer depends on Accept-Encoding, unless its handler has.
void add_vary(response& answer) {
    bool is_said = false;
    for_each_line(answer.fields(), [&](const field& f) {
        if (!equals_ignoring_case(f.name, "Vary")) return;
        for_each_member(f.value, [&](std::string_view member) {
            is_said = is_said || equals_ignoring_case(member, "Accept-Encoding");
            return true;
        });
    });
    if (!is_said) answer.add("Vary", "Accept-Encoding");
}

bool compresses_well(std::string_view type) noexcept {
    type = trim(type.substr(0, type.find(';')));
    if (type.starts_with("text/")) return true;
    constexpr std::string_view others[] = {"application/json", "application/javascript",
                                           "application/xml", "application/wasm", "image/svg+xml"};
    return std::ranges::find(others, type) != std::ranges::end(others) || type.ends_with("+json") ||
           type.ends_with("+xml");
}

// One compressed text, written piece by piece.
class deflater : immovable {
public:
    static constexpr std::size_t memory_bytes = std::size_t{264} * 1024;  // that zlib takes

    deflater(bool gzip, int level) {
        constexpr int window = 15, gzip_header = 16, memory = 8;
        if (::deflateInit2(&stream_, level, Z_DEFLATED, window + (gzip ? gzip_header : 0), memory,
                           Z_DEFAULT_STRATEGY) != Z_OK) {
            throw std::bad_alloc();
        }
    }
    ~deflater() { ::deflateEnd(&stream_); }

    // Appends the compressed form of `bytes` as far as zlib gives it; all of it with Z_FINISH.
    void add(std::string_view bytes, int flush, std::string& out) {
        constexpr std::size_t most = std::size_t{1} << 30;  // zlib counts in 32 bits
        for (; bytes.size() > most; bytes.remove_prefix(most)) {
            add_piece(bytes.substr(0, most), Z_NO_FLUSH, out);
        }
        add_piece(bytes, flush, out);
    }

private:
    void add_piece(std::string_view bytes, int flush, std::string& out) {
        stream_.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
        stream_.avail_in = static_cast<uInt>(bytes.size());
        do {
            const std::size_t before = out.size();
            constexpr std::size_t room = 16 * 1024;
            out.resize(before + room);
            stream_.next_out = reinterpret_cast<Bytef*>(out.data() + before);
            stream_.avail_out = room;
            ::deflate(&stream_, flush);
            out.resize(before + room - stream_.avail_out);
        } while (stream_.avail_out == 0);
    }

    z_stream stream_{};
};

// A streamed body, compressed as it is written.
class deflated_body final : public body_source {
public:
    deflated_body(std::shared_ptr<body_source> plain, bool gzip, int level) noexcept
        : plain_(std::move(plain)), gzip_(gzip), level_(level) {}
    std::optional<std::uint64_t> length() const noexcept override { return std::nullopt; }
    task<> write_to(body_writer& out) override {
        through pass(out, plain_->length(), gzip_, level_);
        co_await plain_->write_to(pass);
        if (!pass.is_whole()) {
            if (out.stop_token().stop_requested()) co_await execution::just_stopped();
            throw std::length_error("a body is shorter than its declared length");
        }
        co_await pass.finish();
    }

private:
    class through final : public body_writer {
    public:
        through(body_writer& out, std::optional<std::uint64_t> declared, bool gzip, int level)
            : out_(out), packed_(out), deflater_(gzip, level), declared_(declared) {}
        task<> write(std::string_view bytes) override {
            if (declared_ && bytes.size() > *declared_ - written_) {
                throw std::length_error("a body is longer than its declared length");
            }
            // In pieces, so that the compressed beginning of a large write is sent early.
            constexpr std::size_t most = std::size_t{1} << 20;
            if (!packed_.text().empty()) co_await packed_.write();  // what a stopped call has left
            while (!bytes.empty()) {
                const std::string_view piece = bytes.substr(0, most);
                deflater_.add(piece, Z_NO_FLUSH, packed_.text());
                bytes.remove_prefix(piece.size());
                written_ += piece.size();
                if (!packed_.text().empty()) co_await packed_.write();
            }
        }
        std::uint64_t written() const noexcept override { return written_; }
        // After this, the client can decompress everything that was written so far.
        task<> flush() override {
            if (!packed_.text().empty()) co_await packed_.write();  // what a stopped call has left
            deflater_.add({}, Z_SYNC_FLUSH, packed_.text());
            co_await packed_.write();
            co_await out_.flush();
        }
        // Called after the producer, as finish().
        bool is_whole() const noexcept { return written_ == declared_.value_or(written_); }
        task<> finish() {
            deflater_.add({}, Z_FINISH, packed_.text());
            co_await packed_.write();
        }
        void trailer(std::string_view name, std::string_view value) override {
            out_.trailer(name, value);
        }
        inplace_stop_token stop_token() const noexcept override { return out_.stop_token(); }
        inplace_stop_token drain_token() const noexcept override { return out_.drain_token(); }

    private:
        body_writer& out_;
        whole_writes packed_;
        deflater deflater_;
        const std::optional<std::uint64_t> declared_;  // bytes
        std::uint64_t written_ = 0;
    };

    std::shared_ptr<body_source> plain_;
    const bool gzip_;
    const int level_;
};

class compression_filter final : public filter {
public:
    explicit compression_filter(const compression_options& options) : options_(options) {
        if (options.level < 1 || options.level > 9) {
            throw std::invalid_argument("compression_options::level is " +
                                        std::to_string(options.level) + "; allowed: 1 to 9");
        }
    }

    void after(const request& r, response& answer) const override {
        if (answer.status() == 304) add_vary(answer);  // as the 200 may say
        if (!may_change(answer) || (options_.permits && !options_.permits(r, answer))) return;
        add_vary(answer);
        const std::string_view coding = choose_coding(r.find("Accept-Encoding").value_or(""));
        if (coding.empty()) return;
        const bool gzip = coding == "gzip";
        if (answer.source() != nullptr) {
            if (r.verb() != method::head && !reserve_for_body(r, deflater::memory_bytes)) return;
            answer.body(std::make_shared<deflated_body>(answer.source(), gzip, options_.level));
        } else {
            std::string packed;
            deflater(gzip, options_.level).add(answer.body(), Z_FINISH, packed);
            if (packed.size() >= answer.body().size()) return;
            answer.body(std::move(packed));
        }
        answer.add("Content-Encoding", coding).weaken_etag();
    }

private:
    bool may_change(const response& answer) const {
        if (content_of(answer.status()) != answer_content::any || answer.status() == 206)
            return false;
        if (answer.find("Content-Encoding") || !compresses_well(answer.content_type()))
            return false;
        const auto cache = answer.find("Cache-Control");
        if (cache && cache->find("no-transform") != cache->npos) return false;
        if (answer.source() != nullptr) return !answer.source()->file();
        return answer.body().size() >= options_.bytes_min &&
               answer.body().size() <= options_.bytes_max;
    }
    const compression_options options_;
};

}  // namespace

std::string_view choose_coding(std::string_view accept_encoding) noexcept {
    int gzip = -1, deflate = -1, others = 0;
    for_each_member(accept_encoding, [&](std::string_view member) {
        const std::size_t end = std::min(member.find_first_of(" \t;"), member.size());
        const std::string_view name = member.substr(0, end);
        const int weight = weight_of(trim(member.substr(end)));
        if (weight < 0) return true;
        if (equals_ignoring_case(name, "gzip") || equals_ignoring_case(name, "x-gzip")) {
            gzip = weight;
        } else if (equals_ignoring_case(name, "deflate")) {
            deflate = weight;
        } else if (name == "*") {
            others = weight;
        }
        return true;
    });
    if (gzip < 0) gzip = others;
    if (deflate < 0) deflate = others;
    if (gzip == 0 && deflate == 0) return "";
    return gzip >= deflate ? "gzip" : "deflate";
}

std::shared_ptr<const filter> compression(compression_options options) {
    return std::make_shared<compression_filter>(options);
}

}  // namespace coppice::http
