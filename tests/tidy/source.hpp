// The input of the style law's checks: a file split into code, comments, tokens, and includes.
#pragma once
// A check is a function from a tree of such files to findings. So it runs over the project and over
// small texts with planted faults alike. The checks know C++ only by its tokens: a check that needs
// types is work for the compiler.

#include <algorithm>
#include <cctype>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tidy {

struct finding {
    std::string path;
    std::size_t line;
    std::string message;
};
using findings = std::vector<finding>;

struct token {
    std::string text;
    std::size_t line;
};

struct include {
    std::string target;
    bool quoted;
    std::size_t line;
};

inline bool is_word(char c) {
    return std::isalnum(static_cast<unsigned char>(c)) || c == '_';
}

inline std::vector<std::string> split_lines(std::string_view text) {
    std::vector<std::string> lines;
    while (!text.empty()) {
        const std::size_t end = text.find('\n');
        lines.emplace_back(text.substr(0, end));
        if (end == std::string_view::npos) break;
        text.remove_prefix(end + 1);
    }
    return lines;
}

inline bool blank(std::string_view line) {
    return line.find_first_not_of(" \t\r") == std::string_view::npos;
}

// Splits C++ text in two texts of the same shape: `code` has neither comments nor the contents of
// literals, and `comments` has only comments. Blanks replace the rest, so lines and columns stay.
class separation {
public:
    explicit separation(std::string_view text) : text_(text) {
        code.reserve(text.size());
        comments.reserve(text.size());
        while (at_ < text_.size()) step();
    }
    std::string code;
    std::string comments;

private:
    void put(bool in_code, bool in_comment) {
        const char c = text_[at_++];
        code += (in_code || c == '\n') ? c : ' ';
        comments += (in_comment || c == '\n') ? c : ' ';
    }
    bool starts(std::string_view what) const { return text_.substr(at_).starts_with(what); }
    void step() {
        if (starts("//")) {
            while (at_ < text_.size() && text_[at_] != '\n') put(false, true);
        } else if (starts("/*")) {
            const std::size_t end = text_.find("*/", at_ + 2);
            while (at_ < text_.size() && at_ < end) put(false, true);
            for (int i = 0; i != 2 && at_ < text_.size(); ++i) put(false, true);
        } else if (starts("R\"") && !word_before()) {
            raw_string();
        } else if (text_[at_] == '"') {
            literal('"');
        } else if (text_[at_] == '\'' && !digit_separator()) {
            literal('\'');
        } else {
            put(true, false);
        }
    }
    bool word_before() const {
        // u8R, LR, and the like are raw strings too. An identifier that ends in R is not.
        std::size_t begin = at_;
        while (begin > 0 && is_word(text_[begin - 1])) --begin;
        const std::string_view before = text_.substr(begin, at_ - begin);
        return !(before.empty() || before == "u8" || before == "u" || before == "U" ||
                 before == "L");
    }
    bool digit_separator() const {
        std::size_t begin = at_;
        while (begin > 0 && (is_word(text_[begin - 1]) || text_[begin - 1] == '\'')) --begin;
        return begin < at_ && std::isdigit(static_cast<unsigned char>(text_[begin]));
    }
    void literal(char quote) {
        put(true, false);
        while (at_ < text_.size() && text_[at_] != quote && text_[at_] != '\n') {
            if (text_[at_] == '\\' && at_ + 1 < text_.size()) put(false, false);
            put(false, false);
        }
        if (at_ < text_.size() && text_[at_] == quote) put(true, false);
    }
    void raw_string() {
        put(true, false);
        const std::size_t open = text_.find('(', at_);
        const std::string_view name =
            open == std::string_view::npos ? "" : text_.substr(at_ + 1, open - at_ - 1);
        const std::string close = ")" + std::string(name) + "\"";
        const std::size_t end = text_.find(close, at_);
        put(true, false);
        while (at_ < text_.size() &&
               (end == std::string_view::npos || at_ + 1 < end + close.size()))
            put(false, false);
        if (at_ < text_.size()) put(true, false);
    }

    std::string_view text_;
    std::size_t at_ = 0;
};

// Returns the tokens of separated code, without preprocessor lines.
inline std::vector<token> tokenize(const std::vector<std::string>& code) {
    static constexpr std::string_view longer[] = {
        "...", "<<=", ">>=", "::", "->", "++", "--", "+=", "-=", "*=", "/=",
        "%=",  "|=",  "&=",  "^=", "==", "!=", "<=", ">=", "&&", "||", "<<"};
    std::vector<token> tokens;
    bool directive = false;
    for (std::size_t number = 1; number <= code.size(); ++number) {
        const std::string_view line = code[number - 1];
        const std::size_t first = line.find_first_not_of(" \t");
        if (first == std::string_view::npos) {
            directive = false;
            continue;
        }
        directive = directive || line[first] == '#';
        const bool continued = line.back() == '\\';
        for (std::size_t at = first; !directive && at < line.size();) {
            std::size_t length = 1;
            if (is_word(line[at])) {
                while (at + length < line.size() && is_word(line[at + length])) ++length;
            } else {
                for (const std::string_view candidate : longer) {
                    if (!line.substr(at).starts_with(candidate)) continue;
                    length = candidate.size();
                    break;
                }
            }
            if (line[at] != ' ' && line[at] != '\t' && line[at] != '\r')
                tokens.push_back({std::string(line.substr(at, length)), number});
            at += length;
        }
        directive = directive && continued;
    }
    return tokens;
}

struct source_file {
    source_file(std::string file_path, std::string file_text)
        : path(std::move(file_path)), text(std::move(file_text)), lines(split_lines(text)) {
        if (!is_cpp()) return;
        const separation parts(text);
        code = split_lines(parts.code);
        comments = split_lines(parts.comments);
        tokens = tokenize(code);
        for (std::size_t i = 0; i != lines.size(); ++i) read_include(i);
    }

    bool is_header() const { return path.ends_with(".hpp"); }
    bool is_cpp() const { return is_header() || path.ends_with(".cpp"); }
    bool is_document() const { return path.ends_with(".md"); }
    bool under(std::string_view folder) const { return path.starts_with(folder); }
    // Returns the n-th part of the path, or "" if it has fewer.
    std::string part(std::size_t n) const {
        std::size_t begin = 0;
        for (; n != 0; --n) {
            begin = path.find('/', begin);
            if (begin++ == std::string::npos) return "";
        }
        return path.substr(begin, path.find('/', begin) - begin);
    }
    // Returns the text of token i, or "" past either end: i may come from a subtraction.
    std::string_view at(std::size_t i) const {
        return i < tokens.size() ? std::string_view(tokens[i].text) : std::string_view();
    }
    finding found(std::size_t line, std::string message) const {
        return {path, line, std::move(message)};
    }

    std::string path;  // from the project's root
    std::string text;
    std::vector<std::string> lines;
    std::vector<std::string> code;      // empty if this is not C++, as are all fields below
    std::vector<std::string> comments;  // one entry per line
    std::vector<token> tokens;
    std::vector<include> includes;

private:
    void read_include(std::size_t index) {
        std::string_view line = code[index];
        if (blank(line) || line[line.find_first_not_of(" \t")] != '#') return;
        const std::size_t word = line.find("include");
        if (word == std::string_view::npos || !blank(line.substr(0, line.find('#')))) return;
        const std::string_view whole = lines[index];
        const std::size_t open = whole.find_first_of("<\"", word);
        if (open == std::string_view::npos) return;
        const bool quoted = whole[open] == '"';
        const std::size_t close = whole.find(quoted ? '"' : '>', open + 1);
        if (close == std::string_view::npos) return;
        includes.push_back(
            {std::string(whole.substr(open + 1, close - open - 1)), quoted, index + 1});
    }
};

using tree = std::vector<source_file>;

// Returns the index of the token that closes the bracket at `open`, or tokens.size() if none does.
inline std::size_t closing(const std::vector<token>& tokens, std::size_t open) {
    const std::string_view opener = tokens[open].text;
    const std::string_view closer = opener == "(" ? ")" : opener == "{" ? "}" : "]";
    std::size_t depth = 0;
    for (std::size_t i = open; i != tokens.size(); ++i) {
        if (tokens[i].text == opener) ++depth;
        if (tokens[i].text == closer && --depth == 0) return i;
    }
    return tokens.size();
}

// Returns true if `text` has `word` without a letter, digit, or underscore on either side.
inline bool has_word(std::string_view text, std::string_view word) {
    for (std::size_t at = text.find(word); at != std::string_view::npos;
         at = text.find(word, at + 1)) {
        const bool before = at > 0 && is_word(text[at - 1]);
        const bool after = at + word.size() < text.size() && is_word(text[at + word.size()]);
        if (!before && !after) return true;
    }
    return false;
}

}  // namespace tidy
