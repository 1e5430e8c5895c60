// expect: deleted
#include <coppice/token.hpp>

void wrong(coppice::completion<int> done) {
    done(coppice::no_error, 1);
}
