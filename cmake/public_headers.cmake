# Writes the public headers as a program outside includes them: each "core/graph/ops.h" of theirs becomes <cairn/core/graph/ops.h>.
#   cmake -D SOURCE=. -D OUT=build/public_headers -P public_headers.cmake
file(REMOVE_RECURSE ${OUT})
file(STRINGS ${SOURCE}/cmake/public_headers.txt lines)
foreach(line IN LISTS lines)
  string(REGEX REPLACE "[ \t]*#.*" "" header "${line}")
  if(NOT header)
    continue()
  endif()
  file(READ ${SOURCE}/${header} text)
  string(REGEX REPLACE "\n#include \"([^\"\n]+)\"" "\n#include <cairn/\\1>" text "${text}")
  file(WRITE ${OUT}/cairn/${header} "${text}")
endforeach()
