// Umbrella of room http/: parsing, messages, routes and the server.
#pragma once

#include <coppice/http/handler.hpp>
#include <coppice/http/message.hpp>
#include <coppice/http/parse.hpp>
#include <coppice/http/router.hpp>
#include <coppice/http/server.hpp>
