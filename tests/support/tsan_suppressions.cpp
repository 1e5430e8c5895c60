// Suppressions for code that the thread sanitizer cannot see into; part of every test program.

#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
// The last owner of an exception frees it after an atomic count in libstdc++'s uninstrumented code.
// Earlier reads by other threads therefore seem to race with that. The suppressions for MPI are in
// tests/mpi, because a job chooses them.
extern "C" const char* __tsan_default_suppressions();
extern "C" const char* __tsan_default_suppressions() {
    return "race:std::__exception_ptr::exception_ptr::_M_release\n";
}
#endif
#endif
