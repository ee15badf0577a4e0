# Builds the API reference and looks up in it what headers say, in each of the ways that they say it.
#   cmake -D SOURCE=. -D OUT=build/dev/docs -P reference.cmake
execute_process(COMMAND ${SOURCE}/tools/docs ${OUT} RESULT_VARIABLE status ERROR_VARIABLE said OUTPUT_QUIET)
if(status EQUAL 77)
  message("skipped: ${said}")
  return()
elseif(NOT status EQUAL 0)
  message(FATAL_ERROR "${said}")
endif()

function(says page text)
  file(READ ${OUT}/html/${page} content)
  string(FIND "${content}" "${text}" at)
  if(at EQUAL -1)
    message(SEND_ERROR "${page} does not say \"${text}\"")
  endif()
endfunction()
says(index.html "It is a parameter server in C++20")                                             # README
says(classcairn_1_1ClusterCoordinator.html "Schedules closures on workers and gives their results back")  # the top of a file
says(classcairn_1_1ClusterCoordinator.html "Never waits for a worker, only while the queue")     # the block above a declaration
says(classcairn_1_1ClusterCoordinator.html "<dt>Thread</dt>")                                    # a label
says(classcairn_1_1Shape.html "that dimension replaced")                                         # the remark behind one
says(ops_8h.html "Linear algebra")                                                               # a section
