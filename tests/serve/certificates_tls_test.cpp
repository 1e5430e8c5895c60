// coppice-serve over TLS: its certificates, by the names of hosts, and their reload at SIGHUP; with
// curl, if that is installed.
#include <coppice/base/internal/atomic.hpp>
#include <coppice/http/client.hpp>
#include <coppice/tls.hpp>

#include "certificates.hpp"
#include "detached.hpp"
#include "served.hpp"

#include <gtest/gtest.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

namespace {

using namespace coppice;
using namespace coppice::internal;
namespace fs = std::filesystem;
using coppice::test::authority;
using coppice::test::wish;

// Returns what a command writes, and its status after a space.
std::string output_of(const std::string& command) {
    std::FILE* const pipe = ::popen((command + " 2>&1").c_str(), "r");
    std::string text;
    for (int c; (c = std::fgetc(pipe)) != EOF;) text.push_back(static_cast<char>(c));
    return text + " " + std::to_string(WEXITSTATUS(::pclose(pipe)));
}

class serve_certificates : public testing::Test {
protected:
    serve_certificates() {
        fs::create_directory(directory);
        write("authority.pem", issuer.pem());
    }
    ~serve_certificates() override { fs::remove_all(directory); }
    void SetUp() override {
        if (!output_of("curl --version").ends_with(" 0")) GTEST_SKIP() << "curl is not installed";
    }
    std::string path(const std::string& name) const { return (directory / name).string(); }
    void write(const std::string& name, const std::string& text) const {
        std::ofstream(path(name) + ".new") << text;
        fs::rename(path(name) + ".new", path(name));
    }
    // Writes NAME.pem and NAME.key for a host.
    void issue(const std::string& name, const std::string& host) const {
        issue(name, wish{.names = "DNS:" + host});
    }
    void issue(const std::string& name, const wish& w) const {
        const coppice::tls::certificate made = issuer.issue(w);
        write(name + ".pem", made.chain);
        write(name + ".key", made.key);
    }
    std::vector<std::string> flags(const std::vector<std::string>& names) const {
        std::vector<std::string> all{"--port", "0", "--tls-port", "0", "--threads", "2"};
        for (const std::string& name : names) {
            all.insert(all.end(), {"--tls-certificate", path(name + ".pem"), "--tls-key",
                                   path(name + ".key")});
        }
        return all;
    }
    std::string ask(const std::string& host, unsigned port, const std::string& more = "",
                    const std::string& query = "") const {
        const std::string at = host + ":" + std::to_string(port);
        return output_of("curl --silent --show-error --max-time 20 --cacert " +
                         path("authority.pem") + " --resolve " + at + ":127.0.0.1 " + more +
                         " 'https://" + at + "/plaintext" + query + "'");
    }

    const authority issuer;
    const fs::path directory =
        fs::temp_directory_path() / ("coppice-serve-tls-" + std::to_string(::getpid()));
};

TEST_F(serve_certificates, are_chosen_by_the_name_of_the_host) {
    issue("a", "a.example");
    issue("b", "b.example");
    coppice::test::served s(COPPICE_SERVE, flags({"a", "b"}));
    ASSERT_NE(s.port(), 0);
    const unsigned port = s.secure_port();
    ASSERT_NE(port, 0u);
    EXPECT_EQ(ask("a.example", port), "Hello, World! 0");
    EXPECT_EQ(ask("b.example", port), "Hello, World! 0");
    EXPECT_EQ(ask("a.example", port, "--tls-max 1.2"), "Hello, World! 0");
    EXPECT_TRUE(ask("c.example", port).ends_with(" 60"));  // curl does not trust it
    s.signal(SIGTERM);
    EXPECT_EQ(s.exit_status(), 0);
}

TEST_F(serve_certificates, are_read_again_at_sighup_and_no_request_fails) {
    issue("a", "old.example");
    coppice::test::served s(COPPICE_SERVE, flags({"a"}));
    ASSERT_NE(s.port(), 0);
    const unsigned port = s.secure_port();
    // One connection, over which curl asks many times while the certificate changes.
    std::string many;
    std::thread asker([&] {
        many =
            ask("old.example", port, "--rate 100/s --no-buffer -o " + path("answers"), "?[1-100]");
    });
    while (!fs::exists(path("answers")) || fs::file_size(path("answers")) == 0) {
        std::this_thread::yield();
    }
    issue("a", "new.example");
    s.signal(SIGHUP);
    EXPECT_EQ(s.err_line(), "coppice-serve: SIGHUP: opened again");
    EXPECT_EQ(ask("new.example", port), "Hello, World! 0");
    EXPECT_TRUE(ask("old.example", port).ends_with(" 60"));
    write("a.key", "no key");
    s.signal(SIGHUP);
    EXPECT_NE(s.err_line().find("a certificate cannot be opened again, the old one stays"),
              std::string::npos);
    EXPECT_EQ(ask("new.example", port), "Hello, World! 0");
    asker.join();
    EXPECT_EQ(many, " 0");
    s.signal(SIGTERM);
    EXPECT_EQ(s.exit_status(), 0);
}

// Asks over a new connection each time, until told to end. Counts what has failed.
task<> ask_until(io::context& loop, tls::client_context trust, std::string url,
                 const atomic<bool>& enough, atomic<int>& answers, int& failures) {
    http::client_options o;
    o.security = trust;
    while (!enough.load(relaxed)) {
        http::client client(loop, o);
        try {
            const http::client_response got = co_await client.get(url);
            if (got.body() != "Hello, World!") ++failures;
        } catch (const std::system_error& error) {
            ++failures;
            ADD_FAILURE() << error.what();
        }
        answers.fetch_add(1, relaxed);
    }
}

TEST_F(serve_certificates, are_read_again_while_clients_connect_and_no_handshake_fails) {
    issue("a", "localhost");
    coppice::test::served s(COPPICE_SERVE, flags({"a"}));
    ASSERT_NE(s.port(), 0);
    const std::string url = "https://localhost:" + std::to_string(s.secure_port()) + "/plaintext";
    const tls::client_context trust({.system_authorities = false, .authorities = issuer.pem()});
    atomic<bool> enough{false};
    atomic<int> answers{0};
    int failures[2] = {};
    std::vector<std::thread> askers;
    for (int& failed : failures) {
        askers.emplace_back([&] {
            io::context loop;
            const auto asking = [&]() -> coppice::test::detached {
                co_await ask_until(loop, trust, url, enough, answers, failed);
            };
            asking();
            loop.run();
        });
    }
    for (int i = 0; i != 20; ++i) {
        issue("a", "localhost");
        s.signal(SIGHUP);
        EXPECT_EQ(s.err_line(), "coppice-serve: SIGHUP: opened again");
        const int before = answers.load(relaxed);
        while (answers.load(relaxed) < before + 4) std::this_thread::yield();
    }
    enough.store(true, relaxed);
    for (std::thread& asker : askers) asker.join();
    EXPECT_EQ(failures[0] + failures[1], 0);
    s.signal(SIGTERM);
    EXPECT_EQ(s.exit_status(), 0);
}

TEST_F(serve_certificates, that_cannot_be_used_are_refused) {
    issue("a", "a.example");
    issue("b", "b.example");
    std::vector<std::string> without_key = flags({"a"});
    without_key.insert(without_key.end(), {"--tls-certificate", path("b.pem")});
    coppice::test::served one(COPPICE_SERVE, without_key);
    EXPECT_EQ(one.exit_status(), 2);
    EXPECT_NE(one.err().find("--tls-key"), std::string::npos);
    fs::copy_file(path("b.key"), path("a.key"), fs::copy_options::overwrite_existing);
    coppice::test::served two(COPPICE_SERVE, flags({"a"}));
    EXPECT_EQ(two.exit_status(), 2);
}

TEST_F(serve_certificates, that_are_out_of_date_fail_a_check_and_are_told_of_but_served) {
    const std::pair<wish, const char*> late[] = {
        {{.begins = -200, .ends = -100}, "has expired at"},
        {{.begins = 1000, .ends = 2000}, "is not valid before"}};
    for (const auto& [w, what] : late) {
        issue("a", w);
        std::vector<std::string> check = flags({"a"});
        check.push_back("--check");
        coppice::test::served checking(COPPICE_SERVE, check);
        const std::string said = checking.err();
        EXPECT_EQ(checking.exit_status(), 2);
        EXPECT_NE(said.find("--tls-certificate: " + path("a.pem") + " " + what), said.npos) << said;
        coppice::test::served s(COPPICE_SERVE, flags({"a"}));
        EXPECT_NE(s.port(), 0);
        EXPECT_NE(s.err_line().find(what), std::string::npos);
        const unsigned port = s.secure_port();
        EXPECT_EQ(ask("server.example", port, "-k"), "Hello, World! 0");
        // The next certificate is good.
        issue("a", "server.example");
        s.signal(SIGHUP);
        EXPECT_EQ(s.err_line(), "coppice-serve: SIGHUP: opened again");
        EXPECT_EQ(ask("server.example", port), "Hello, World! 0");
        issue("a", w);
        s.signal(SIGHUP);
        EXPECT_NE(s.err_line().find(what), std::string::npos);
        EXPECT_EQ(s.err_line(), "coppice-serve: SIGHUP: opened again");
    }
}

TEST_F(serve_certificates, need_a_port_of_their_own_unless_there_is_no_other) {
    issue("a", "a.example");
    const auto checked = [&](const std::vector<std::string>& more) {
        std::vector<std::string> all{"--check",     "--port",    "9443",
                                     "--tls-port",  "9443",      "--tls-certificate",
                                     path("a.pem"), "--tls-key", path("a.key")};
        all.insert(all.end(), more.begin(), more.end());
        coppice::test::served s(COPPICE_SERVE, all);
        const std::string said = s.err();
        return std::pair(s.exit_status(), said);
    };
    const auto [status, said] = checked({});
    EXPECT_EQ(status, 2);
    EXPECT_NE(said.find("--tls-port: 127.0.0.1:9443 is the port of --port"), said.npos) << said;
    EXPECT_EQ(checked({"--tls-only"}), std::pair(0, std::string()));
    EXPECT_EQ(checked({"--tls-only", "--admin-port", "9443"}).first, 2);
}

}  // namespace
