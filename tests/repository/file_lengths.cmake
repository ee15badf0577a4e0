# Files of more than 400 lines, where the next idea is looked for: none but those below, and those only while they are. A class
# that length alone would cut is a header and a source: such a source may have 600.
#   cmake -D SOURCE=$PWD -P file_lengths.cmake
set(lines_max 400)
set(joined_max 600)
set(exceptions
  coordinator/dispatch/closure_scheduler.cc)

set(files)
foreach(room bench collective core coordinator data examples model nn ps python rpc service serving storage strategy tests tools worker)
  file(GLOB_RECURSE of_room RELATIVE ${SOURCE} ${SOURCE}/${room}/*.cc ${SOURCE}/${room}/*.h ${SOURCE}/${room}/*.capnp)
  list(APPEND files ${of_room})
endforeach()
list(LENGTH files count)
if(count LESS 100)
  message(FATAL_ERROR "only ${count} sources below ${SOURCE}")
endif()

foreach(path IN LISTS files)
  file(READ ${SOURCE}/${path} content)
  string(REGEX REPLACE "[^\n]" "" line_ends "${content}")
  string(LENGTH "${line_ends}" lines)
  list(FIND exceptions ${path} known)
  if(lines GREATER joined_max OR (lines GREATER lines_max AND known EQUAL -1))
    message(SEND_ERROR "${path} has ${lines} lines, more than ${lines_max}: look for its second idea")
  elseif(NOT lines GREATER lines_max AND NOT known EQUAL -1)
    message(SEND_ERROR "${path} has ${lines} lines by now: take it off the list of exceptions in tests/repository/file_lengths.cmake")
  endif()
  list(REMOVE_ITEM exceptions ${path})
endforeach()
foreach(path IN LISTS exceptions)
  message(SEND_ERROR "there is no ${path} any more: take it off the list of exceptions in tests/repository/file_lengths.cmake")
endforeach()
