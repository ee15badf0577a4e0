# No precompiled header holds a header of ours. g++ knows by its bytes a header that the precompiled one has, and ccache hands out a
# precompiled header that differs in comments alone: together they define everything twice after an edit of comments.
#   cmake -D SOURCE=$PWD -P precompiled_headers.cmake
set(looked_at 0)
foreach(folder bench cmake collective core coordinator data examples model nn ps python rpc service serving storage strategy testing tests
    tools worker)
  file(GLOB_RECURSE files ${SOURCE}/${folder}/CMakeLists.txt ${SOURCE}/${folder}/*.cmake)
  foreach(file IN LISTS files)
    file(READ ${file} text)
    string(REGEX MATCHALL "target_precompile_headers\\([^)]*\\)" calls "${text}")
    foreach(call IN LISTS calls)
      math(EXPR looked_at "${looked_at} + 1")
      if(call MATCHES "\"")
        message(SEND_ERROR "${file} precompiles a header of ours; precompile those of the system and of libraries alone: ${call}")
      endif()
    endforeach()
  endforeach()
endforeach()
if(looked_at LESS 5)
  message(FATAL_ERROR "only ${looked_at} calls of target_precompile_headers were found")
endif()
