#include "core/graph/op_def.h"

#include <unordered_map>

namespace cairn {
namespace {

using Table = std::unordered_map<std::string_view, const OpDef*>;

Table make_table() {
  Table table;
  for (auto part :
       {unary_ops(), binary_ops(), matmul_ops(), reduction_ops(), shape_ops(), piece_ops(),
        indexing_ops(), arrange_ops(), selection_ops(), scatter_ops(), loss_ops(), image_ops(),
        normalise_ops(), random_ops(), recommendation_ops(), effect_ops(), collective_ops()})
    for (const OpDef& op : part)
      CAIRN_CHECK(table.emplace(op.name, &op).second, "the operation ", op.name, " is there twice");
  return table;
}

// Made at its first use, since operations may be recorded before main.
const Table& table() {
  static const Table all = make_table();
  return all;
}

bool names_attribute(const OpDef& op, std::string_view name) {
  std::string_view rest = op.attributes;
  while (!rest.empty()) {
    std::size_t end = std::min(rest.find(' '), rest.size());
    if (rest.substr(0, end) == name) return true;
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return false;
}

// An attribute that the operation does not know is refused: it would otherwise change a graph's
// hash and nothing else.
void check_form(const OpDef& op, const OpInputs& in) {
  int n = static_cast<int>(in.types.size());
  if (n < op.inputs_min || n > op.inputs_max)
    throw InvalidArgumentError(str(n, " inputs; it takes ", op.inputs_min,
                                   op.inputs_max == op.inputs_min ? ""
                                   : op.inputs_max == OpDef::kAny ? " or more"
                                                                  : str(" to ", op.inputs_max)));
  for (const auto& [name, value] : in.attributes.entries())
    if (!names_attribute(op, name))
      throw InvalidArgumentError(str("it has no attribute \"", name, "\""));
}

}  // namespace

const OpDef* find_op(std::string_view name) {
  auto found = table().find(name);
  return found == table().end() ? nullptr : found->second;
}

std::vector<const OpDef*> all_ops() {
  std::vector<const OpDef*> all;
  for (const auto& [name, op] : table()) all.push_back(op);
  return all;
}

// At most eight types: a concatenation may have thousands of inputs.
std::string signature_text(const OpDef& op, std::span<const TensorType> types) {
  std::string text = std::string(op.name) + "(";
  for (std::size_t i = 0; i < types.size() && i < 8; ++i)
    text += (i ? ", " : "") + types[i].to_string();
  return text + (types.size() > 8 ? ", ...)" : ")");
}

// Every error of a type rule names the operation and the types that it was given.
std::vector<TensorType> infer_types(const OpDef& op, const OpInputs& in) {
  try {
    check_form(op, in);
    return op.infer(in);
  } catch (const InvalidArgumentError& error) {
    throw InvalidArgumentError(str(signature_text(op, in.types), ": ", error.what()));
  }
}

}  // namespace cairn
