# The Python package's way to link: one shared library, libcairn.so, with everything in it, which its module and its programs share.
# Six static copies of it would be three times as large.

# Every static library of the tree but those for tests.
function(cairn_static_libraries folder out)
  get_property(targets DIRECTORY ${folder} PROPERTY BUILDSYSTEM_TARGETS)
  set(found)
  foreach(target ${targets})
    get_target_property(type ${target} TYPE)
    if(type STREQUAL STATIC_LIBRARY AND NOT target MATCHES "^nanobind")
      list(APPEND found ${target})
    endif()
  endforeach()
  get_property(below DIRECTORY ${folder} PROPERTY SUBDIRECTORIES)
  foreach(each ${below})
    cairn_static_libraries(${each} of_folder)
    list(APPEND found ${of_folder})
  endforeach()
  set(${out} ${found} PARENT_SCOPE)
endfunction()

set(cairn_archives)
foreach(room ${cairn_rooms})
  cairn_static_libraries(${PROJECT_SOURCE_DIR}/${room} of_room)
  list(APPEND cairn_archives ${of_room})
endforeach()
list(REMOVE_DUPLICATES cairn_archives)
list(TRANSFORM cairn_archives REPLACE "(.+)" "$<TARGET_OBJECTS:\\1>" OUTPUT_VARIABLE objects)
set(one ${PROJECT_SOURCE_DIR}/python/one)
add_library(cairn_one SHARED ${one}/system_libraries.cc ${objects})
target_include_directories(cairn_one PRIVATE ${PROJECT_SOURCE_DIR})
# For what they need of other projects: of their own nothing is missing any more. system_libraries.cc stands in for libcurl and
# libcrypto, which --as-needed then leaves out. What exports.map keeps to itself, and nothing calls, is left out, too.
target_link_libraries(cairn_one PRIVATE ${cairn_archives} cairn_warnings ${CMAKE_DL_LIBS})
target_link_options(cairn_one PRIVATE -Wl,--as-needed -Wl,--gc-sections -Wl,--version-script=${one}/exports.map)
set_property(TARGET cairn_one APPEND PROPERTY LINK_DEPENDS ${one}/exports.map)
set_target_properties(cairn_one PROPERTIES OUTPUT_NAME cairn UNITY_BUILD OFF INSTALL_RPATH "$ORIGIN")
install(TARGETS cairn_one LIBRARY DESTINATION cairn COMPONENT wheel EXCLUDE_FROM_ALL)

# The programs again, of their own sources and the one library.
foreach(program cairn cairn-ps cairn-worker cairn-coordinator cairn-data)
  get_target_property(sources ${program} SOURCES)
  get_target_property(folder ${program} SOURCE_DIR)
  list(TRANSFORM sources PREPEND ${folder}/)
  add_executable(wheel-${program} EXCLUDE_FROM_ALL ${sources})
  target_include_directories(wheel-${program} PRIVATE ${PROJECT_SOURCE_DIR})
  target_link_libraries(wheel-${program} PRIVATE cairn_one CapnProto::capnp-rpc CLI11::CLI11 nlohmann_json::nlohmann_json Threads::Threads)
  target_compile_options(wheel-${program} PRIVATE -O0)
  # Not by their own names: Ninja would take `cairn` for either of two files, and build this one where the other is meant.
  set_target_properties(wheel-${program} PROPERTIES BUILD_WITH_INSTALL_RPATH ON INSTALL_RPATH "$ORIGIN/.."
    RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/wheel-bin)
  install(PROGRAMS $<TARGET_FILE:wheel-${program}> DESTINATION cairn/bin RENAME ${program} COMPONENT wheel EXCLUDE_FROM_ALL)
  list(APPEND cairn_wheel_programs wheel-${program})
endforeach()
set(in_all)
if(CAIRN_TESTS)  # python/tests/test_wheel.py packs them, and need not build them
  set(in_all ALL)
endif()
add_custom_target(wheel ${in_all} DEPENDS cairn_one _cairn cairn_stubs ${cairn_wheel_programs})  # then cmake --install TREE --component wheel
