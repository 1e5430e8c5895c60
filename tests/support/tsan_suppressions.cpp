// Suppressions for code that the thread sanitizer cannot see into; part of every test program.

#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
// The last owner of an exception frees it after an atomic count in libstdc++'s uninstrumented code.
// Earlier reads by other threads therefore seem to race with that. Open MPI 4.1 orders its accesses
// to memory by atomics that are not instrumented, and takes two of its locks in both orders.
extern "C" const char* __tsan_default_suppressions();
extern "C" const char* __tsan_default_suppressions() {
    return "race:std::__exception_ptr::exception_ptr::_M_release\n"
           "race:mca_btl_vader\n"
           "race:mca_pml_ob1\n"
           "race:opal_convertor\n"
           "deadlock:mca_btl_vader\n";
}
#endif
#endif
