// Forms with files: read as they arrive, and whole.
#include "keeping.hpp"
#include "media_type.hpp"

#include <coppice/http/multipart.hpp>
#include <coppice/http/parameters.hpp>

#include <algorithm>
#include <utility>

namespace coppice::http {

using namespace internal;

namespace {

// Collects parts, up to a number of bytes, and counts what they take if they come from a
// body_reader.
class collector {
public:
    collector(multipart_form& form, std::size_t bytes_max, body_reader* counts = nullptr) noexcept
        : form_(form), bytes_left_(bytes_max), counts_(counts) {}

    void begin(const multipart_head& head) {
        std::size_t texts = head.name.size() + head.content_type.size();
        if (head.filename) texts += head.filename->size();
        take(sizeof(multipart_part) + texts);
        make_room_for_a_part(texts);
        form_.parts.push_back({head, {}});
    }
    void add(std::string_view piece) {
        take(piece.size());
        std::string& data = form_.parts.back().data;
        if (counts_ != nullptr) {
            const std::size_t most = data.size() + piece.size() + bytes_left_;
            make_counted_room(*counts_, data, piece.size(), most);
        }
        data.append(piece);
    }

private:
    void take(std::size_t bytes) {
        if (bytes > bytes_left_) throw status_error(413, "the form is too large");
        bytes_left_ -= bytes;
    }
    void make_room_for_a_part(std::size_t texts) {
        std::vector<multipart_part>& parts = form_.parts;
        const bool full = parts.size() == parts.capacity();
        const std::size_t more = full ? std::max<std::size_t>(parts.size(), 1) : 0;
        if (counts_ != nullptr) counts_->keep(texts + more * sizeof(multipart_part));
        if (full) parts.reserve(parts.size() + more);
    }

    multipart_form& form_;
    std::size_t bytes_left_;
    body_reader* counts_;  // nullptr: not counted
};

}  // namespace

multipart_reader::multipart_reader(request& r, multipart_limits limits)
    : multipart_reader(unread_body(r), only_content_type(r), limits) {}

multipart_reader::multipart_reader(body_reader& body, std::optional<std::string_view> content_type,
                                   multipart_limits limits)
    : body_(&body), parser_(multipart_boundary(content_type), limits) {}

task<bool> multipart_reader::receive() {
    if (!ended_) input_ = co_await body_->read();
    if (!input_.empty()) co_return true;
    ended_ = true;
    parser_.finish();  // throws if the body is incomplete
    co_return false;
}

task<const multipart_head*> multipart_reader::next() {
    for (;;) {
        const multipart_parser::event e = parser_.next(input_);
        if (e == multipart_parser::event::part) {
            in_part_ = true;
            co_return &parser_.head();
        }
        if (e == multipart_parser::event::part_end) in_part_ = false;
        if (e != multipart_parser::event::wants_more) continue;
        const bool more = co_await receive();
        if (!more) co_return nullptr;
    }
}

task<std::string_view> multipart_reader::read() {
    while (in_part_) {
        const multipart_parser::event e = parser_.next(input_);
        if (e == multipart_parser::event::data) co_return parser_.data();
        if (e == multipart_parser::event::part_end) {
            in_part_ = false;
        } else {
            co_await receive();
        }
    }
    co_return std::string_view();
}

const multipart_part* multipart_form::find(std::string_view name) const noexcept {
    for (const multipart_part& part : parts) {
        if (part.name == name) return &part;
    }
    return nullptr;
}

std::optional<std::string_view> multipart_form::text(std::string_view name) const noexcept {
    for (const multipart_part& part : parts) {
        if (part.name == name && !part.filename) return part.data;
    }
    return std::nullopt;
}

multipart_form parse_multipart(const request& r, const multipart_limits& limits) {
    multipart_parser parser(multipart_boundary(only_content_type(r)), limits);
    multipart_form form;
    collector into(form, limits.bytes_max);
    std::string_view input = r.body();
    for (;;) {
        switch (parser.next(input)) {
            case multipart_parser::event::wants_more:
                parser.finish();
                return form;
            case multipart_parser::event::part:
                into.begin(parser.head());
                break;
            case multipart_parser::event::data:
                into.add(parser.data());
                break;
            case multipart_parser::event::part_end:
            case multipart_parser::event::end:
                break;
        }
    }
}

task<multipart_form> read_multipart(request& r, multipart_limits limits) {
    multipart_reader parts(r, limits);
    multipart_form form;
    collector into(form, limits.bytes_max, &r.incoming());
    for (;;) {
        const multipart_head* const head = co_await parts.next();
        if (head == nullptr) co_return form;
        into.begin(*head);
        for (;;) {
            const std::string_view piece = co_await parts.read();
            if (piece.empty()) break;
            into.add(piece);
        }
    }
}

}  // namespace coppice::http
