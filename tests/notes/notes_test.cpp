// coppice-notes as its users run it, over SQLite or over the database that COPPICE_NOTES_DATABASE
// names (with_postgresql.sh), and the JSON that it reads and writes.
#include "json.hpp"
#include "served.hpp"

#include <gtest/gtest.h>

#include <sqlite3.h>
#include <sys/types.h>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <thread>
#include <vector>

namespace {

using coppice::test::client;
using coppice::test::served;

bool has_status(const std::string& answer, int status) {
    return answer.starts_with("HTTP/1.1 " + std::to_string(status) + " ");
}
std::string body_of(const std::string& answer) {
    const std::size_t end = answer.find("\r\n\r\n");
    return end == answer.npos ? "" : answer.substr(end + 4);
}

class notes : public testing::Test {
protected:
    notes() : directory_("/tmp/coppice-notes-test." + std::to_string(::getpid())) {
        std::filesystem::create_directory(directory_);
        const char* const named = std::getenv("COPPICE_NOTES_DATABASE");
        database = named != nullptr ? named : directory_ / "notes.db";
    }
    ~notes() override { std::filesystem::remove_all(directory_); }
    std::vector<std::string> arguments() const {
        return {"--port", "0", "--threads", "2", "--database", database};
    }
    // Adds a note and returns its path.
    static std::string add(served& s, const std::string& body) {
        const std::string answer = s.ask("POST", "/notes", body);
        EXPECT_TRUE(has_status(answer, 201)) << answer;
        const std::size_t at = answer.find("Location: ") + 10;
        return answer.substr(at, answer.find("\r\n", at) - at);
    }
    std::string database;

private:
    std::filesystem::path directory_;
};

TEST_F(notes, are_added_read_listed_replaced_and_removed) {
    served s(COPPICE_NOTES, arguments());
    const std::string first = add(s, R"({"text": "one"})");
    const std::string second = add(s, R"({ "text" : "z\u0077ei \"\u00e4\ud83d\ude00\"" })");
    const std::string id = second.substr(std::string("/notes/").size());
    EXPECT_EQ(body_of(s.get(second)),
              "{\"id\":" + id + ",\"text\":\"zwei \\\"\u00e4\U0001f600\\\"\"}");
    const std::string list = body_of(s.get("/notes"));
    EXPECT_TRUE(list.starts_with("[{\"id\":" + id)) << list;  // the newest is first
    EXPECT_NE(list.find("\"one\""), list.npos);
    EXPECT_TRUE(has_status(s.ask("PUT", first, R"({"text":"uno"})"), 204));
    EXPECT_NE(body_of(s.get(first)).find("\"uno\""), std::string::npos);
    EXPECT_TRUE(has_status(s.ask("DELETE", first), 204));
    EXPECT_TRUE(has_status(s.get(first), 404));
    EXPECT_TRUE(has_status(s.ask("DELETE", first), 404));
    EXPECT_TRUE(has_status(s.ask("PUT", first, R"({"text":"x"})"), 404));
    s.signal(SIGTERM);
    EXPECT_EQ(s.exit_status(), 0);
}

TEST_F(notes, an_invalid_note_is_refused_with_a_reason) {
    served s(COPPICE_NOTES, arguments());
    for (const char* const bad : {"text", "{}", R"({"text":1})", R"({"text":"a","more":"b"})",
                                  R"({"text":"a\u0000b"})", "{\"text\":\"\xff\"}"}) {
        const std::string answer = s.ask("POST", "/notes", bad);
        EXPECT_TRUE(has_status(answer, 400)) << bad << answer;
        EXPECT_EQ(body_of(answer), R"({"error":"the body must be {\"text\": \"...\"}"})");
    }
    const std::string large = "{\"text\":\"" + std::string(65'537, 'x') + "\"}";
    EXPECT_TRUE(has_status(s.ask("POST", "/notes", large), 413));
    EXPECT_TRUE(has_status(s.get("/notes/0"), 404));
    EXPECT_TRUE(has_status(s.get("/notes/one"), 404));
    EXPECT_TRUE(has_status(s.ask("PATCH", "/notes"), 405));
}

TEST_F(notes, outlive_their_server) {
    std::string path;
    {
        served s(COPPICE_NOTES, arguments());
        path = add(s, R"({"text":"kept"})");
        s.signal(SIGTERM);
        EXPECT_EQ(s.exit_status(), 0);
    }
    served s(COPPICE_NOTES, arguments());
    EXPECT_NE(body_of(s.get(path)).find("\"kept\""), std::string::npos);
}

TEST_F(notes, are_added_by_many_clients_at_once_and_none_is_lost) {
    served s(COPPICE_NOTES, arguments());
    const std::uint16_t port = s.port();
    constexpr int clients = 12;  // more than the connections to a database
    constexpr int each = 20;
    std::vector<std::thread> threads;
    for (int i = 0; i != clients; ++i) {
        threads.emplace_back([&, i] {
            client c(port);
            for (int n = 0; n != each; ++n) {
                const std::string body = "{\"text\":\"" + std::to_string(i * each + n) + "\"}";
                ASSERT_TRUE(c.send("POST /notes HTTP/1.1\r\nHost: a\r\nContent-Length: " +
                                   std::to_string(body.size()) + "\r\n\r\n" + body));
                const std::string made = c.receive();
                ASSERT_TRUE(has_status(made, 201)) << made;
                const std::size_t at = made.find("Location: ") + 10;
                const std::string path = made.substr(at, made.find("\r\n", at) - at);
                ASSERT_TRUE(c.send("GET " + path + " HTTP/1.1\r\nHost: a\r\n\r\n"));
                EXPECT_NE(c.receive().find(body.substr(1)), std::string::npos);
            }
        });
    }
    for (std::thread& t : threads) t.join();
}

TEST(notes_program, refuses_a_database_that_it_cannot_open) {
    served s(COPPICE_NOTES, {"--port", "0", "--database", "/does/not/exist/notes.db"});
    EXPECT_EQ(s.exit_status(), 2);
    EXPECT_NE(s.err().find("coppice-notes: "), std::string::npos);
}

// Locks the file by another connection while this lives.
class lock_on {
public:
    explicit lock_on(const std::string& path) {
        EXPECT_EQ(::sqlite3_open(path.c_str(), &file_), SQLITE_OK);
        EXPECT_EQ(::sqlite3_exec(file_, "BEGIN IMMEDIATE", nullptr, nullptr, nullptr), SQLITE_OK);
    }
    ~lock_on() { ::sqlite3_close(file_); }

private:
    sqlite3* file_ = nullptr;
};

// Halts a process and its children while this lives.
class halted {
public:
    explicit halted(pid_t parent) {
        processes_.push_back(parent);
        ::kill(parent, SIGSTOP);  // first, so that it starts no further children
        const std::string id = std::to_string(parent);
        std::ifstream children("/proc/" + id + "/task/" + id + "/children");
        for (pid_t child; children >> child;) {
            processes_.push_back(child);
            ::kill(child, SIGSTOP);
        }
    }
    ~halted() {
        for (const pid_t p : processes_) ::kill(p, SIGCONT);
    }

private:
    std::vector<pid_t> processes_;
};

class notes_halted : public notes {
protected:
    // with_postgresql.sh sets it to the server that it has started.
    void SetUp() override {
        const char* const named = std::getenv("COPPICE_NOTES_POSTGRESQL_PID");
        if (named == nullptr) GTEST_SKIP() << "this is for with_postgresql.sh";
        server = std::atoi(named);
    }
    pid_t server = 0;
};

TEST_F(notes_halted, a_halted_postgresql_gives_503_within_the_timeout_and_is_used_again) {
    std::vector<std::string> flags = arguments();
    flags.insert(flags.end(), {"--database-timeout", "2s"});
    served s(COPPICE_NOTES, flags);
    const std::string kept = add(s, R"({"text":"kept"})");
    {
        const halted stopped(server);
        std::vector<std::unique_ptr<client>> many;
        for (int i = 0; i != 20; ++i) {
            many.push_back(std::make_unique<client>(s.port()));
            many.back()->send("GET " + kept + " HTTP/1.1\r\nHost: a\r\n\r\n");
        }
        for (const auto& c : many) {
            const std::string answer = c->receive();  // waits 10 s at most, and then is ""
            EXPECT_TRUE(has_status(answer, 503)) << answer;
        }
        EXPECT_TRUE(has_status(s.get("/healthz"), 200));
    }
    EXPECT_NE(s.get(kept).find("\"kept\""), std::string::npos);
    const halted again(server);
    client last(s.port());
    last.send("GET " + kept + " HTTP/1.1\r\nHost: a\r\n\r\n");
    EXPECT_TRUE(has_status(s.get("/healthz"), 200));
    s.signal(SIGTERM);
    const std::string answer = last.receive();
    EXPECT_TRUE(has_status(answer, 503) || answer.empty()) << answer;
    last.reset();
    EXPECT_EQ(s.exit_status(), 0);
}

class notes_late : public notes {
protected:
    std::vector<std::string> with_timeout(const char* time) const {
        std::vector<std::string> all = arguments();
        all.insert(all.end(), {"--database-timeout", time});
        return all;
    }
    void SetUp() override {
        if (database.starts_with("postgresql://")) GTEST_SKIP() << "this is about files";
    }
};

TEST_F(notes_late, a_file_that_stays_locked_gives_503_within_the_timeout_and_is_used_again) {
    served s(COPPICE_NOTES, with_timeout("1s"));
    const std::string kept = add(s, R"({"text":"kept"})");
    {
        const lock_on file(database);
        // Each has its own timeout, although it waits for others that use up theirs.
        std::vector<std::unique_ptr<client>> many;
        const std::string body = R"({"text":"lost"})";
        for (int i = 0; i != 20; ++i) {
            many.push_back(std::make_unique<client>(s.port()));
            many.back()->send("POST /notes HTTP/1.1\r\nHost: a\r\nContent-Length: " +
                              std::to_string(body.size()) + "\r\n\r\n" + body);
        }
        for (const auto& c : many) {
            const std::string answer = c->receive();  // waits 10 s at most, and then is ""
            EXPECT_TRUE(has_status(answer, 503)) << answer;
            EXPECT_NE(answer.find("\r\nRetry-After: "), answer.npos);
        }
        EXPECT_NE(s.get(kept).find("\"kept\""), std::string::npos) << "reading needs no lock";
    }
    add(s, R"({"text":"again"})");
}

TEST_F(notes_late, a_server_that_waits_for_a_lock_drains) {
    // On one loop: the request is in flight once a later request is answered.
    served s(COPPICE_NOTES,
             {"--port", "0", "--threads", "1", "--database", database, "--database-timeout", "1s"});
    add(s, R"({"text":"a"})");
    const lock_on file(database);
    client c(s.port());
    const std::string body = R"({"text":"lost"})";
    c.send("POST /notes HTTP/1.1\r\nHost: a\r\nContent-Length: " + std::to_string(body.size()) +
           "\r\n\r\n" + body);
    EXPECT_TRUE(has_status(s.get("/healthz"), 200));
    s.signal(SIGTERM);
    EXPECT_TRUE(has_status(c.receive(), 503));
    c.reset();
    EXPECT_EQ(s.exit_status(), 0);
}

TEST(notes_program, refuses_an_invalid_database_timeout) {
    for (const char* const bad : {"", "5", "0s", "-1s", "5d", "61m", "99999999999999999999s"}) {
        served s(COPPICE_NOTES, {"--port", "0", "--database-timeout", bad});
        EXPECT_EQ(s.exit_status(), 2) << bad;
        EXPECT_NE(s.err(), "") << bad;
    }
}

// RFC 8259
TEST(notes_json, a_string_survives_a_round_trip) {
    for (const std::string_view text :
         {"", "a", "\"\\/\b\f\n\r\t\x01\x1f", "\u00e4\u20ac\U0001f600"}) {
        std::string json = "{\"text\":";
        ::notes::append_string(json, text);
        json += "}";
        EXPECT_EQ(::notes::string_member(json, "text"), text) << json;
    }
}

TEST(notes_json, malformed_text_is_rejected) {
    for (const std::string_view bad :
         {R"({"text":"a")", R"({"text":"a"}x)", R"({"text" "a"})", R"({"text":"\x"})",
          R"({"text":"\u12"})", R"({"text":"\ud800"})", R"({"text":"\ud800\u0041"})",
          R"({"text":"\udc00"})", R"({"other":"a"})", "{\"text\":\"\n\"}",
          "{\"text\":\"\xc0\x80\"}", "{\"text\":\"\xed\xa0\x80\"}",
          "{\"text\":\"\xf4\x90\x80\x80\"}", "{\"text\":\"\xe2\x82\"}", ""}) {
        EXPECT_EQ(::notes::string_member(bad, "text"), std::nullopt) << bad;
    }
}

TEST(notes_json, deep_nesting_is_refused_on_a_bounded_stack) {
    const std::string deep =
        "{\"text\":" + std::string(1'000'000, '[') + std::string(1'000'000, ']') + "}";
    EXPECT_EQ(::notes::string_member(deep, "text"), std::nullopt);
    EXPECT_EQ(::notes::string_member(std::string(1'000'000, '['), "text"), std::nullopt);
}

}  // namespace
