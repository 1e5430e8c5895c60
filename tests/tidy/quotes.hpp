// The law of the documents: C++ is quoted from compiled examples, exactly; links lead somewhere.
#pragma once
// In a document:                                    In the example, for a part of it:
//
//   <!-- example: examples/01_hello.cpp -->           // [accept]
//   ```cpp                                            ...
//   ...                                               // [/accept]
//   ```                                               quoted as `examples/01_hello.cpp [accept]`
//
// A part is compared without its common indentation. Pages under docs/decisions/ may show rejected
// code, which does not compile. Their marked quotes are checked all the same.

#include "source.hpp"

#include <filesystem>

namespace tidy {

inline std::vector<std::string> without_indentation(std::vector<std::string> lines) {
    std::size_t common = std::string::npos;
    for (const std::string& line : lines) {
        if (!blank(line)) common = std::min(common, line.find_first_not_of(' '));
    }
    for (std::string& line : lines) line.erase(0, blank(line) ? line.size() : common);
    return lines;
}

// Puts into `lines` the lines that `reference`, "path" or "path [part]", names. False if none.
inline bool quoted_lines(const tree& files, std::string_view reference,
                         std::vector<std::string>& lines) {
    const std::size_t space = reference.find(' ');
    const std::string_view path = reference.substr(0, space);
    const auto file = std::find_if(files.begin(), files.end(),
                                   [&](const source_file& f) { return f.path == path; });
    if (file == files.end()) return false;
    lines = file->lines;
    if (space == std::string_view::npos) return true;
    const std::string part(reference.substr(space + 1));
    if (part.size() < 3 || part.front() != '[' || part.back() != ']') return false;
    const auto mark = [&](const std::string& text) {
        return std::find_if(lines.begin(), lines.end(), [&](const std::string& line) {
            return !blank(line) && line.substr(line.find_first_not_of(' ')) == "// " + text;
        });
    };
    const auto begin = mark(part);
    const auto end = mark("[/" + part.substr(1));
    if (begin == lines.end() || end == lines.end() || end < begin) return false;
    lines = without_indentation({begin + 1, end});
    return true;
}

// Links from document to document, or into the tree, lead somewhere. What ./bench writes may be
// missing.
inline void dead_links(const tree& files, findings& out) {
    const auto exists = [&](const std::string& path) {
        return std::any_of(files.begin(), files.end(), [&](const source_file& file) {
            return file.path == path || file.path.starts_with(path + "/");
        });
    };
    for (const source_file& file : files) {
        if (!file.is_document() || file.under("docs/results/")) continue;
        bool inside_block = false;
        for (std::size_t i = 0; i != file.lines.size(); ++i) {
            const std::string& line = file.lines[i];
            if (line.starts_with("```")) inside_block = !inside_block;
            if (inside_block) continue;  // lambdas look alike
            for (std::size_t at = line.find("]("); at != std::string::npos;
                 at = line.find("](", at + 1)) {
                const std::size_t end = line.find(')', at);
                std::string target = line.substr(at + 2, end - at - 2);
                target.erase(std::min(target.find('#'), target.size()));
                if (target.empty() || target.find(':') != std::string::npos) continue;
                const std::filesystem::path folder = std::filesystem::path(file.path).parent_path();
                std::string path = (folder / target).lexically_normal().generic_string();
                if (path.ends_with('/')) path.pop_back();
                if (!exists(path) && path != "LICENSE" && !path.starts_with("docs/results/"))
                    out.push_back(file.found(i + 1, target + " leads nowhere"));
            }
        }
    }
}

// The first C++ of a page has its includes and usings, so that a reader can compile the rest.
inline void bare_snippets(const tree& files, findings& out) {
    for (const source_file& file : files) {
        if (!file.is_document() || !file.under("docs/") || file.under("docs/decisions/")) continue;
        const auto open = std::find_if(file.lines.begin(), file.lines.end(), [](const auto& line) {
            return line.starts_with("```cpp") || line.starts_with("```c++");
        });
        if (open == file.lines.end()) continue;
        const auto end = std::find_if(open + 1, file.lines.end(),
                                      [](const auto& line) { return line.starts_with("```"); });
        const auto has = [&](std::string_view beginning) {
            return std::any_of(open, end,
                               [&](const auto& line) { return line.starts_with(beginning); });
        };
        if (has("#include <coppice/") && (has("using ") || has("namespace ex ="))) continue;
        out.push_back(file.found(static_cast<std::size_t>(open - file.lines.begin()) + 1,
                                 "the first snippet of a page has its includes and usings"));
    }
}

inline void quotes(const tree& files, findings& out) {
    static constexpr std::string_view open = "<!-- example: ";
    for (const source_file& file : files) {
        if (!file.is_document()) continue;
        std::string reference;  // the mark directly above, if any
        for (std::size_t i = 0; i != file.lines.size(); ++i) {
            const std::string& line = file.lines[i];
            if (line.starts_with(open) && line.ends_with(" -->")) {
                if (i + 1 != file.lines.size() && file.lines[i + 1].starts_with("```")) {
                    reference = line.substr(open.size(), line.size() - open.size() - 4);
                } else {
                    out.push_back(file.found(i + 1, "no fenced block follows this mark"));
                }
                continue;
            }
            if (!line.starts_with("```")) continue;
            const std::size_t first = i + 1;
            while (++i < file.lines.size() && !file.lines[i].starts_with("```")) {
            }
            if (i == file.lines.size()) {
                out.push_back(file.found(first, "this block never ends"));
                break;
            }
            const std::string quoted = std::exchange(reference, "");
            if (quoted.empty()) {
                if (line.starts_with("```c++") || line.starts_with("```cpp")) {
                    if (!file.under("docs/decisions/"))
                        out.push_back(file.found(first, "C++ without an example that compiles it"));
                }
                continue;
            }
            std::vector<std::string> expected;
            if (!quoted_lines(files, quoted, expected)) {
                out.push_back(file.found(first - 1, quoted + ": no such example"));
                continue;
            }
            for (std::size_t n = 0; n != std::max(expected.size(), i - first); ++n) {
                const bool both = n < expected.size() && first + n < i;
                if (both && expected[n] == file.lines[first + n]) continue;
                out.push_back(file.found(first + n + 1, "differs from " + quoted));
                break;
            }
        }
    }
}

}  // namespace tidy
