// coppice's parse_head, into one reused request_head.
#include "workload.hpp"

#include <coppice/http/internal/head_machines.hpp>
#include <coppice/http/parse.hpp>

#include <algorithm>

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

// The parser for one instruction set alone.
template <std::size_t Index>
std::uint64_t read_with(std::string_view bytes) {
    const auto machines = coppice::http::internal::head_machines();
    coppice::http::request_head head;
    coppice::http::internal::head_state state;
    const coppice::http::limits limit;
    const auto& m = machines[std::min(Index, machines.size() - 1)];
    if (m.run(bytes, state, head, limit).status != coppice::http::parse_status::complete) return 0;
    digest d;
    d << head.method_text() << head.target();
    for (const coppice::http::field& f : head.fields()) d << f.name << f.value;
    return d.value();
}
template <std::size_t Index>
std::size_t run_with(std::string_view bytes, std::size_t times) {
    static coppice::http::request_head head;
    const auto machines = coppice::http::internal::head_machines();
    const auto run = machines[std::min(Index, machines.size() - 1)].run;
    const coppice::http::limits limit;
    std::size_t sum = 0;
    for (; times != 0; --times) {
        coppice::http::internal::head_state state;
        sum += run(reread(bytes), state, head, limit).consumed;
        sum += head.fields().size();
    }
    return sum;
}

}  // namespace

const rival coppice = {"coppice", read, run};
const rival coppice_scalar = {"scalar", read_with<0>, run_with<0>};
const rival coppice_sse = {"sse4.2", read_with<1>, run_with<1>};
const rival coppice_avx512 = {"avx512", read_with<2>, run_with<2>};
const rival coppice_avx2 = {"avx2", read_with<3>, run_with<3>};

}  // namespace bench_parse
