// expect: no (matching )?member( function)?
#include <coppice/stop_token.hpp>

coppice::finite_inplace_stop_source<0> source;
const auto token = source.get_token<0>();
