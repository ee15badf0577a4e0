#include "tools/job/train/train_flags.h"

#include <charconv>
#include <optional>
#include <type_traits>

#include "core/base/error.h"

namespace cairn::tools {
namespace {

// The shortest text that is read as the same number.
template <typename Number>
std::string number_text(Number number) {
  char text[32];
  return {text, std::to_chars(text, text + sizeof text, number).ptr};
}

// Writes the flags that are set, as they are typed.
struct WriteTo {
  std::vector<std::string>& arguments;
  void operator()(const char* name, const bool& field, const char*) const {
    if (field) arguments.emplace_back(name);
  }
  void operator()(const char* name, const std::string& field, const char*) const {
    if (!field.empty()) arguments.push_back(str(name, "=", field));
  }
  void operator()(const char* name, const std::optional<std::string>& field, const char*) const {
    if (field) arguments.push_back(str(name, "=", *field));
  }
  template <typename Number>
  void operator()(const char* name, const std::optional<Number>& field, const char*) const {
    if (field) arguments.push_back(str(name, "=", number_text(*field)));
  }
};

}  // namespace

std::vector<std::string> coordinator_arguments(TrainRequest request, const std::string& job_file) {
  request.dir.clear();
  std::vector<std::string> arguments{job_file};
  for_each_job_flag(request, WriteTo{arguments});
  return arguments;
}

}  // namespace cairn::tools
