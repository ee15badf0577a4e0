// How a recorded case of an operation is written with ours.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "core/graph/function.h"
#include "tests/core/vectors.h"

namespace cairn::testing {

// A case's inputs by name, as arrays, and its attributes.
class CaseInputs {
 public:
  CaseInputs(const Json& in, const std::vector<Array>& arrays);
  const Array& operator[](const std::string& name) const { return by_name_.at(name); }
  bool has(const std::string& name) const { return by_name_.contains(name); }
  const std::map<std::string, Array>& all() const { return by_name_; }
  const Json attrs;

 private:
  std::map<std::string, Array> by_name_;
};

// "kind", or "kind op" where the kind is a family of operations.
std::string case_key(const Json& test);
// The case's outputs by name. NotFound, naming the key: nothing here knows it.
Outputs record_case(const std::string& key, const CaseInputs& in);

}  // namespace cairn::testing
