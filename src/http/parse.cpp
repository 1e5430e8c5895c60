// Request heads: one state machine for each set of scans, and the choice among them.
#include <coppice/http/internal/head_machines.hpp>
#include <coppice/http/internal/scan.hpp>
#include <coppice/http/parse.hpp>

#include <array>
#include <cstddef>
#include <span>

#include "body_framing.hpp"
#include "field_lines.hpp"
#include "head_machine.hpp"
#include "request_line.hpp"
#include "vector_scan.hpp"

namespace coppice::http {

using namespace internal;

std::string_view to_string(method verb) noexcept {
    return method_names[static_cast<std::size_t>(verb)];
}

std::optional<std::string_view> request_head::find(std::string_view name) const noexcept {
    for (const field& f : fields()) {
        if (equals_ignoring_case(f.name, name)) return f.value;
    }
    return std::nullopt;
}
namespace {

// The whole machine must be one function for each instruction set: a scan with vector instructions
// can be inlined only into a function that has them too.
parse_result run_scalar(std::string_view bytes, head_state& state, request_head& out,
                        const limits& limit) noexcept {
    scalar_scan scan;
    return head_machine(scan, bytes, state, out, limit).run();
}
#if defined(__x86_64__)
[[gnu::target("sse4.2")]] parse_result run_sse(std::string_view bytes, head_state& state,
                                               request_head& out, const limits& limit) noexcept {
    sse_scan scan;
    return head_machine(scan, bytes, state, out, limit).run();
}
[[gnu::target("avx2")]] parse_result run_avx2(std::string_view bytes, head_state& state,
                                              request_head& out, const limits& limit) noexcept {
    avx2_scan scan;
    return head_machine(scan, bytes, state, out, limit).run();
}
parse_result run_avx512(std::string_view bytes, head_state& state, request_head& out,
                        const limits& limit) noexcept {
    avx512_scan scan;
    return head_machine(scan, bytes, state, out, limit).run();
}
#endif

using machine = parse_result (*)(std::string_view, head_state&, request_head&,
                                 const limits&) noexcept;

// If each token is scanned by itself, vectors pay only for long tokens: in a short head, most of a
// vector holds the next token (bench_parse).
constexpr std::size_t short_head_bytes = 256;

machine machine_for(std::string_view bytes) noexcept {
    static const machine best = head_machines().back().run;
#if defined(__x86_64__)
    if (best == run_avx512) return best;
#endif
    return bytes.size() < short_head_bytes ? run_scalar : best;
}

}  // namespace

namespace internal {

std::span<const named_machine> head_machines() noexcept {
    static const std::span<const named_machine> present = [] {
        static constexpr named_machine all[] = {
            {"scalar", run_scalar},
#if defined(__x86_64__)
            {"sse4.2", run_sse},
            {"avx2", run_avx2},
            {"avx512", run_avx512},
#endif
        };
        static std::array<named_machine, std::size(all)> usable;
        std::size_t count = 0;
        usable[count++] = all[0];
#if defined(__x86_64__)
        if (__builtin_cpu_supports("sse4.2")) usable[count++] = all[1];
        if (__builtin_cpu_supports("avx2")) usable[count++] = all[2];
        if (__builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vbmi")) {
            usable[count++] = all[3];
        }
#endif
        return std::span<const named_machine>(usable).first(count);
    }();
    return present;
}

}  // namespace internal

parse_result parse_head(std::string_view bytes, request_head& out, const limits& limit) noexcept {
    head_state state;
    return machine_for(bytes)(bytes, state, out, limit);
}

parse_result head_parser::parse(std::string_view bytes) noexcept {
    if (base_ != bytes.data() || bytes.size() < state_.scanned) reset();
    base_ = bytes.data();
    const parse_result result = machine_for(bytes)(bytes, state_, head_, limits_);
    if (result.status != parse_status::partial) reset();
    return result;
}

}  // namespace coppice::http
