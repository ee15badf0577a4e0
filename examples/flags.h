// The flags of the examples: "--name=value" for names that the program knows, each with a default.
// Everything else on the command line is a plain argument, in its order.
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <cairn/coordinator/cluster/consistency.h>
#include <cairn/core/base/error.h>

namespace cairn {

class Flags {
 public:
  //   Errors  InvalidArgument: a flag of another name, which lists those that there are.
  Flags(int argc, char** argv, std::map<std::string, std::string> known)
      : known_(std::move(known)) {
    for (int i = 1; i < argc; ++i) add(argv[i]);
  }
  const std::string& operator[](const std::string& name) const { return known_.at(name); }
  //   Errors  InvalidArgument: the value is no whole number.
  std::int64_t number(const std::string& name) const {
    try {
      return std::stoll(known_.at(name));
    } catch (const std::exception&) {
      throw InvalidArgumentError("--" + name + "= takes a whole number, not " + known_.at(name));
    }
  }
  std::size_t plain() const { return plain_.size(); }
  std::string plain(std::size_t place, const std::string& otherwise) const {
    return place < plain_.size() ? plain_[place] : otherwise;
  }

 private:
  void add(const std::string& argument) {
    if (!argument.starts_with("--")) return plain_.push_back(argument);
    const auto equals = argument.find('=');
    const std::string name = argument.substr(2, equals == std::string::npos ? equals : equals - 2);
    if (equals == std::string::npos || !known_.contains(name)) {
      std::string all;
      for (const auto& [each, value] : known_) all += " --" + each + "=";
      throw InvalidArgumentError("the flags are" + all + ", not " + argument);
    }
    known_[name] = argument.substr(equals + 1);
  }

  std::map<std::string, std::string> known_;
  std::vector<std::string> plain_;
};

// asynchronous or synchronous.
//   Errors  InvalidArgument: another word.
inline Consistency consistency_of(const std::string& word) {
  if (word == "synchronous") return Consistency::synchronous();
  if (word == "asynchronous") return Consistency::asynchronous();
  throw InvalidArgumentError("--consistency= is asynchronous or synchronous, not " + word);
}

}  // namespace cairn
