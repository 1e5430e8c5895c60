// The certificates of coppice-serve, read from files, and read again at SIGHUP.
#pragma once

#include <coppice/io/secure_engine.hpp>

#include <memory>
#include <string>
#include <vector>

#include "options.hpp"

namespace serve {

// Threads: one at a time, also while the server uses security().
class certificates {
public:
    // Reads the files that the options name, if they name any. Errors: std::exception that says
    // which file is wrong, or that this program was built without TLS. Lifetime: the options'.
    explicit certificates(const options& o);
    ~certificates();

    // Returns what makes connections secure; nullptr if there are no certificates.
    std::shared_ptr<const coppice::io::server_security> security() const { return security_; }
    // Returns a sentence for each certificate that is not valid now, or that has one in its chain
    // that is not.
    const std::vector<std::string>& out_of_date() const { return out_of_date_; }
    // Reads the files again. New connections get what they hold, and open ones go on as they began.
    // Errors: as the constructor; the old certificates stay.
    void reload();

private:
    struct present;  // the context of new connections, and where it comes from
    std::shared_ptr<present> present_;
    std::shared_ptr<const coppice::io::server_security> security_;
    std::vector<std::string> out_of_date_;
};

}  // namespace serve
