# Builds the checkout that contains this port:
#   vcpkg install coppice --overlay-ports=packaging/vcpkg --editable
# vcpkg identifies a build by the port's files, which do not include the library's. Without
# --editable it may therefore return an older build of the checkout from its binary cache.
get_filename_component(SOURCE_PATH "${CURRENT_PORT_DIR}/../../.." ABSOLUTE)
if(NOT EXISTS "${SOURCE_PATH}/include/coppice/version.hpp")
    message(FATAL_ERROR "This port builds the checkout of coppice that contains it, but "
        "${SOURCE_PATH} is not a checkout: pass the port's folder in one to --overlay-ports")
endif()
vcpkg_check_linkage(ONLY_STATIC_LIBRARY)
vcpkg_cmake_configure(
    SOURCE_PATH "${SOURCE_PATH}"
    OPTIONS
        -DCOPPICE_APPS=OFF
        -DCOPPICE_TESTS=OFF
        -DCOPPICE_EXAMPLES=OFF
        -DCOPPICE_HTTP=ON
        -DCOPPICE_TLS=OFF
        -DCOPPICE_MPI=OFF
        -DCOPPICE_HTTP2=OFF
        -DCOPPICE_WARNINGS=OFF)
vcpkg_cmake_install()
vcpkg_cmake_config_fixup(CONFIG_PATH lib/cmake/coppice)
vcpkg_fixup_pkgconfig()
# vcpkg wants the license at its own place, and only there.
file(REMOVE_RECURSE "${CURRENT_PACKAGES_DIR}/debug/include" "${CURRENT_PACKAGES_DIR}/debug/share"
    "${CURRENT_PACKAGES_DIR}/share/doc")
vcpkg_install_copyright(FILE_LIST "${SOURCE_PATH}/LICENSE")
file(INSTALL "${CURRENT_PORT_DIR}/usage" DESTINATION "${CURRENT_PACKAGES_DIR}/share/${PORT}")
