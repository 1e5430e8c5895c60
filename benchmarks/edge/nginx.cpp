// nginx with one worker, which answers from its configuration: over TLS, and with HTTP/2.
#include "certificate.hpp"
#include "rivals.hpp"

#include "../http/processes.hpp"

#include <sys/stat.h>
#include <unistd.h>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

namespace bench_edge {

namespace {

// Returns the path of an nginx, or "".
std::string find_nginx() {
    std::FILE* const found = ::popen("'" BENCH_FIND_NGINX "' 2>/dev/null", "r");
    if (found == nullptr) return {};
    std::array<char, 1024> line{};
    const bool there = std::fgets(line.data(), static_cast<int>(line.size()), found) != nullptr;
    ::pclose(found);
    line[std::strcspn(line.data(), "\n")] = '\0';
    return there ? line.data() : "";
}

// nginx does not answer 16 KiB from its configuration: a parameter has at most 4 KiB. A variable
// that repeats one has no such limit.
std::string page_of_parts() {
    const std::string part(page_bytes / 16, page_byte);
    std::string all;
    for (int i = 0; i != 16; ++i) all += "$part";
    return "set $part \"" + part + "\"; return 200 \"" + all + "\";";
}

// Replaces the process. `listen` and `more` are what differs between the servers.
void serve_with_nginx(const char* listen, const std::string& more) {
    const std::string nginx = find_nginx();
    if (nginx.empty()) std::_Exit(1);
    const std::string here = bench_http::scratch_directory(::getpid());  // the parent removes it
    if (::mkdir(here.c_str(), 0700) != 0) std::_Exit(1);
    const int port = bench_http::free_port();
    const std::string file = here + "/nginx.conf";
    std::FILE* const conf = std::fopen(file.c_str(), "w");
    if (conf == nullptr) std::_Exit(1);
    std::fprintf(conf,
                 "daemon off; master_process off; pid %s/pid; error_log %s/log crit;\n"
                 "events { worker_connections 20000; multi_accept on; use epoll; }\n"
                 "http { access_log off; keepalive_requests 1000000000; keepalive_timeout 300s;\n",
                 here.c_str(), here.c_str());
    for (const char* const kind : {"client_body", "proxy", "fastcgi", "uwsgi", "scgi"}) {
        std::fprintf(conf, "  %s_temp_path %s/%s;\n", kind, here.c_str(), kind);
    }
    std::fprintf(conf,
                 "  default_type text/plain; server_tokens off; tcp_nodelay on;\n"
                 "  server { listen 127.0.0.1:%d backlog=4096 %s; %s\n"
                 "    location = /plaintext { return 200 \"%s\"; }\n"
                 "    location = /page { %s } } }\n",
                 port, listen, more.c_str(), plaintext, page_of_parts().c_str());
    std::fclose(conf);
    std::printf("listening on http://127.0.0.1:%d\n", port);
    std::fflush(stdout);
    ::execl(nginx.c_str(), "nginx", "-p", here.c_str(), "-c", file.c_str(), "-e",
            (here + "/log").c_str(), nullptr);
    std::_Exit(1);
}

}  // namespace

void serve_nginx_tls() {
    const certificate_files& files = shared_certificate();
    // The versions, ciphers, and tickets that coppice::tls has.
    serve_with_nginx("ssl", "ssl_certificate " + files.certificate() + "; ssl_certificate_key " +
                                files.key() +
                                "; ssl_protocols TLSv1.2 TLSv1.3; ssl_session_tickets on;"
                                " ssl_ciphers ECDHE+AESGCM:ECDHE+CHACHA20;"
                                " ssl_prefer_server_ciphers on;");
}

void serve_nginx_h2() {
    serve_with_nginx("http2", "");
}

}  // namespace bench_edge
