// accept_request: one accept of an acceptor.
#pragma once

#include <coppice/io/context.hpp>
#include <coppice/io/internal/request.hpp>
#include <coppice/io/open_file.hpp>

#include <utility>

namespace coppice::io::internal {

// Accepts a connection. The value is its socket. A failure leaves the acceptor open. After EMFILE
// or ENFILE (too many open files), wait before the next accept.
template <class Socket>
class accept_request : public descriptor_request<> {
public:
    using value_type = Socket;
    static constexpr const char* name = "accept";
    struct arguments {
        explicit arguments(const descriptor_reference& f) noexcept : file(f) {}
        descriptor_reference file;
    };
    explicit accept_request(const arguments& a) noexcept
        : descriptor_request<>(a.file, opcode::accept) {}
    Socket take() noexcept {
        return Socket(open_socket(owner(), std::exchange(accepted_, nullptr)));
    }

protected:
    ~accept_request() {
        if (accepted_ != nullptr) owner().close(*accepted_);
    }

private:
    int judge(int returned) noexcept final {
        if (returned < 0) return returned;
        const coppice::internal::result<descriptor*> adopted = owner().adopt(returned);
        if (!adopted) {
            owner().system().close(returned);
            return -adopted.error().value();
        }
        accepted_ = adopted.value();
        return 0;
    }

    descriptor* accepted_ = nullptr;  // until take()
};

}  // namespace coppice::io::internal
