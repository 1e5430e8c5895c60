// coppice's parse_head, into one reused request_head.
#include "workload.hpp"

#include <coppice/http/parse.hpp>

namespace bench_parse {

namespace {

std::uint64_t read(std::string_view bytes) {
    coppice::http::request_head head;
    const auto result = coppice::http::parse_head(bytes, head, {});
    if (result.status != coppice::http::parse_status::complete) return 0;
    digest d;
    d << head.method_text() << head.target();
    for (const coppice::http::field& f : head.fields()) d << f.name << f.value;
    return d.value();
}

std::size_t run(std::string_view bytes, std::size_t times) {
    static coppice::http::request_head head;
    const coppice::http::limits limit;
    std::size_t sum = 0;
    for (; times != 0; --times) {
        sum += coppice::http::parse_head(reread(bytes), head, limit).consumed;
        sum += head.fields().size();
    }
    return sum;
}

}  // namespace

const rival coppice = {"coppice", read, run};

}  // namespace bench_parse
