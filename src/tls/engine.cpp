// The engine of tls/engine.hpp: OpenSSL over a BIO that reads lent bytes and writes to lent room.
#include <coppice/tls/engine.hpp>

#include <coppice/base/internal/check.hpp>

#include "contexts.hpp"

#include <algorithm>
#include <cstring>
#include <new>
#include <stdexcept>
#include <utility>

namespace coppice::tls {

namespace internal {

struct session_state {
    owned_session secret;
    std::shared_ptr<client_state> context;
    std::string host;
    bool verified;
};

class engine_state {
public:
    explicit engine_state(std::shared_ptr<server_state> context);
    engine_state(std::shared_ptr<client_state> context, std::string_view host, bool verified);
    engine_state(const engine_state&) = delete;
    engine_state& operator=(const engine_state&) = delete;

    progress handshake() noexcept;
    progress receive(std::span<std::byte> into) noexcept;
    progress send(std::span<const std::byte> bytes) noexcept;
    progress end() noexcept;
    session latest() const noexcept;
    bool resume(const session& earlier) noexcept;
    void keep(SSL_SESSION* made) noexcept;

    SSL* ssl() const noexcept { return ssl_.get(); }

    std::span<const std::byte> input;
    bool input_ended = false;
    std::size_t wanted = 0;
    std::span<std::byte> room;
    std::size_t written = 0;
    bool ready = false;

private:
    void begin(SSL_CTX* context);
    void verify(const std::string& name, bool is_address);
    progress interpret(int returned) noexcept;
    progress fail(std::error_code error) noexcept;

    std::shared_ptr<server_state> server_;  // of a server
    std::shared_ptr<client_state> client_;  // of a client
    owned_ssl ssl_;
    std::error_code failure_;  // stays set
    bool has_ended_ = false;   // close_notify was written
    std::string host_;
    bool verified_ = false;
    std::shared_ptr<const session_state> offered_;
    std::shared_ptr<const session_state> latest_;
};

// ---- The BIO ----------------------------------------------------------------------------------

namespace {

constexpr std::size_t close_notify_room = 256;  // its record has 24 bytes or a few more

engine_state& engine_of(BIO* bio) noexcept {
    return *static_cast<engine_state*>(::BIO_get_data(bio));
}

int read_lent(BIO* bio, char* into, std::size_t size, std::size_t* read) noexcept {
    engine_state& e = engine_of(bio);
    BIO_clear_retry_flags(bio);
    *read = std::min(size, e.input.size());
    e.wanted = size - *read;
    if (*read == 0) {
        // At the end too: OpenSSL would fail in both directions, and the peer may still read.
        BIO_set_retry_read(bio);
        return 0;
    }
    std::memcpy(into, e.input.data(), *read);
    e.input = e.input.subspan(*read);
    return 1;
}

int write_lent(BIO* bio, const char* from, std::size_t size, std::size_t* written) noexcept {
    engine_state& e = engine_of(bio);
    BIO_clear_retry_flags(bio);
    *written = std::min(size, e.room.size() - e.written);
    if (*written == 0 && size != 0) {
        BIO_set_retry_write(bio);
        return 0;
    }
    if (size != 0) std::memcpy(e.room.data() + e.written, from, *written);
    e.written += *written;
    return 1;
}

long control_lent(BIO*, int command, long, void*) noexcept {
    return command == BIO_CTRL_FLUSH ? 1 : 0;
}

const BIO_METHOD* lent_method() noexcept {
    // Never freed: connections may live until the end of the process.
    static const BIO_METHOD* const method = []() noexcept -> const BIO_METHOD* {
        BIO_METHOD* const m = ::BIO_meth_new(::BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "lent");
        if (m == nullptr) return nullptr;
        ::BIO_meth_set_read_ex(m, &read_lent);
        ::BIO_meth_set_write_ex(m, &write_lent);
        ::BIO_meth_set_ctrl(m, &control_lent);
        return m;
    }();
    return method;
}

// Returns true for a DNS name that does not end like an IPv4 address.
bool is_name(std::string_view text) noexcept {
    if (text.empty() || text.size() > 253) return false;
    std::size_t label = 0;
    bool digits = true;
    for (const char c : text) {
        if (c == '.') {
            if (label == 0) return false;
            label = 0;
            digits = true;
            continue;
        }
        const bool digit = c >= '0' && c <= '9';
        if (!digit && !(c >= 'a' && c <= 'z') && c != '-' && c != '_') return false;
        digits = digits && digit;
        if (++label > 63) return false;
    }
    return label != 0 && !digits;
}

}  // namespace

// ---- Making -----------------------------------------------------------------------------------

void engine_state::begin(SSL_CTX* context) {
    ::ERR_clear_error();
    ssl_.reset(::SSL_new(context));
    check_made(ssl_ != nullptr, "tls: SSL_new");
    SSL_set_app_data(ssl(), this);
    if (lent_method() == nullptr) throw std::bad_alloc();
    BIO* const bio = ::BIO_new(lent_method());
    check_made(bio != nullptr, "tls: BIO_new");
    ::BIO_set_data(bio, this);
    ::BIO_set_init(bio, 1);
    ::SSL_set_bio(ssl(), bio, bio);
}

engine_state::engine_state(std::shared_ptr<server_state> context) : server_(std::move(context)) {
    begin(server_->context());
    ::SSL_set_accept_state(ssl());
}

engine_state::engine_state(std::shared_ptr<client_state> context, std::string_view host,
                           bool verified)
    : client_(std::move(context)), host_(plain_name(host)), verified_(verified) {
    begin(client_->context());
    ::SSL_set_connect_state(ssl());
    const auto is_address = [](const std::string& text) {
        const std::unique_ptr<ASN1_OCTET_STRING, freed_by<&ASN1_OCTET_STRING_free>> address(
            ::a2i_IPADDRESS(text.c_str()));
        ::ERR_clear_error();
        return address != nullptr && text.find('\0') == std::string::npos;
    };
    const bool by_name = is_name(host_);
    const bool by_address = !by_name && is_address(host_);
    if (!by_name && !by_address && (verified || !host_.empty()))
        throw std::invalid_argument("tls: neither the name of a host nor an address: \"" +
                                    std::string(host) + '"');
    if (by_name)
        check_made(SSL_set_tlsext_host_name(ssl(), host_.c_str()) == 1, "tls: the host's name");
    if (verified) {
        verify(host_, by_address);
    } else {
        ::SSL_set_verify(ssl(), SSL_VERIFY_NONE, nullptr);
    }
    if (client_->asks_for_ocsp()) SSL_set_tlsext_status_type(ssl(), TLSEXT_STATUSTYPE_ocsp);
}

void engine_state::verify(const std::string& name, bool is_address) {
    X509_VERIFY_PARAM* const rules = ::SSL_get0_param(ssl());
    ::X509_VERIFY_PARAM_set_hostflags(
        rules, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS | X509_CHECK_FLAG_NEVER_CHECK_SUBJECT);
    const int set = is_address ? ::X509_VERIFY_PARAM_set1_ip_asc(rules, name.c_str())
                               : ::X509_VERIFY_PARAM_set1_host(rules, name.c_str(), name.size());
    check_made(set == 1, "tls: the host to verify");
    ::SSL_set_verify(ssl(), SSL_VERIFY_PEER, nullptr);
}

// ---- Going on ---------------------------------------------------------------------------------

progress engine_state::fail(std::error_code error) noexcept {
    failure_ = error;
    return {step::failed, 0, error};
}

// Called directly after a function of OpenSSL that did not succeed.
progress engine_state::interpret(int returned) noexcept {
    switch (::SSL_get_error(ssl(), returned)) {
        case SSL_ERROR_WANT_READ:
            if (!input_ended) return {step::needs_input, 0, {}};
            // The failure does not stay: sending needs no input, and may go on.
            return ready ? progress{step::failed, 0, errc::truncated} : fail(errc::truncated);
        case SSL_ERROR_WANT_WRITE:
            return {step::needs_output, 0, {}};
        case SSL_ERROR_ZERO_RETURN:
            return ready ? progress{step::ended, 0, {}} : fail(errc::truncated);
        default:
            break;
    }
    const bool of_verification =
        ERR_GET_LIB(::ERR_peek_error()) == ERR_LIB_SSL &&
        ERR_GET_REASON(::ERR_peek_error()) == SSL_R_CERTIFICATE_VERIFY_FAILED;
    const long verification = ::SSL_get_verify_result(ssl());
    const std::error_code error = take_error(std::make_error_code(std::errc::io_error));
    return fail(of_verification && verification != X509_V_OK ? verification_error(verification)
                                                             : error);
}

progress engine_state::handshake() noexcept {
    if (failure_) return {step::failed, 0, failure_};
    if (ready) return {};
    ::ERR_clear_error();
    const int returned = ::SSL_do_handshake(ssl());
    if (returned != 1) return interpret(returned);
    ready = true;
    return {};
}

progress engine_state::receive(std::span<std::byte> into) noexcept {
    std::size_t received = 0;
    while (received != into.size()) {
        if (failure_) break;
        if (!ready) return {step::failed, 0, errc::handshake_required};
        ::ERR_clear_error();
        std::size_t some = 0;
        const int returned =
            ::SSL_read_ex(ssl(), into.data() + received, into.size() - received, &some);
        if (returned != 1) {
            const progress p = interpret(returned);
            if (received == 0 || p.what == step::needs_output) return {p.what, received, p.error};
            break;  // the next call reports an end or an error
        }
        received += some;
        // The rest of this record is there; the next record may be too.
        if (input.empty() && ::SSL_pending(ssl()) == 0) break;
    }
    if (received == 0 && failure_) return {step::failed, 0, failure_};
    return {step::done, received, {}};
}

progress engine_state::send(std::span<const std::byte> bytes) noexcept {
    if (failure_) return {step::failed, 0, failure_};
    if (!ready) return {step::failed, 0, errc::handshake_required};
    if (has_ended_) return {step::failed, 0, std::make_error_code(std::errc::broken_pipe)};
    if (bytes.empty()) return {};
    if (room.size() - written < engine::room_min) return {step::needs_output, 0, {}};
    ::ERR_clear_error();
    std::size_t some = 0;
    const int returned =
        ::SSL_write_ex(ssl(), bytes.data(), std::min(bytes.size(), engine::record_max), &some);
    if (returned != 1) return interpret(returned);
    return {step::done, some, {}};
}

progress engine_state::end() noexcept {
    if (failure_) return {step::failed, 0, failure_};
    if (!ready) return {step::failed, 0, errc::handshake_required};
    if (has_ended_) return {};
    if (room.size() - written < close_notify_room) return {step::needs_output, 0, {}};
    ::ERR_clear_error();
    int returned = 1;
    // The peer is in the middle of a key message, which must be read first.
    if (SSL_in_init(ssl()) != 0) returned = ::SSL_do_handshake(ssl());
    if (returned == 1) returned = ::SSL_shutdown(ssl());
    if (returned < 0) return interpret(returned);
    has_ended_ = true;
    return {};
}

// ---- Sessions ---------------------------------------------------------------------------------

void engine_state::keep(SSL_SESSION* made) noexcept {
    try {
        // A copy: OpenSSL spoils the session of a connection that ends without close_notify.
        owned_session copy(::SSL_SESSION_dup(made));
        if (copy == nullptr) return;
        latest_ = std::make_shared<const session_state>(
            session_state{std::move(copy), client_, host_, verified_});
    } catch (const std::bad_alloc&) {  // then there is nothing to resume
    }
}

int on_new_session(SSL* ssl, SSL_SESSION* session) noexcept {
    static_cast<engine_state*>(SSL_get_app_data(ssl))->keep(session);
    return 0;  // OpenSSL keeps its reference
}

session engine_state::latest() const noexcept {
    session s;
    s.state_ = latest_;
    // With TLS 1.2 a resumed connection may bring no new ticket: the old one stays good.
    if (s.state_ == nullptr && ready && ::SSL_session_reused(ssl()) == 1) s.state_ = offered_;
    return s;
}

namespace {

// Returns true if the certificate that the server has shown then is no longer valid.
bool has_expired(const SSL_SESSION* s) noexcept {
    const X509* const shown = ::SSL_SESSION_get0_peer(const_cast<SSL_SESSION*>(s));
    return shown != nullptr && ::X509_cmp_current_time(X509_get0_notAfter(shown)) < 0;
}

}  // namespace

bool engine_state::resume(const session& earlier) noexcept {
    const session_state* const e = earlier.state_.get();
    if (e == nullptr || client_ == nullptr || ready || failure_ || e->context != client_ ||
        e->host != host_ || e->verified != verified_ || SSL_in_before(ssl()) == 0 ||
        (verified_ && has_expired(e->secret.get())))
        return false;
    const owned_session copy(::SSL_SESSION_dup(e->secret.get()));
    const bool set = copy != nullptr && ::SSL_set_session(ssl(), copy.get()) == 1;
    ::ERR_clear_error();
    if (set) offered_ = earlier.state_;
    return set;
}

}  // namespace internal

// ---- The front --------------------------------------------------------------------------------

using namespace internal;

engine::engine(const server_context& context)
    : state_(std::make_unique<engine_state>(context.state())) {}
engine::engine(const client_context& context, std::string_view host)
    : state_(std::make_unique<engine_state>(context.state(), host, true)) {}
engine::engine(const client_context& context, std::string_view host, no_verification_t)
    : state_(std::make_unique<engine_state>(context.state(), host, false)) {}
engine::engine(engine&&) noexcept = default;
engine& engine::operator=(engine&&) noexcept = default;
engine::~engine() = default;

void engine::input(std::span<const std::byte> bytes) noexcept {
    COPPICE_CHECK(state_->input.empty(), "input for an engine that has not taken the previous one");
    state_->input = bytes;
}
std::size_t engine::unread() const noexcept {
    return state_->input.size();
}
void engine::end_input() noexcept {
    state_->input_ended = true;
}
std::size_t engine::wanted() const noexcept {
    return state_->wanted;
}
void engine::output(std::span<std::byte> room) noexcept {
    state_->room = room;
    state_->written = 0;
}
std::size_t engine::written() const noexcept {
    return state_->written;
}

progress engine::handshake() noexcept {
    return state_->handshake();
}
progress engine::receive(std::span<std::byte> into) noexcept {
    return state_->receive(into);
}
progress engine::send(std::span<const std::byte> bytes) noexcept {
    return state_->send(bytes);
}
progress engine::end() noexcept {
    return state_->end();
}

bool engine::is_ready() const noexcept {
    return state_->ready;
}
std::string_view engine::protocol() const noexcept {
    const unsigned char* chosen = nullptr;
    unsigned size = 0;
    ::SSL_get0_alpn_selected(state_->ssl(), &chosen, &size);
    return {reinterpret_cast<const char*>(chosen), size};
}
std::string_view engine::version() const noexcept {
    return state_->ready ? ::SSL_get_version(state_->ssl()) : "";
}
std::string_view engine::cipher() const noexcept {
    return state_->ready ? SSL_get_cipher_name(state_->ssl()) : "";
}
bool engine::resumed() const noexcept {
    return state_->ready && ::SSL_session_reused(state_->ssl()) == 1;
}
std::string_view engine::host() const noexcept {
    const char* const name = ::SSL_get_servername(state_->ssl(), TLSEXT_NAMETYPE_host_name);
    return name == nullptr ? "" : name;
}
std::string engine::peer_certificate() const {
    X509* const shown = ::SSL_get0_peer_certificate(state_->ssl());
    if (shown == nullptr) return {};
    unsigned char* der = nullptr;
    const int size = ::i2d_X509(shown, &der);
    if (size < 0) throw std::bad_alloc();
    std::string copy(reinterpret_cast<const char*>(der), static_cast<std::size_t>(size));
    ::OPENSSL_free(der);
    return copy;
}
std::string engine::peer_subject() const {
    X509* const shown = ::SSL_get0_peer_certificate(state_->ssl());
    if (shown == nullptr) return {};
    const owned_bio text(::BIO_new(::BIO_s_mem()));
    if (text == nullptr ||
        ::X509_NAME_print_ex(text.get(), ::X509_get_subject_name(shown), 0, XN_FLAG_RFC2253) < 0)
        throw std::bad_alloc();
    char* data = nullptr;
    const long size = BIO_get_mem_data(text.get(), &data);
    return {data, static_cast<std::size_t>(size)};
}
std::string_view engine::ocsp() const noexcept {
    const unsigned char* response = nullptr;
    const long size = SSL_get_tlsext_status_ocsp_resp(state_->ssl(), &response);
    if (size <= 0) return {};
    return {reinterpret_cast<const char*>(response), static_cast<std::size_t>(size)};
}

session engine::latest_session() const noexcept {
    return state_->latest();
}
bool engine::resume(const session& earlier) noexcept {
    return state_->resume(earlier);
}

}  // namespace coppice::tls
