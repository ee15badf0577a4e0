# Builds the site and looks up in it what headers say, in each of the ways that they say it, what stubs say, and where links lead.
#   cmake -D SOURCE=. -D OUT=build/dev/docs -D PACKAGE=build/dev/python -P reference.cmake
set(ENV{CAIRN_PYTHON_PACKAGE} ${PACKAGE})
execute_process(COMMAND ${SOURCE}/tools/docs ${OUT} RESULT_VARIABLE status ERROR_VARIABLE said OUTPUT_QUIET)
if(status EQUAL 77)
  message("skipped: ${said}")
  return()
elseif(NOT status EQUAL 0)
  message(FATAL_ERROR "${said}")
endif()

function(says page text)
  file(READ ${OUT}/${page} content)
  string(FIND "${content}" "${text}" at)
  if(at EQUAL -1)
    message(SEND_ERROR "${page} does not say \"${text}\"")
  endif()
endfunction()
says(html/index.html "It is a parameter server in C++20")                                             # README
says(html/classcairn_1_1ClusterCoordinator.html "Schedules closures on workers and gives their results back")  # the top of a file
says(html/classcairn_1_1ClusterCoordinator.html "Never waits for a worker, only while the queue")     # the block above a declaration
says(html/classcairn_1_1ClusterCoordinator.html "<dt>Thread</dt>")                                    # a label
says(html/classcairn_1_1Shape.html "that dimension replaced")                                         # the remark behind one
says(html/ops_8h.html "Linear algebra")                                                               # a section
if(EXISTS ${PACKAGE}/cairn/_cairn/__init__.pyi AND EXISTS ${SOURCE}/build/python/bin/mkdocs)
  says(site/index.html "Cairn trains models that are too large")
  says(site/index.html "href=\"python.html\"")                                # a page of docs/
  says(site/index.html "href=\"rooms/nn.html\"")                              # a folder, which is its README
  says(site/index.html "href=\"cpp/model_8h.html\"")                          # a public header, which is doxygen's page
  says(site/rooms/python.html "href=\"../python.html\"")
  says(site/python.html "href=\"notebooks/first-step.html\"")
  says(site/notebooks/first-step.html "Two parameter servers and two workers")
  says(site/python-api/classes.html "id=\"cairn.ClusterCoordinator.schedule\"")  # a class and its method
  says(site/python-api/operations.html "[m, k] times [k, n].")                 # a docstring
  says(site/python-api/nn.html "id=\"cairn.nn.Embedding\"")
  says(site/cpp/classcairn_1_1ClusterCoordinator.html "<dt>Thread</dt>")
endif()
