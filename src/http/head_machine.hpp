// head_machine: the state machine that reads a request head; declared once for every set of scans.
#pragma once
// The machine runs over all the bytes at once, or is resumed where the last ones ended. Each phase
// returns true if it has finished and the next one follows. Otherwise it stops with `partial` or an
// error in result_. A phase that stopped for lack of bytes finds in the state, when resumed, where
// its token starts and how far it was scanned.
//
//   phase    function     file               ends with
//   start    start()      request_line.hpp   an empty line, or nothing
//   verb     verb()       request_line.hpp   the space after the method
//   target   target()     request_line.hpp   the space after the target
//   version  version()    request_line.hpp   the CRLF of the request line
//   line     fields()     field_lines.hpp    the first byte of a name, or the empty line
//   name     fields()     field_lines.hpp    the colon
//   value    fields()     field_lines.hpp    the CRLF of the line
//
// fields() passes the fields that frame the body to look_at() (body_framing.hpp), and the empty
// line to head_ends().

#include <coppice/http/parse.hpp>

#include <algorithm>
#include <cstddef>
#include <string_view>

namespace coppice::http::internal {

template <class Scan>
class head_machine {
    using phase = head_state::phase;

public:
    head_machine(Scan& scan, std::string_view bytes, head_state& state, request_head& out,
                 const limits& limit) noexcept
        : scan_(scan),
          base_(bytes.data()),
          end_(base_ + bytes.size()),
          s_(state),
          out_(out),
          limits_(limit) {}

    [[gnu::always_inline]] parse_result run() noexcept {
        const phase from = s_.at;
        const bool in_fields = (from > phase::start || start()) &&    //
                               (from > phase::verb || verb()) &&      //
                               (from > phase::target || target()) &&  //
                               (from > phase::version || version());
        if (in_fields) fields();
        return result_;
    }

private:
    // request_line.hpp
    bool start() noexcept;
    bool verb() noexcept;
    bool target() noexcept;
    bool target_ends(const char* begin, const char* end) noexcept;
    static bool is_other_form(std::string_view text, const char* readable,
                              request_head& out) noexcept;
    static bool absolute(std::string_view text, const char* readable, request_head& out) noexcept;
    static void split(std::string_view text, std::size_t question_mark, request_head& out) noexcept;
    bool version() noexcept;

    // field_lines.hpp
    bool fields() noexcept;
    bool line_may_begin(char byte) noexcept;
    bool last_line(const char* p) noexcept;
    bool cut(phase at, const char* token, const char* scanned) noexcept;
    bool known_field(const field& f) noexcept;
    bool host(std::string_view text) noexcept;
    bool head_ends(const char* p) noexcept;

    // body_framing.hpp
    struct complaint {
        int error = 0;  // 0: none
        const char* reason = "";
    };
    static complaint look_at(const field& f, head_state& state, request_head& out,
                             const limits& limit) noexcept;
    static void expect(std::string_view list, request_head& out) noexcept;
    static void connection(std::string_view list, head_state& state) noexcept;
    static complaint length(std::string_view digits, const head_state& state, request_head& out,
                            const limits& limit) noexcept;
    static complaint coding(std::string_view list, head_state& state, request_head& out) noexcept;

    static constexpr const char* bad_escape = "a '%' is not followed by two hexadecimal digits";
    static constexpr const char* lone_cr = "a CR is not followed by LF";
    static constexpr const char* too_large = "the header fields are too large";
    static constexpr const char* both_lengths =
        "there are both Content-Length and Transfer-Encoding";

    static std::string_view view(const char* begin, const char* end) noexcept {
        return {begin, static_cast<std::size_t>(end - begin)};
    }
    std::size_t offset(const char* p) const noexcept { return static_cast<std::size_t>(p - base_); }
    // Returns the end of the bytes, or the limit for field lines if that comes first.
    const char* block_limit() const noexcept {
        const char* const block = base_ + s_.block;
        return block + std::min(static_cast<std::size_t>(end_ - block), limits_.header_bytes_max);
    }

    bool enter(const char* token) noexcept {
        s_.token = s_.scanned = offset(token);
        return true;
    }
    [[gnu::always_inline]] bool more(phase at, const char* token, const char* scanned) noexcept {
        s_.at = at;
        s_.token = offset(token);
        s_.scanned = offset(scanned);
        result_ = incomplete();
        return false;
    }
    [[gnu::always_inline]] bool fail(int error, const char* reason) noexcept {
        result_ = refusal(error, reason);
        return false;
    }
    // Cold, so that the code that leads to them lies apart from the code that most heads run.
    [[gnu::cold, gnu::noinline]] static parse_result incomplete() noexcept { return {}; }
    [[gnu::cold, gnu::noinline]] static parse_result refusal(int error,
                                                             const char* reason) noexcept {
        return {parse_status::error, 0, error, reason};
    }

    Scan& scan_;
    const char* base_;
    const char* end_;
    head_state& s_;
    request_head& out_;
    const limits& limits_;
    parse_result result_;
};

}  // namespace coppice::http::internal
