// A certificate for 127.0.0.1 that all servers of the benchmark show: ECDSA on P-256.
#pragma once

#include <string>

namespace bench_edge {

// Files with a new certificate and its key, in PEM. The destructor removes them.
class certificate_files {
public:
    // Exits the program if they cannot be written.
    certificate_files();
    certificate_files(const certificate_files&) = delete;
    ~certificate_files();

    std::string certificate() const { return directory_ + "/certificate.pem"; }
    std::string key() const { return directory_ + "/key.pem"; }

private:
    std::string directory_;
};

// Returns the files. Made by the first call, which must be in the process that starts the servers.
const certificate_files& shared_certificate();

}  // namespace bench_edge
