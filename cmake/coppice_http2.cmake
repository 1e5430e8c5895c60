# The component http2: a library of its own, since it alone needs nghttp2. Users: coppice::http2.
file(GLOB coppice_http2_sources CONFIGURE_DEPENDS src/http2/*.cpp)
file(GLOB coppice_http2_headers CONFIGURE_DEPENDS include/coppice/http2/*.hpp)
# Imported under the name that the package's users find, too.
if(NOT TARGET coppice::nghttp2)
    add_library(coppice::nghttp2 UNKNOWN IMPORTED)
    set_target_properties(coppice::nghttp2 PROPERTIES
        IMPORTED_LOCATION ${COPPICE_NGHTTP2_LIBRARY}
        INTERFACE_INCLUDE_DIRECTORIES ${COPPICE_NGHTTP2_INCLUDE_DIR})
endif()
add_library(coppice_http2 ${coppice_http2_sources})
add_library(coppice::http2 ALIAS coppice_http2)
target_link_libraries(coppice_http2 PUBLIC coppice::coppice PRIVATE coppice::nghttp2)
# <coppice/coppice.hpp> includes <coppice/http2.hpp> then.
target_compile_definitions(coppice_http2 INTERFACE COPPICE_WITH_HTTP2)
target_sources(coppice_http2 PUBLIC
    FILE_SET HEADERS BASE_DIRS include FILES include/coppice/http2.hpp ${coppice_http2_headers})
set_target_properties(coppice_http2 PROPERTIES EXPORT_NAME http2 VERIFY_INTERFACE_HEADER_SETS ON
    INTERFACE_HEADER_SETS_TO_VERIFY HEADERS
    UNITY_BUILD ${COPPICE_UNITY} UNITY_BUILD_BATCH_SIZE 10)
coppice_flags(coppice_http2)
if(BUILD_SHARED_LIBS)
    target_link_options(coppice_http2 PRIVATE -Wl,--version-script=${coppice_map})
    set_target_properties(coppice_http2 PROPERTIES DEFINE_SYMBOL "" VERSION ${PROJECT_VERSION}
        SOVERSION ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR} LINK_DEPENDS ${coppice_map})
endif()
