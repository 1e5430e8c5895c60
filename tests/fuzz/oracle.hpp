// A second opinion for the fuzzers: http_parser 2.9, which Node.js used before llhttp.
#pragma once
// The comparison has one direction: http_parser must accept what coppice accepts, and read it the
// same way. http_parser accepts far more (bare LF, folded lines, repeated lengths that agree),
// which proves nothing about coppice.

#ifdef FUZZ_WITH_ORACLE

#include <http_parser.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace coppice::test {

// How http_parser reads bytes that are at most one message.
class second_opinion {
public:
    std::string method;
    std::string target;
    std::vector<std::pair<std::string, std::string>> fields;
    std::string body;
    std::optional<std::uint64_t> length;
    unsigned minor_version = 0;
    bool keep_alive = false;
    bool chunked = false;
    bool head_ended = false;
    bool message_ended = false;
    std::string error;  // "", or http_parser's name of the fault

    explicit second_opinion(std::string_view bytes) {
        http_parser_settings settings;
        http_parser_settings_init(&settings);
        settings.on_url = on_url;
        settings.on_header_field = on_name;
        settings.on_header_value = on_value;
        settings.on_headers_complete = on_head;
        settings.on_body = on_body;
        settings.on_message_complete = on_end;
        http_parser parser;
        http_parser_init(&parser, HTTP_REQUEST);
        parser.data = this;
        http_parser_execute(&parser, &settings, bytes.data(), bytes.size());
        const http_errno code = static_cast<http_errno>(parser.http_errno);
        if (code != HPE_OK) error = http_errno_name(code);
    }

private:
    static second_opinion& self(http_parser* p) { return *static_cast<second_opinion*>(p->data); }
    static int on_url(http_parser* p, const char* at, std::size_t size) {
        self(p).target.append(at, size);
        return 0;
    }
    static int on_name(http_parser* p, const char* at, std::size_t size) {
        second_opinion& me = self(p);
        if (!me.in_name_) me.fields.emplace_back();
        me.in_name_ = true;
        me.fields.back().first.append(at, size);
        return 0;
    }
    static int on_value(http_parser* p, const char* at, std::size_t size) {
        second_opinion& me = self(p);
        me.in_name_ = false;
        me.fields.back().second.append(at, size);
        return 0;
    }
    static int on_head(http_parser* p) {
        second_opinion& me = self(p);
        me.head_ended = true;
        me.method = http_method_str(static_cast<http_method>(p->method));
        me.minor_version = p->http_minor;
        me.keep_alive = http_should_keep_alive(p) != 0;
        me.chunked = (p->flags & F_CHUNKED) != 0;
        if ((p->flags & F_CONTENTLENGTH) != 0) me.length = p->content_length;
        return 0;
    }
    static int on_body(http_parser* p, const char* at, std::size_t size) {
        self(p).body.append(at, size);
        return 0;
    }
    static int on_end(http_parser* p) {
        self(p).message_ended = true;
        return 0;
    }

    bool in_name_ = false;
};

}  // namespace coppice::test

#endif
