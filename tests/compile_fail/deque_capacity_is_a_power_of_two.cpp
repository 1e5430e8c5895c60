// expect: the capacity must be a power of two
#include <coppice/pool/internal/deque.hpp>

coppice::internal::bounded_deque<int, 100> deque;
