// http_parser 2.9 from Debian, the C parser before llhttp. Its callbacks record views of the parts.
#include "workload.hpp"

#include <http_parser.h>

#include <array>

namespace bench_parse {

namespace {

// The parts that the callbacks record. The bytes come in one piece, so each part is one call.
struct noted_head {
    std::string_view target;
    std::array<std::string_view, 100> names;
    std::array<std::string_view, 100> values;
    std::size_t count = 0;
    bool complete = false;
};

noted_head& head_of(::http_parser* p) {
    return *static_cast<noted_head*>(p->data);
}

const http_parser_settings& settings() {
    static const http_parser_settings instance = [] {
        http_parser_settings s;
        http_parser_settings_init(&s);
        s.on_url = [](::http_parser* p, const char* at, std::size_t size) {
            head_of(p).target = {at, size};
            return 0;
        };
        s.on_header_field = [](::http_parser* p, const char* at, std::size_t size) {
            noted_head& head = head_of(p);
            if (head.count == head.names.size()) return 1;
            head.names[head.count] = {at, size};
            return 0;
        };
        s.on_header_value = [](::http_parser* p, const char* at, std::size_t size) {
            noted_head& head = head_of(p);
            head.values[head.count++] = {at, size};
            return 0;
        };
        s.on_headers_complete = [](::http_parser* p) {
            head_of(p).complete = true;
            return 0;
        };
        return s;
    }();
    return instance;
}

std::size_t parse(std::string_view bytes, noted_head& head, ::http_parser& p) {
    head.count = 0;
    head.complete = false;
    http_parser_init(&p, HTTP_REQUEST);
    p.data = &head;
    return http_parser_execute(&p, &settings(), bytes.data(), bytes.size());
}

std::uint64_t read(std::string_view bytes) {
    noted_head head;
    ::http_parser p;
    parse(bytes, head, p);
    if (p.http_errno != HPE_OK || !head.complete) return 0;
    digest d;
    d << http_method_str(static_cast<http_method>(p.method)) << head.target;
    for (std::size_t i = 0; i < head.count; ++i) d << head.names[i] << head.values[i];
    return d.value();
}

std::size_t run(std::string_view bytes, std::size_t times) {
    static noted_head head;
    ::http_parser p;
    std::size_t sum = 0;
    for (; times != 0; --times) {
        sum += parse(reread(bytes), head, p);
        sum += head.count;
    }
    return sum;
}

}  // namespace

const rival http_parser = {"http_parser", read, run};

}  // namespace bench_parse
