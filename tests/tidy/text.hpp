// The law of the text: banned words and habits, lengths, and the shape of a header.
#pragma once

#include "source.hpp"

namespace tidy {

inline constexpr std::size_t columns_max = 100;
inline constexpr std::size_t header_lines_max = 450;
inline constexpr std::size_t test_lines_max = 450;
inline constexpr std::size_t function_lines_max = 70;

// A place that may exceed a length, and why. The name is a function's, or "" for a whole header.
struct long_text {
    std::string_view path;
    std::string_view name;
    std::string_view reason;
};
inline constexpr long_text allowed_lengths[] = {
    {"src/http/message.cpp", "reason_phrase", "a table of status codes in the shape of a switch"},
};
inline bool may_be_long(const source_file& file, std::string_view name) {
    return std::any_of(std::begin(allowed_lengths), std::end(allowed_lengths),
                       [&](const long_text& l) { return l.path == file.path && l.name == name; });
}

// Words that mark unfinished work, split here so that this file may name them.
inline void banned_words(const tree& files, findings& out) {
    static constexpr std::string_view words[] = {
        "TO"
        "DO",
        "FIX"
        "ME",
        "X"
        "XX",
        "HA"
        "CK"};
    for (const source_file& file : files) {
        if (file.is_document()) continue;  // documents may mention them
        for (std::size_t i = 0; i != file.lines.size(); ++i) {
            const std::string text =
                file.is_cpp() ? file.code[i] + " " + file.comments[i] : file.lines[i];
            for (const std::string_view word : words) {
                if (has_word(text, word))
                    out.push_back(
                        file.found(i + 1, std::string(word) + ": do it, or open an issue"));
            }
        }
    }
}

inline void macros(const tree& files, findings& out) {
    for (const source_file& file : files) {
        const bool allowed = file.path == "include/coppice/base/internal/check.hpp" ||
                             file.path == "include/coppice/base/internal/cold_call.hpp" ||
                             file.path == "include/coppice/base/version.hpp";
        if (!file.is_cpp() || allowed) continue;
        for (std::size_t i = 0; i != file.code.size(); ++i) {
            std::string directive;
            for (const char c : file.code[i]) {
                if (c != ' ' && c != '\t') directive += c;
            }
            if (directive.starts_with("#define"))
                out.push_back(file.found(i + 1, "only base has macros: check, cold_call, version"));
            if (directive == "#if0" || directive == "#iffalse")
                out.push_back(file.found(i + 1, "delete it; the history keeps it"));
        }
    }
}

// Returns true for names of the compiler and its libraries, which we may use but not declare.
inline bool compilers_name(std::string_view word) {
    static constexpr std::string_view prefixes[] = {
        "__builtin_", "__has_",    "__cpp_",    "__m128",  "__m256",     "__m512",
        "__mmask",    "__int128",  "__asan_",   "__tsan_", "__lsan",     "__sanitizer_",
        "__cxa_",     "__kernel_", "__atomic_", "__sync_", "__u8",       "__u16",
        "__u32",      "__u64",     "__s32",     "__s64",   "__restrict", "__extension__"};
    return word.ends_with("__") ||
           std::any_of(std::begin(prefixes), std::end(prefixes),
                       [&](std::string_view prefix) { return word.starts_with(prefix); });
}

inline void reserved_names(const tree& files, findings& out) {
    for (const source_file& file : files) {
        for (const token& t : file.tokens) {
            const std::string_view word = t.text;
            const bool ugly = word.size() > 2 && word[0] == '_' && std::isupper(word[1]) &&
                              std::islower(word[2]) && word != "_Exit" &&
                              !word.starts_with("_Unwind");
            if ((word.starts_with("__") && !compilers_name(word)) || ugly)
                out.push_back(file.found(t.line, t.text + ": reserved for the compiler"));
        }
    }
}

inline void banned_habits(const tree& files, findings& out) {
    for (const source_file& file : files) {
        for (std::size_t i = 0; i != file.tokens.size(); ++i) {
            const std::string& word = file.tokens[i].text;
            const auto next = [&](std::size_t n) { return file.at(i + n); };
            const auto report = [&](const char* message) {
                out.push_back(file.found(file.tokens[i].line, word + ": " + message));
            };
            // A directive for internal names reaches no program if it is in a source or a test, or
            // between the internal namespaces.
            const bool reaches_no_program = ((file.under("src/") || file.under("tests/")) &&
                                             (next(2) == "internal" || next(4) == "internal")) ||
                                            file.path.ends_with("/internal/namespaces.hpp");
            if (word == "using" && next(1) == "namespace" && file.is_header() &&
                !reaches_no_program)
                report("no using namespace in a header");
            if (word == "endl" && file.at(i - 1) == "::") report("write '\\n', flush on purpose");
            if (file.under("tests/") && (word == "sleep_for" || word == "sleep_until" ||
                                         word == "usleep" || word == "nanosleep"))
                report("a test waits for an event, never for time");
            if (word == "catch" && next(2) == "..." && next(4) == "{" && next(5) == "}")
                report("nothing is swallowed: handle it or let it pass");
            if (word.starts_with("DISABLED_") || word.find("_DISABLED_") != std::string::npos)
                report("a test runs or is deleted");
            if (word == "nothrow" && file.at(i - 2) == "std" &&
                (file.under("src/") || file.under("include/")) && file.at(i - 1) == "::")
                report("another operator new; programs that replace theirs expect try_new");
            if (word == "COPPICE_COLD_CALL" && file.at(i - 1) != "define") {
                std::size_t end = 1;
                while (!next(end).empty() && next(end) != "{" && next(end) != ";" &&
                       next(end) != "noexcept")
                    ++end;
                if (next(end) != "noexcept")
                    report("an exception that passes a cold call loses values: noexcept");
            }
            if (word == "GTEST_SKIP" && next(3) != "<<") report("say why: GTEST_SKIP() << reason");
        }
    }
}

// clang and g++ each choose an order for the captures that a lambda does not name. A lambda of an
// inline function has one name in the code of both compilers, so both must lay it out alike: in the
// order of a list of captures.
inline void implicit_captures(const tree& files, findings& out) {
    for (const source_file& file : files) {
        if (!file.is_header() || !file.under("include/")) continue;
        for (std::size_t i = 0; i != file.tokens.size(); ++i) {
            const bool is_default = file.at(i + 1) == "&" || file.at(i + 1) == "=";
            if (file.tokens[i].text == "[" && is_default &&
                (file.at(i + 2) == "]" || file.at(i + 2) == ","))
                out.push_back(file.found(file.tokens[i].line,
                                         "name what the lambda captures: compilers order it"));
        }
    }
}

inline bool is_script(const source_file& file) {
    return file.path.ends_with(".sh") || file.path.find('.', 1) == std::string::npos ||
           file.path == ".ci/run";
}

// Returns true if `command`, the rest of a line, is a grep that ends at the first match.
inline bool is_quiet_grep(std::string_view command) {
    command = command.substr(0, command.find_first_of("|;&<>"));
    bool first = true;
    while (!blank(command)) {
        command.remove_prefix(command.find_first_not_of(" \t"));
        const std::string_view word = command.substr(0, command.find_first_of(" \t"));
        command.remove_prefix(word.size());
        if (first && word != "grep" && word != "egrep" && word != "fgrep") return false;
        first = false;
        const bool letters = word.size() > 1 && word[0] == '-' && word[1] != '-';
        if (word == "--quiet" || word == "--silent" ||
            (letters && word.find('q') != std::string_view::npos))
            return true;
    }
    return false;
}

// grep -q ends at the first match. A writer that continues dies of SIGPIPE, and pipefail makes that
// the pipe's status. Every script sets pipefail.
inline void piped_grep(const tree& files, findings& out) {
    for (const source_file& file : files) {
        if (!is_script(file)) continue;
        bool piped = false;  // the line before ended with the pipe
        for (std::size_t i = 0; i != file.lines.size(); ++i) {
            const std::string_view line = file.lines[i];
            if (blank(line) || line[line.find_first_not_of(" \t")] == '#') continue;
            bool found = piped && is_quiet_grep(line);
            piped = false;
            for (std::size_t at = line.find('|'); at < line.size(); at = line.find('|', at)) {
                const bool is_or = at + 1 < line.size() && line[at + 1] == '|';
                std::string_view rest = line.substr(at + 1);
                if (rest.starts_with('&')) rest.remove_prefix(1);  // |& pipes the errors too
                found = found || (!is_or && is_quiet_grep(rest));
                piped = !is_or && (blank(rest) || rest == " \\");
                at += is_or ? 2 : 1;
            }
            if (found)
                out.push_back(file.found(
                    i + 1, "a pipe into grep -q under pipefail may kill the writer: <<<\"$text\""));
        }
    }
}

inline std::size_t columns(std::string_view line) {
    return static_cast<std::size_t>(std::count_if(line.begin(), line.end(), [](char c) {
        return (static_cast<unsigned char>(c) & 0xC0) != 0x80;  // not inside a UTF-8 sequence
    }));
}

inline void long_lines(const tree& files, findings& out) {
    for (const source_file& file : files) {
        if (file.is_document()) continue;
        for (std::size_t i = 0; i != file.lines.size(); ++i) {
            const std::size_t width = columns(file.lines[i]);
            if (width <= columns_max) continue;
            out.push_back(file.found(
                i + 1, std::to_string(width) + " columns, at most " + std::to_string(columns_max)));
        }
    }
}

inline void long_headers(const tree& files, findings& out) {
    for (const source_file& file : files) {
        if (!file.is_header() || file.lines.size() <= header_lines_max || may_be_long(file, ""))
            continue;
        out.push_back(file.found(header_lines_max + 1, std::to_string(file.lines.size()) +
                                                           " lines, at most " +
                                                           std::to_string(header_lines_max)));
    }
}

// A test file has one subject, which its first line names. A long file has several.
inline void long_tests(const tree& files, findings& out) {
    for (const source_file& file : files) {
        if (!file.is_cpp() || !file.under("tests/") || file.lines.size() <= test_lines_max)
            continue;
        out.push_back(file.found(
            test_lines_max + 1, std::to_string(file.lines.size()) + " lines, at most " +
                                    std::to_string(test_lines_max) + ": split it by its subjects"));
    }
}

// Finds function bodies outside other functions by their braces: a block is a scope to search
// (namespace, class), an initializer, or a function with all that is inside it.
class function_finder {
public:
    function_finder(const source_file& file, findings& out) : file_(file), out_(out) {}

    void run() {
        std::size_t open_scopes = 0;
        for (std::size_t i = 0; i < file_.tokens.size(); ++i) {
            const std::string_view word = file_.at(i);
            if (word == "(" || word == "[") {
                const std::size_t close = closing(file_.tokens, i);
                if (close == file_.tokens.size()) return unbalanced(i);
                i = close;
            } else if (word == ";") {
                head_ = i + 1;
            } else if (word == "}") {
                if (open_scopes == 0) return unbalanced(i);
                --open_scopes;
                head_ = i + 1;
            } else if (word == "{" && opens_scope(i)) {
                ++open_scopes;
                head_ = i + 1;
            } else if (word == "{") {
                const std::size_t close = closing(file_.tokens, i);
                if (close == file_.tokens.size()) return unbalanced(i);
                measure(i, close);
                i = close;
                // Another braced member initializer, or the body, follows the first.
                const std::string_view after = file_.at(i + 1);
                if (after != "," && after != "{" && after != "...") head_ = i + 1;
            }
        }
        if (open_scopes != 0) unbalanced(file_.tokens.size() - 1);
    }

private:
    // Returns the head of the block at `open`, without template parameter lists and parentheses.
    std::vector<std::string_view> head(std::size_t open) const {
        std::vector<std::string_view> words;
        std::size_t angles = 0;
        for (std::size_t i = head_; i < open; ++i) {
            const std::string_view word = file_.at(i);
            if (word == "<" && (angles != 0 || file_.at(i - 1) == "template")) ++angles;
            if (angles == 0) words.push_back(word);
            if (word == ">" && angles != 0) --angles;
            if (angles == 0 && (word == "(" || word == "[")) i = closing(file_.tokens, i);
        }
        return words;
    }
    // Returns true if the block at `open` is a namespace or a class, not a function returning one.
    bool opens_scope(std::size_t open) const {
        bool scope = false;
        std::string_view before;
        for (const std::string_view word : head(open)) {
            if (word == "=" || (word == "(" && scope && before != "alignas")) return false;
            scope = scope || word == "namespace" || word == "class" || word == "struct" ||
                    word == "union" || word == "enum" || word == "extern";
            before = word;
        }
        return scope;
    }
    // Returns the name of the function whose body opens here, or "" for tables and the like.
    std::string function_name(std::size_t open) const {
        const std::vector<std::string_view> words = head(open);
        for (std::size_t i = 1; i < words.size(); ++i) {
            const std::string_view word = words[i - 1];
            if (word == "=") return words[i] == "[" ? "lambda" : "";
            const bool qualifier = word == "requires" || word == "noexcept" || word == "explicit" ||
                                   word == "decltype" || word == "alignas";
            if (words[i] == "(" && !qualifier) {
                const bool test = word.starts_with("TEST");
                return std::string(test ? file_.at(head_ + 4) : word);  // TEST(suite, name)
            }
        }
        return "";
    }
    void measure(std::size_t open, std::size_t close) {
        const std::string name = function_name(open);
        const std::size_t first = file_.tokens[open].line;
        const std::size_t lines = file_.tokens[close].line - first;
        if (name.empty() || lines <= function_lines_max + 1 || may_be_long(file_, name)) return;
        out_.push_back(file_.found(first, "function " + name + " has " + std::to_string(lines - 1) +
                                              " lines, at most " +
                                              std::to_string(function_lines_max)));
    }
    void unbalanced(std::size_t token_index) {
        out_.push_back(file_.found(file_.tokens[token_index].line,
                                   "braces do not balance: does an #if split a block?"));
    }

    const source_file& file_;
    findings& out_;
    std::size_t head_ = 0;  // first token of the current declaration
};

inline void long_functions(const tree& files, findings& out) {
    for (const source_file& file : files) function_finder(file, out).run();
}

inline void header_shape(const tree& files, findings& out) {
    for (const source_file& file : files) {
        if (!file.is_header()) continue;
        if (file.lines.empty() || !file.lines[0].starts_with("// ") ||
            !file.lines[0].ends_with("."))
            out.push_back(
                file.found(1, "line 1 is a comment: what the header is, and which code uses it"));
        if (file.lines.size() < 2 || file.lines[1] != "#pragma once")
            out.push_back(file.found(2, "line 2 is #pragma once"));
    }
}

}  // namespace tidy
