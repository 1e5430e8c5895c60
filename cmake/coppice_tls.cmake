# The component tls: a library of its own, since it alone needs OpenSSL. Users name it coppice::tls.
file(GLOB coppice_tls_sources CONFIGURE_DEPENDS src/tls/*.cpp)
file(GLOB coppice_tls_headers CONFIGURE_DEPENDS include/coppice/tls/*.hpp)
file(GLOB coppice_tls_internal_headers CONFIGURE_DEPENDS include/coppice/tls/internal/*.hpp)
add_library(coppice_tls ${coppice_tls_sources})
add_library(coppice::tls ALIAS coppice_tls)
target_link_libraries(coppice_tls PUBLIC coppice::coppice PRIVATE OpenSSL::SSL)
# <coppice/coppice.hpp> includes <coppice/tls.hpp> then.
target_compile_definitions(coppice_tls INTERFACE COPPICE_WITH_TLS)
target_sources(coppice_tls PUBLIC
    FILE_SET HEADERS BASE_DIRS include FILES include/coppice/tls.hpp ${coppice_tls_headers}
    FILE_SET internal TYPE HEADERS BASE_DIRS include FILES ${coppice_tls_internal_headers})
set_target_properties(coppice_tls PROPERTIES EXPORT_NAME tls VERIFY_INTERFACE_HEADER_SETS ON
    INTERFACE_HEADER_SETS_TO_VERIFY HEADERS
    UNITY_BUILD ${COPPICE_UNITY} UNITY_BUILD_BATCH_SIZE 10)
coppice_flags(coppice_tls)
if(BUILD_SHARED_LIBS)
    target_link_options(coppice_tls PRIVATE -Wl,--version-script=${coppice_map})
    set_target_properties(coppice_tls PROPERTIES DEFINE_SYMBOL "" VERSION ${PROJECT_VERSION}
        SOVERSION ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR} LINK_DEPENDS ${coppice_map})
endif()
