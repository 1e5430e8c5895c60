// nginx with one worker, answering the same text from its configuration, in its best setting.
#include "processes.hpp"
#include "rivals.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cstdio>
#include <cstdlib>
#include <string>

namespace bench_http {

void serve_nginx() {
    const std::string here = scratch_directory(::getpid());  // the parent removes it
    const char* const directory = here.c_str();
    if (::mkdir(directory, 0700) != 0) std::exit(1);
    const int port = free_port();
    const std::string file = here + "/nginx.conf";
    std::FILE* const conf = std::fopen(file.c_str(), "w");
    if (conf == nullptr) std::exit(1);
    std::fprintf(conf,
                 "daemon off; master_process off; pid %s/pid; error_log %s/log crit;\n"
                 "events { worker_connections 20000; multi_accept on; use epoll; }\n"
                 "http { access_log off; keepalive_requests 1000000000; keepalive_timeout 300s;\n"
                 "  client_body_temp_path %s/a; proxy_temp_path %s/b; fastcgi_temp_path %s/c;\n"
                 "  uwsgi_temp_path %s/d; scgi_temp_path %s/e; default_type text/plain;\n"
                 "  server { listen 127.0.0.1:%d backlog=4096;\n"
                 "    location = /plaintext { return 200 \"Hello, World!\"; } } }\n",
                 directory, directory, directory, directory, directory, directory, directory, port);
    std::fclose(conf);
    std::printf("listening on http://127.0.0.1:%d\n", port);
    std::fflush(stdout);
    for (const char* const nginx : {"/usr/sbin/nginx", "/usr/local/sbin/nginx"}) {
        ::execl(nginx, "nginx", "-p", directory, "-c", file.c_str(), nullptr);
    }
    std::exit(1);
}

}  // namespace bench_http
