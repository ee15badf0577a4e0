# Every main() reports errors and ends with a status: it does its work in run_program() (core/base/program.h), is a function-try-block, or
# hands over to server_main(), which is one.
#   cmake -D SOURCE=$PWD -P mains.cmake
cmake_policy(SET CMP0057 NEW)
set(exceptions
  tests/install/consumer/main.cc  # stands for a user's program
  tests/pch_main.cc)              # does nothing

set(count 0)
foreach(room bench collective core coordinator data examples model nn ps rpc service serving storage strategy tests tools worker)
  file(GLOB_RECURSE files RELATIVE ${SOURCE} ${SOURCE}/${room}/*.cc)
  foreach(path IN LISTS files)
    file(READ ${SOURCE}/${path} content)
    if(path IN_LIST exceptions OR NOT content MATCHES "\nint main\\(")
      continue()
    endif()
    math(EXPR count "${count} + 1")
    if(NOT content MATCHES "\nint main\\([^{]*\\) try {" AND NOT content MATCHES "\nint main\\(.*run_program\\("
        AND NOT content MATCHES "\nint main\\(.*server_main\\(")
      message(SEND_ERROR "${path}: an exception that leaves main() ends it by std::terminate; use run_program() of core/base/program.h")
    endif()
  endforeach()
endforeach()
if(count LESS 20)
  message(FATAL_ERROR "only ${count} programs below ${SOURCE}")
endif()
