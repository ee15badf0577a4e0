// How a program ends when something throws: by a line on standard error and a status, and not by
// std::terminate, whose line hides what is wrong.
#pragma once
#include <cstdio>
#include <exception>
#include <functional>
#include <string>

namespace cairn {

// Returns the status of `work`. After an exception, prints "NAME: what is wrong" and returns 1;
// `worded` puts the message into the words of the program's user.
//   For main(), around all that it does.
template <typename Work, typename Worded = std::identity>
int run_program(const char* name, Work work, Worded worded = {}) {
  try {
    return work();
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s: %s\n", name, std::string(worded(error.what())).c_str());
  } catch (...) {
    std::fprintf(stderr, "%s: an exception that says nothing\n", name);
  }
  return 1;
}

}  // namespace cairn
