# `cmake --install`: the programs, the libraries that a program of one's own links, their public headers, and the package file
# that find_package(cairn) reads. Inside Cairn a header is "core/graph/ops.h"; to a program that uses Cairn, in this tree or outside
# of it, it is <cairn/core/graph/ops.h>, so that folders named core or data of the program's own are never in its way.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

# One library for whoever does not want to choose.
add_library(cairn_all INTERFACE)
add_library(cairn::cairn ALIAS cairn_all)
target_link_libraries(cairn_all INTERFACE cairn::core cairn::data cairn::nn cairn::model cairn::strategy cairn::service
  cairn::serving_follow cairn::tools_train)
set_target_properties(cairn_all PROPERTIES EXPORT_NAME cairn)
file(MAKE_DIRECTORY ${PROJECT_BINARY_DIR}/include/cairn)
foreach(name cairn.h ${cairn_rooms})  # for the examples, which include headers as programs outside do
  file(CREATE_LINK ${PROJECT_SOURCE_DIR}/${name} ${PROJECT_BINARY_DIR}/include/cairn/${name} SYMBOLIC)
endforeach()
target_include_directories(cairn_all INTERFACE
  $<BUILD_INTERFACE:${PROJECT_BINARY_DIR}/include> $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)

install(CODE "set(SOURCE \"${PROJECT_SOURCE_DIR}\")\nset(OUT \"${PROJECT_BINARY_DIR}/public_headers\")")
install(SCRIPT ${PROJECT_SOURCE_DIR}/cmake/public_headers.cmake)
install(DIRECTORY ${PROJECT_BINARY_DIR}/public_headers/cairn DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})

set(cairn_packages ${CMAKE_INSTALL_LIBDIR}/cmake/cairn)
foreach(room core data_feature data_dataset data_file data_format data_stage rpc_wire rpc_loop rpc_net rpc_server object_store storage collective_base collective_local collective_network coordinator_restore coordinator_cluster coordinator_progress coordinator_journal coordinator_dispatch coordinator_checkpoint coordinator_engine
    strategy_base strategy_in_sync strategy_servers strategy service_base service_dispatcher service_worker service_consumer nn_base nn_losses nn_layers nn_metrics nn_optimizers model_writers model_steps model_saved model serving_follow tools_launch tools_toml tools_spec tools_parts tools_model tools_run tools_train)
  set_target_properties(cairn_${room} PROPERTIES EXPORT_NAME ${room})
  target_include_directories(cairn_${room} INTERFACE $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
  install(TARGETS cairn_${room} EXPORT cairn ARCHIVE)
endforeach()
foreach(room data rpc nn collective service)  # all folders of a room
  set_target_properties(cairn_${room} PROPERTIES EXPORT_NAME ${room})
  install(TARGETS cairn_${room} EXPORT cairn)
endforeach()
foreach(part core_schema data_schema rpc_rows_schema rpc_schema collective_schema service_schema journal_schema sanitize)  # what the rooms are made of; nobody needs to name them
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
