// The law of the prose: constructions that a reader has to decode, and what to write instead.
#pragma once
// It reads the comments, documents, and test names of the whole tree except unread_places. It reads
// neither code nor text in backticks or fenced blocks.
// docs/style.md has the rules behind the list.

#include "source.hpp"

#include <iterator>

namespace tidy {

// A construction in lower case, its words separated by single spaces. "^" is the beginning of a
// comment, a paragraph, or a sentence; "." is any punctuation mark or the end of the text.
struct unplain {
    std::string_view words;
    std::string_view instead;
};
inline constexpr unplain unplain_list[] = {
    {"whoever", "name the actor: owner, thief, caller, waiter, requester, loop, worker"},
    {"whomever", "name the actor"},
    {"whom", "name the actor, and make it the subject"},
    {"^ who", "name the actor: \"A thread that calls run() ...\""},
    {". who", "name the actor, and begin a new sentence"},
    {"by who", "name the actor: by the thief, by the caller"},
    {"of who", "name the actor: the caller's, the worker's"},
    {"for who", "name the actor: for the waiter"},
    {"to who", "name the actor: to the requester"},
    {"from who", "name the actor: from the owner"},
    {"with who", "name the actor"},
    {"than who", "name the actor"},
    {"and who", "name the actor"},
    {"or who", "name the actor"},
    {"but who", "name the actor"},
    {"that who", "name the actor"},
    {"one who", "a thread is not a person: the thread that"},
    {"those who", "a thread is not a person: threads that, callers that"},
    {"thread who", "a thread is not a person: the thread that"},
    {"by one that", "name the actor"},
    {"for one that", "name the actor"},
    {"of one that", "name the actor"},
    {"he", "name the thread or the object"},
    {"him", "name the thread or the object"},
    {"his", "name the thread or the object"},
    {"himself", "name the thread or the object"},
    {"somebody", "name the actor: another thread, a caller"},
    {"someone", "name the actor: another thread, a caller"},
    {"nobody", "no thread, no caller, no worker"},
    {"everybody", "every thread, every caller"},
    {"no more .", "no longer, and before the verb"},
    {"any more .", "any longer, or no longer"},
    {"^ true .", "Returns true if ..."},
    {"^ false .", "Returns false if ..."},
    {"^ whether", "Returns true if ..., or True if ... for a field"},
    {"^ the same .", "repeat the verb: Returns the same ..., Waits likewise ..."},
    {"to be called by", "Called by"},
    {"nothing but", "only"},
    {"none but", "only"},
    {"but for", "except for"},
    {"anew", "again"},
    {"for ever", "forever, permanently"},
    {"as ever", "as before, as usual, still"},
    {"inside of", "inside"},
    {"one's own", "your own"},
    {"rides on", "depends on"},
    {"ride on", "depend on"},
    {"stranger", "say which: another contract, an unrelated call"},
    {"strangers", "say which: other contracts, unrelated calls"},
    {"in vain", "say what happens instead: finds nothing, fails"},
    {"comes upon", "finds"},
    {"come upon", "find"},
    {"sees to it", "ensures"},
    {"lest", "so that ... not"},
    {"thereof", "of it"},
    {"therein", "in it"},
    {"thereby", "by that, or a new sentence"},
    {"whereupon", "and then, or a new sentence"},
    {"wherein", "in which"},
    {"the latter", "repeat the noun"},
    {"in its stead", "instead"},
    {"so to speak", "delete it"},
    {"cancelled", "canceled"},
    {"cancelling", "canceling"},
    {"behaviour", "behavior"},
    {"neighbour", "neighbor"},
    {"neighbours", "neighbors"},
    {"neighbouring", "neighboring"},
    {"favour", "favor"},
    {"favours", "favors"},
    {"favoured", "favored"},
    {"colour", "color"},
    {"honour", "honor"},
    {"honours", "honors"},
    {"licence", "license"},
    {"modelled", "modeled"},
    {"signalled", "signaled"},
    {"synchronise", "synchronize"},
    {"synchronised", "synchronized"},
    {"initialise", "initialize"},
    {"initialised", "initialized"},
    {"customise", "customize"},
    {"customised", "customized"},
    {"specialise", "specialize"},
    {"specialisation", "specialization"},
    {"optimise", "optimize"},
    {"optimised", "optimized"},
    {"optimisation", "optimization"},
    {"serialise", "serialize"},
    {"recognise", "recognize"},
    {"recognised", "recognized"},
    {"organise", "organize"},
    {"amortised", "amortized"},
    {"analyse", "analyze"},
    {"learnt", "learned"},
    {"misspelt", "misspelled"},
    {"whilst", "while"},
    {"per cent", "percent"},
    {"dearer", "more expensive"},
    {"to and fro", "back and forth, in each direction"},
};

// The beginnings of the paths whose prose is not read, each with the reason.
struct unread_prose {
    std::string_view place;
    std::string_view reason;
};
inline constexpr unread_prose unread_places[] = {
    {"docs/style.md", "shows the constructions that the list rejects"},
    {"docs/results/", "written by ./bench"},
};
inline bool is_plain(const source_file& file) {
    return std::none_of(std::begin(unread_places), std::end(unread_places),
                        [&](const unread_prose& unread) { return file.under(unread.place); });
}

// Reads prose line by line into words in lower case and the marks of `unplain`.
class prose_reader {
public:
    // Ends the paragraph: the next word begins a sentence.
    void end_paragraph(std::size_t line) {
        mark(".", line);
        mark("^", line);
    }
    void read(std::string_view text, std::size_t line) {
        for (std::size_t at = 0; at < text.size();) {
            const char c = text[at];
            std::size_t length = 1;
            if (c == '`') {
                const std::size_t close = text.find('`', at + 1);
                length = (close == std::string_view::npos ? text.size() : close + 1) - at;
                mark("code", line);
            } else if (is_word(c)) {
                while (at + length < text.size() &&
                       (is_word(text[at + length]) || text[at + length] == '\''))
                    ++length;
                std::string word(text.substr(at, length));
                for (char& letter : word)
                    letter = static_cast<char>(std::tolower(static_cast<unsigned char>(letter)));
                mark(std::move(word), line);
            } else if (c != ' ' && c != '\t' && c != '*' && c != '"' && c != '(') {
                mark(".", line);
                if (c == '.' || c == '!' || c == '?') mark("^", line);
            }
            at += length;
        }
    }
    const std::vector<token>& words() const { return words_; }

private:
    void mark(std::string word, std::size_t line) { words_.push_back({std::move(word), line}); }

    std::vector<token> words_;
};

// Reads the prose of a document, without fenced blocks. Table cells and list items begin sentences.
inline void read_document(const source_file& file, prose_reader& reader) {
    bool fenced = false;
    for (std::size_t i = 0; i != file.lines.size(); ++i) {
        const std::string& line = file.lines[i];
        if (line.starts_with("```")) fenced = !fenced;
        const std::size_t first = line.find_first_not_of(" \t");
        if (fenced || first == std::string::npos) {
            reader.end_paragraph(i + 1);
            continue;
        }
        const bool item = line[first] == '-' || line[first] == '#' || line[first] == '|';
        if (item) reader.end_paragraph(i + 1);
        reader.read(line, i + 1);
    }
    reader.end_paragraph(file.lines.size());
}

// Reads the comments of a C++ file. Each run of comment lines is one text.
inline void read_comments(const source_file& file, prose_reader& reader) {
    bool whole_line = false;
    for (std::size_t i = 0; i != file.comments.size(); ++i) {
        std::string_view comment = file.comments[i];
        const std::size_t first = comment.find_first_not_of(" /");
        const bool alone = blank(file.code[i]);
        if (!(alone && whole_line) || first == std::string_view::npos) reader.end_paragraph(i + 1);
        if (first != std::string_view::npos) reader.read(comment.substr(first), i + 1);
        whole_line = alone && !blank(comment);
    }
    reader.end_paragraph(file.comments.size());
}

// Reads the words of test names: TEST(suite, name) and its relatives.
inline void read_test_names(const source_file& file, prose_reader& reader) {
    for (std::size_t i = 0; i != file.tokens.size(); ++i) {
        const std::string_view word = file.at(i);
        const bool test = word == "TEST" || word == "TEST_F" || word == "TEST_P" ||
                          word == "TYPED_TEST" || word == "TYPED_TEST_P";
        if (!test || file.at(i + 1) != "(" || file.at(i + 3) != ",") continue;
        std::string name(file.at(i + 4));
        std::replace(name.begin(), name.end(), '_', ' ');
        reader.end_paragraph(file.tokens[i + 4].line);
        reader.read(name, file.tokens[i + 4].line);
    }
    reader.end_paragraph(file.lines.size());
}

// Reports each place where the words of an entry follow each other.
inline void find_unplain(const source_file& file, const prose_reader& reader, findings& out) {
    const std::vector<token>& words = reader.words();
    for (const unplain& entry : unplain_list) {
        std::vector<std::string_view> wanted;
        for (std::string_view rest = entry.words; !rest.empty();) {
            const std::size_t end = std::min(rest.find(' '), rest.size());
            wanted.push_back(rest.substr(0, end));
            rest.remove_prefix(std::min(end + 1, rest.size()));
        }
        for (std::size_t i = 0; i + wanted.size() <= words.size(); ++i) {
            std::size_t same = 0;
            while (same != wanted.size() && words[i + same].text == wanted[same]) ++same;
            if (same != wanted.size()) continue;
            const std::size_t line = words[i + (wanted[0] == "^" ? 1 : 0)].line;
            out.push_back(file.found(
                line, "\"" + std::string(entry.words) + "\": write " + std::string(entry.instead)));
        }
    }
}

inline void unplain_words(const tree& files, findings& out) {
    for (const source_file& file : files) {
        if (!is_plain(file)) continue;
        prose_reader reader;
        reader.end_paragraph(1);
        if (file.is_document()) read_document(file, reader);
        if (file.is_cpp()) read_comments(file, reader);
        if (file.is_cpp()) read_test_names(file, reader);
        find_unplain(file, reader, out);
    }
}

}  // namespace tidy
