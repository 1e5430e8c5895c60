// Umbrella of room http/: parsing, messages, routes, the server and the client.
#pragma once

#include <coppice/http/access_log.hpp>
#include <coppice/http/body.hpp>
#include <coppice/http/client.hpp>
#include <coppice/http/client_message.hpp>
#include <coppice/http/cookie.hpp>
#include <coppice/http/date.hpp>
#include <coppice/http/files.hpp>
#include <coppice/http/filters.hpp>
#include <coppice/http/form.hpp>
#include <coppice/http/handler.hpp>
#include <coppice/http/json.hpp>
#include <coppice/http/message.hpp>
#include <coppice/http/multipart.hpp>
#include <coppice/http/multiplexer.hpp>
#include <coppice/http/next.hpp>
#include <coppice/http/parameters.hpp>
#include <coppice/http/parse.hpp>
#include <coppice/http/pause.hpp>
#include <coppice/http/request.hpp>
#include <coppice/http/response.hpp>
#include <coppice/http/router.hpp>
#include <coppice/http/server.hpp>
#include <coppice/http/server_options.hpp>
#include <coppice/http/uri.hpp>
#include <coppice/http/url.hpp>
