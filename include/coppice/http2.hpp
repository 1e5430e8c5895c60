// HTTP/2 for servers and clients, by nghttp2. An optional component.
#pragma once

#include <coppice/http2/client.hpp>
#include <coppice/http2/server.hpp>
