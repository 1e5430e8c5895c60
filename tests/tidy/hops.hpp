// The law of the architecture page: its paths lead through functions that exist, in eight hops.
#pragma once
// A path is a table in docs/architecture.md:
//
//   | | file | function | what happens |
//   |---|---|---|---|
//   | 1 | `io/stream.hpp` | `receive` | ... |
//
// A file is named relative to the root or to include/coppice/. A cell may name several files, each
// with one function: `a.hpp`, `b.cpp` with `f`, `g`. Then f is in a.hpp, and g is in b.cpp. If the
// cell names one file, all functions are in it. A path has at most eight rows, unless the line
// above its table starts with "More than eight:" and says why. Other files that the page names in
// backticks exist.

#include "names.hpp"
#include "source.hpp"

namespace tidy {

inline constexpr std::size_t hops_max = 8;
inline constexpr std::string_view page_of_paths = "docs/architecture.md";

// Returns the texts between backticks.
inline std::vector<std::string> ticked(std::string_view text) {
    std::vector<std::string> all;
    for (std::size_t open = text.find('`'); open != std::string_view::npos;) {
        const std::size_t close = text.find('`', open + 1);
        if (close == std::string_view::npos) break;
        all.emplace_back(text.substr(open + 1, close - open - 1));
        open = text.find('`', close + 1);
    }
    return all;
}

// Returns the cells of a table's row, or none if the line is not a row.
inline std::vector<std::string> cells(std::string_view line) {
    std::vector<std::string> all;
    if (!line.starts_with("| ") && !line.starts_with("|-")) return all;
    for (std::size_t at = 0; at + 1 < line.size();) {
        const std::size_t end = std::min(line.find('|', at + 1), line.size());
        std::string_view cell = line.substr(at + 1, end - at - 1);
        while (cell.starts_with(' ')) cell.remove_prefix(1);
        while (cell.ends_with(' ')) cell.remove_suffix(1);
        all.emplace_back(cell);
        at = end;
    }
    return all;
}

inline const source_file* named_file(const tree& files, const std::string& name) {
    for (const source_file& file : files) {
        if (file.path == name || file.path == "include/coppice/" + name) return &file;
    }
    return nullptr;
}

// Returns true if the function whose name is token `at` is declared there, not called. A
// declaration has a type before the name, and its statement has no word that occurs only in
// expressions.
inline bool is_declared_at(const source_file& file, std::size_t at) {
    std::size_t type = at - 1;
    while (file.at(type) == "::" && is_word(file.at(type - 1).empty() ? ' ' : file.at(type - 1)[0]))
        type -= 2;
    if (file.at(type) == "::" && file.at(type - 1) == ">") --type;
    const std::string_view before = file.at(type);
    if (before.empty()) return false;
    if (!is_word(before[0]) && before != ">" && before != "*" && before != "&" && before != "&&" &&
        before != "]")
        return false;
    static constexpr std::string_view expressions[] = {
        "return", "co_return", "co_await", "throw", "if", "while", "else", "=", ".", "->", "new"};
    std::size_t begin = type;  // of the statement
    while (begin > 0 && file.at(begin - 1) != ";" && file.at(begin - 1) != "{" &&
           file.at(begin - 1) != "}")
        --begin;
    if (file.at(begin + 1) == ":") begin += 2;  // after public:
    for (std::size_t i = past_heads(file, begin, at); i < at; ++i) {
        for (const std::string_view no : expressions) {
            if (file.at(i) == no) return false;
        }
    }
    return true;
}

// Returns true if the file declares `function`. Of class::name, the file must name the class too.
inline bool declares(const source_file& file, std::string_view function) {
    const std::size_t last = function.rfind("::");
    if (last != std::string_view::npos) {
        const std::string_view owner = function.substr(0, last);
        if (!has_word(file.text, owner)) return false;
        function.remove_prefix(last + 2);
    }
    const bool is_call = function == "operator()";
    for (std::size_t i = 1; i < file.tokens.size(); ++i) {
        if (is_call) {
            if (file.at(i) == "operator" && file.at(i + 1) == "(" && file.at(i + 2) == ")")
                return true;
        } else if (file.at(i) == function && file.at(i + 1) == "(" && is_declared_at(file, i)) {
            return true;
        }
    }
    return false;
}

// Reports the faults in one row of a path.
inline void check_hop(const tree& files, const source_file& page, std::size_t line,
                      const std::vector<std::string>& row, findings& out) {
    const std::vector<std::string> places = ticked(row[1]);
    const std::vector<std::string> functions = ticked(row[2]);
    if (places.empty() || functions.empty() ||
        (places.size() != 1 && places.size() != functions.size())) {
        out.push_back(page.found(line, "a hop names a file and its functions, or one for each"));
        return;
    }
    for (std::size_t i = 0; i != functions.size(); ++i) {
        const std::string& place = places.size() == 1 ? places[0] : places[i];
        const source_file* const file = named_file(files, place);
        if (file == nullptr) {
            out.push_back(page.found(line, place + " does not exist"));
        } else if (!declares(*file, functions[i])) {
            out.push_back(page.found(line, place + " has no function " + functions[i]));
        }
    }
}

inline void dead_hops(const tree& files, findings& out) {
    for (const source_file& page : files) {
        if (page.path != page_of_paths) continue;
        for (std::size_t i = 0; i != page.lines.size(); ++i) {
            const std::vector<std::string> head = cells(page.lines[i]);
            if (head.size() != 4 || head[1] != "file" || head[2] != "function") continue;
            const bool excused = (i > 0 && page.lines[i - 1].starts_with("More than eight:")) ||
                                 (i > 1 && page.lines[i - 2].starts_with("More than eight:"));
            std::size_t hops = 0;
            for (i += 2; i < page.lines.size(); ++i) {
                const std::vector<std::string> row = cells(page.lines[i]);
                if (row.size() != 4) break;
                check_hop(files, page, i + 1, row, out);
                if (++hops == hops_max + 1 && !excused)
                    out.push_back(page.found(i + 1, "more than eight hops: straighten it"));
            }
            --i;
        }
    }
}

// A page's files are files of the tree. A name with a placeholder, <room> or *, is not checked.
inline void missing_files(const tree& files, findings& out) {
    for (const source_file& page : files) {
        if (page.path != page_of_paths) continue;
        for (std::size_t i = 0; i != page.lines.size(); ++i) {
            for (const std::string& name : ticked(page.lines[i])) {
                const bool is_file = name.ends_with(".hpp") || name.ends_with(".cpp") ||
                                     name.ends_with(".md") || name.ends_with(".sh");
                if (!is_file || name.find('/') == std::string::npos) continue;
                if (name.find_first_of("<*{") != std::string::npos) continue;
                if (named_file(files, name) == nullptr)
                    out.push_back(page.found(i + 1, name + " does not exist"));
            }
        }
    }
}

}  // namespace tidy
