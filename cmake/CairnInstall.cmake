# `cmake --install`: the programs, the libraries that a program of one's own links, their public headers, and the package file
# that find_package(cairn) reads. Headers keep their way from the root, below include/cairn, so that "core/graph/ops.h" is
# "core/graph/ops.h" here and there.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

file(STRINGS ${PROJECT_SOURCE_DIR}/cmake/public_headers.txt lines)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/cmake/public_headers.txt)
foreach(line ${lines})
  string(REGEX REPLACE "[ \t]*#.*" "" header "${line}")
  # A folder that is a library of its own has its headers; others are their room's.
  string(REGEX REPLACE "^([a-z]+)/([a-z_]+)/.*" "\\1_\\2" library "${header}")
  if(header MATCHES "^([a-z]+)/" AND NOT TARGET cairn_${library})
    set(library ${CMAKE_MATCH_1})
  endif()
  if(header)
    list(APPEND cairn_public_headers_${library} ${PROJECT_SOURCE_DIR}/${header})
  endif()
endforeach()

# One library for whoever does not want to choose.
add_library(cairn_all INTERFACE)
add_library(cairn::cairn ALIAS cairn_all)
target_link_libraries(cairn_all INTERFACE cairn::core cairn::data cairn::nn cairn::model cairn::strategy cairn::service)
set_target_properties(cairn_all PROPERTIES EXPORT_NAME cairn)

set(cairn_packages ${CMAKE_INSTALL_LIBDIR}/cmake/cairn)
foreach(room core data rpc_loop rpc_net rpc_server storage collective coordinator_cluster coordinator_dispatch coordinator_checkpoint coordinator_engine
    strategy_base strategy_in_sync strategy_servers strategy service nn_base nn_losses nn_layers nn_metrics nn_optimizers model)
  target_sources(cairn_${room} PUBLIC FILE_SET HEADERS BASE_DIRS ${PROJECT_SOURCE_DIR} FILES ${cairn_public_headers_${room}})
  set_target_properties(cairn_${room} PROPERTIES EXPORT_NAME ${room})
  install(TARGETS cairn_${room} EXPORT cairn ARCHIVE FILE_SET HEADERS DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/cairn)
endforeach()
set_target_properties(cairn_rpc PROPERTIES EXPORT_NAME rpc)
install(TARGETS cairn_rpc EXPORT cairn)
target_sources(cairn_nn INTERFACE FILE_SET HEADERS BASE_DIRS ${PROJECT_SOURCE_DIR} FILES ${cairn_public_headers_nn})
set_target_properties(cairn_nn PROPERTIES EXPORT_NAME nn)
install(TARGETS cairn_nn EXPORT cairn FILE_SET HEADERS DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/cairn)
foreach(part core_schema data_schema rpc_schema collective_schema service_schema sanitize)  # what the rooms are made of; nobody needs to name them
  set_target_properties(cairn_${part} PROPERTIES EXPORT_NAME ${part})
  install(TARGETS cairn_${part} EXPORT cairn ARCHIVE)
endforeach()
install(TARGETS cairn_all EXPORT cairn)
install(TARGETS cairn cairn-ps cairn-worker cairn-coordinator cairn-data RUNTIME)
if(CAIRN_BUILDS_CUDA)
  install(TARGETS cairn_cuda LIBRARY DESTINATION lib)  # where programs look for it
endif()

install(EXPORT cairn NAMESPACE cairn:: FILE cairn-targets.cmake DESTINATION ${cairn_packages})
configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/cairn-config.cmake.in ${PROJECT_BINARY_DIR}/cairn-config.cmake
  INSTALL_DESTINATION ${cairn_packages} NO_SET_AND_CHECK_MACRO)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/cairn-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/cairn-config.cmake ${PROJECT_BINARY_DIR}/cairn-config-version.cmake
  ${PROJECT_SOURCE_DIR}/cmake/FindOneDnn.cmake ${PROJECT_SOURCE_DIR}/cmake/FindZstd.cmake DESTINATION ${cairn_packages})
install(FILES ${PROJECT_SOURCE_DIR}/LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR})
