// Boost.Beast's request_parser, as its examples use it: a new one for each request.
#include "workload.hpp"

#include <boost/asio/buffer.hpp>
#include <boost/beast/http/empty_body.hpp>
#include <boost/beast/http/parser.hpp>

namespace bench_parse {

namespace {

using parser = boost::beast::http::request_parser<boost::beast::http::empty_body>;

std::string_view view(boost::beast::string_view text) {
    return {text.data(), text.size()};
}

std::uint64_t read(std::string_view bytes) {
    parser p;
    p.eager(true);
    boost::beast::error_code error;
    p.put(boost::asio::buffer(bytes.data(), bytes.size()), error);
    if (error || !p.is_header_done()) return 0;
    digest d;
    d << view(p.get().method_string()) << view(p.get().target());
    for (const auto& field : p.get()) d << view(field.name_string()) << view(field.value());
    return d.value();
}

std::size_t run(std::string_view bytes, std::size_t times) {
    std::size_t sum = 0;
    for (; times != 0; --times) {
        const std::string_view again = reread(bytes);
        parser p;
        boost::beast::error_code error;
        sum += p.put(boost::asio::buffer(again.data(), again.size()), error);
        sum += p.get().target().size();
    }
    return sum;
}

}  // namespace

const rival beast = {"beast", read, run};

}  // namespace bench_parse
