// expect: no matching (function for call to|constructor for initialization)
#include <coppice/stop_token.hpp>

void f() noexcept;
coppice::finite_inplace_stop_source<2> source;
coppice::finite_inplace_stop_callback<2, 0, void (*)()> callback(source.get_token<1>(), f);
