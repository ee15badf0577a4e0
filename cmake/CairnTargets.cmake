# cairn::warnings carries our own code's flags; cairn_room() and cairn_test() keep a room's list of files to one line each.
include(GoogleTest OPTIONAL)
add_library(cairn_warnings INTERFACE)
add_library(cairn::warnings ALIAS cairn_warnings)
# GCC 12 takes KJ's promises and its own strings for out of bounds, or for not initialised, where it has inlined them; and with
# several files compiled as one it takes the unnamed namespaces of each for a header's.
target_compile_options(cairn_warnings INTERFACE -Wall -Wextra -Wno-missing-field-initializers
  $<$<CXX_COMPILER_ID:GNU>:-Wno-array-bounds -Wno-maybe-uninitialized -Wno-subobject-linkage>)
add_library(cairn_sanitize INTERFACE)
if(CAIRN_SANITIZE)
  target_compile_options(cairn_sanitize INTERFACE -fsanitize=${CAIRN_SANITIZE} -fno-omit-frame-pointer)
  target_link_options(cairn_sanitize INTERFACE -fsanitize=${CAIRN_SANITIZE})
  target_compile_definitions(cairn_sanitize INTERFACE CAIRN_SANITIZED)
endif()
if(CAIRN_FUZZ)
  # The libraries count for the fuzzer which code an input reaches. Undefined behaviour ends the run as a crash; vptr and function are
  # off because the system's libraries were built without type information. Test code, half of all there is to compile, gets
  # AddressSanitizer alone: no input of the fuzzer is judged by what it reaches there, and with all of it it takes half as long again.
  target_compile_options(cairn_sanitize INTERFACE
    $<IF:$<BOOL:$<TARGET_PROPERTY:CAIRN_TEST_CODE>>,-fno-sanitize=undefined,-fsanitize=fuzzer-no-link>
    -fno-sanitize-recover=undefined -fno-sanitize=vptr,function "SHELL:-Xclang -fno-pch-timestamp")
endif()
# A hundred programs are linked, so the linker's speed matters.
find_program(CAIRN_LLD ld.lld)
if(CAIRN_LLD)
  add_link_options(-fuse-ld=lld)
endif()

# What nearly every file of ours includes somewhere below, parsed once. A file built with options of its own skips it.
function(cairn_pch)
  file(WRITE ${PROJECT_BINARY_DIR}/pch.cc "")
  add_library(cairn_pch OBJECT ${PROJECT_BINARY_DIR}/pch.cc)
  target_link_libraries(cairn_pch PRIVATE CapnProto::capnp-rpc CapnProto::capnp cairn_sanitize cairn_warnings)
  target_precompile_headers(cairn_pch PRIVATE <capnp/capability.h> <kj/async.h> <algorithm> <atomic> <chrono> <cstdint> <deque> <functional>
    <map> <memory> <mutex> <nlohmann/json.hpp> <optional> <span> <sstream> <string> <thread> <unordered_map> <variant> <vector>)
endfunction()

# cairn_schema(rpc_schema cairn.capnp LIBRARIES lib...): a library of what capnp makes of a schema of this folder. Its header is found
# as "rpc/cairn.capnp.h"; schemas of other folders import it as "/rpc/cairn.capnp".
function(cairn_schema name file)
  cmake_parse_arguments(SCHEMA "" "" "LIBRARIES" ${ARGN})
  set(CAPNPC_SRC_PREFIX ${PROJECT_SOURCE_DIR})
  set(CAPNPC_OUTPUT_DIR ${PROJECT_BINARY_DIR}/schema)
  set(CAPNPC_IMPORT_DIRS ${PROJECT_SOURCE_DIR})
  cmake_path(RELATIVE_PATH CMAKE_CURRENT_SOURCE_DIR BASE_DIRECTORY ${PROJECT_SOURCE_DIR} OUTPUT_VARIABLE folder)
  cmake_path(GET file PARENT_PATH below)
  file(MAKE_DIRECTORY ${CAPNPC_OUTPUT_DIR}/${folder}/${below})
  capnp_generate_cpp(sources headers ${CMAKE_CURRENT_SOURCE_DIR}/${file})
  add_library(cairn_${name} STATIC ${sources} ${headers})
  target_include_directories(cairn_${name} PUBLIC $<BUILD_INTERFACE:${CAPNPC_OUTPUT_DIR}>)
  target_link_libraries(cairn_${name} PUBLIC ${SCHEMA_LIBRARIES} CapnProto::capnp cairn_sanitize)
endfunction()

# cairn_room(core SOURCES a.cc b.cc PUBLIC lib... PRIVATE lib...)
function(cairn_room name)
  cmake_parse_arguments(ROOM "" "" "SOURCES;PUBLIC;PRIVATE" ${ARGN})
  add_library(cairn_${name} STATIC ${ROOM_SOURCES})
  add_library(cairn::${name} ALIAS cairn_${name})
  target_include_directories(cairn_${name} PUBLIC $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}>)
  target_compile_features(cairn_${name} PUBLIC cxx_std_20)
  target_precompile_headers(cairn_${name} REUSE_FROM cairn_pch)
  target_link_libraries(cairn_${name} PUBLIC cairn_sanitize ${ROOM_PUBLIC} PRIVATE ${ROOM_PRIVATE} $<BUILD_INTERFACE:cairn_warnings>)
endfunction()

# A program that only tests run: compiled far more often than it is run, so without optimisation and over the tests' precompiled header.
function(cairn_test_program name)
  cmake_parse_arguments(PROGRAM "" "" "SOURCES;LIBRARIES" ${ARGN})
  add_executable(${name} ${PROGRAM_SOURCES})
  set_target_properties(${name} PROPERTIES UNITY_BUILD_BATCH_SIZE 12 CAIRN_TEST_CODE ON)
  target_precompile_headers(${name} REUSE_FROM cairn_test_pch)
  # With the flags of the test library whether or not it is linked: a precompiled header is for one set of them.
  target_compile_options(${name} PRIVATE -O0 $<TARGET_PROPERTY:GTest::gtest,INTERFACE_COMPILE_OPTIONS>)
  target_compile_definitions(${name} PRIVATE $<TARGET_PROPERTY:GTest::gtest,INTERFACE_COMPILE_DEFINITIONS>)
  target_link_libraries(${name} PRIVATE ${PROGRAM_LIBRARIES} cairn_warnings)
endfunction()

# cairn_test(core_tests SOURCES a_test.cc LIBRARIES cairn::core LABELS long COST 30)
# COST: about how many seconds its longest test takes, where that is many. ctest begins with these, so that none is left for the end.
function(cairn_test name)
  cmake_parse_arguments(TEST "" "COST" "SOURCES;LIBRARIES;LABELS" ${ARGN})
  cairn_test_program(${name} SOURCES ${TEST_SOURCES} LIBRARIES ${TEST_LIBRARIES} cairn_test_main GTest::gmock GTest::gtest)
  # Whatever a machine has: what a GPU computes has other last bits. tools/test --gpu runs what is to use one.
  set(properties TIMEOUT 300 ENVIRONMENT CAIRN_CUDA_LIBRARY=none)
  if(TEST_LABELS)
    list(APPEND properties LABELS "${TEST_LABELS}")
  endif()
  if(TEST_COST)
    list(APPEND properties COST ${TEST_COST})
  endif()
  gtest_discover_tests(${name} NO_PRETTY_VALUES DISCOVERY_TIMEOUT 60 WORKING_DIRECTORY ${PROJECT_SOURCE_DIR} PROPERTIES ${properties})
endfunction()
