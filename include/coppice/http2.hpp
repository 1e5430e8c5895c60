// HTTP/2 for servers, by nghttp2. An optional component.
#pragma once

#include <coppice/http2/server.hpp>
