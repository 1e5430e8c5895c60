// expect: a finite stop source has tokens 0 to N - 1
#include <coppice/stop_token.hpp>

coppice::finite_inplace_stop_token<2, 2> token;
