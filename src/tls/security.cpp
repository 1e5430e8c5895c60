// What makes the connections of http's servers and clients secure: the seam io/secure_engine.hpp.
#include <coppice/io/secure_engine.hpp>
#include <coppice/tls/engine.hpp>

#include <memory>
#include <new>
#include <string>
#include <utility>

namespace coppice::tls {

namespace {

class session_behind_seam final : public io::secure_session {
public:
    explicit session_behind_seam(session&& s) noexcept : of(std::move(s)) {}
    const session of;
};

class engine_behind_seam final : public io::secure_engine {
public:
    explicit engine_behind_seam(engine&& e) noexcept : engine_(std::move(e)) {}
    void input(std::span<const std::byte> bytes) noexcept override { engine_.input(bytes); }
    std::size_t unread() const noexcept override { return engine_.unread(); }
    void end_input() noexcept override { engine_.end_input(); }
    void output(std::span<std::byte> room) noexcept override { engine_.output(room); }
    std::size_t written() const noexcept override { return engine_.written(); }
    progress handshake() noexcept override { return engine_.handshake(); }
    progress receive(std::span<std::byte> into) noexcept override { return engine_.receive(into); }
    progress send(std::span<const std::byte> bytes) noexcept override {
        return engine_.send(bytes);
    }
    progress end() noexcept override { return engine_.end(); }
    std::string_view protocol() const noexcept override { return engine_.protocol(); }
    io::agreed_security agreed() const override {
        return {.version = std::string(engine_.version()),
                .cipher = std::string(engine_.cipher()),
                .protocol = std::string(engine_.protocol()),
                .host = std::string(engine_.host()),
                .peer_subject = engine_.peer_subject(),
                .peer_certificate = engine_.peer_certificate(),
                .resumed = engine_.resumed()};
    }
    std::shared_ptr<const io::secure_session> latest_session() const noexcept override {
        session latest = engine_.latest_session();
        if (!latest) return nullptr;
        try {
            return std::make_shared<const session_behind_seam>(std::move(latest));
        } catch (const std::bad_alloc&) {  // then there is nothing to resume
            return nullptr;
        }
    }
    bool resume(const io::secure_session& earlier) noexcept override {
        return engine_.resume(static_cast<const session_behind_seam&>(earlier).of);
    }
    bool resumed() const noexcept override { return engine_.resumed(); }

private:
    engine engine_;
};

class one_context final : public io::server_security {
public:
    explicit one_context(const server_context& c) noexcept : context_(c) {}
    std::unique_ptr<io::secure_engine> accept() const override {
        return std::make_unique<engine_behind_seam>(engine(context_));
    }

private:
    const server_context context_;
};

class present_context final : public io::server_security {
public:
    explicit present_context(std::shared_ptr<const server_context_slot>&& s) noexcept
        : slot_(std::move(s)) {}
    std::unique_ptr<io::secure_engine> accept() const override {
        return std::make_unique<engine_behind_seam>(engine(slot_->get()));
    }

private:
    const std::shared_ptr<const server_context_slot> slot_;
};

class verified_connections final : public io::client_security {
public:
    explicit verified_connections(const client_context& c) noexcept : context_(c) {}
    std::unique_ptr<io::secure_engine> connect(std::string_view host) const override {
        return std::make_unique<engine_behind_seam>(engine(context_, host));
    }

private:
    const client_context context_;
};

}  // namespace

server_context::operator std::shared_ptr<const io::server_security>() const {
    return std::make_shared<const one_context>(*this);
}

client_context::operator std::shared_ptr<const io::client_security>() const {
    return std::make_shared<const verified_connections>(*this);
}

std::shared_ptr<const io::server_security> server_security_of(
    std::shared_ptr<const server_context_slot> slot) {
    return std::make_shared<const present_context>(std::move(slot));
}

}  // namespace coppice::tls
