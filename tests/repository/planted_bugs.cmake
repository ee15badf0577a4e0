# Every bug that tools/plant-bugs plants still fits the sources.
#   cmake -D SOURCE=$PWD -P planted_bugs.cmake
find_program(git git REQUIRED)
file(GLOB patches ${SOURCE}/tests/simulation/bugs/*.patch)
list(LENGTH patches count)
if(count LESS 10)
  message(FATAL_ERROR "only ${count} patches in tests/simulation/bugs")
endif()
foreach(patch IN LISTS patches)
  execute_process(COMMAND ${git} apply --check ${patch} WORKING_DIRECTORY ${SOURCE} RESULT_VARIABLE result ERROR_VARIABLE error)
  if(result)
    message(SEND_ERROR "${patch} does not fit any more: plant its bug where the code is now\n${error}")
  endif()
endforeach()
