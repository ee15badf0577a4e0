// The graph is made in memory, where everything that can be wrong is found. Then large variables
// are written, as they are read, and last the model that names them.
#include "tools/export/export_onnx.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <optional>
#include <set>

#include "core/base/error.h"
#include "core/base/json.h"
#include "core/disk/disk.h"
#include "core/disk/output_file.h"
#include "core/graph/op_def.h"
#include "model/saved/model_file.h"
#include "model/saved/saved_model.h"
#include "tools/ckpt/format/array_file.h"
#include "tools/ckpt/format/manifest_arrays.h"
#include "tools/export/model_rows.h"
#include "tools/export/onnx_graph.h"
#include "tools/export/onnx_ops.h"

namespace cairn::tools {
namespace {

using Name = OnnxGraph::Name;
using Names = OnnxGraph::Names;

// Above the one a variable lies in a file of its own, which a program maps; all that stand in the
// model itself take no more than the other.
constexpr std::uint64_t kInlineMax = 1 << 20, kInlineAllMax = 32 << 20;
// A mapping begins at a multiple of this on every system.
constexpr std::uint64_t kAlignment = 64 << 10;

std::uint64_t bytes_of(const VariableSpec& variable) {
  return static_cast<std::uint64_t>(variable.shape.elements()) * dtype_bytes(variable.dtype);
}

std::string initializer_text(const VariableSpec& variable) {
  switch (variable.initializer.kind) {
    case Initializer::Kind::kZeros: return "zeros";
    case Initializer::Kind::kConstant: return str("the constant ", variable.initializer.a);
    default: return "drawn by Cairn from seed and id";
  }
}

// Rows of a hashed variable that the graph takes.
struct RowInput {
  Name name;
  std::string variable, column;
};

class OnnxModel {
 public:
  OnnxModel(const std::string& folder, std::string file)
      : file_(std::move(file)),
        model_(read_saved_model(folder)),
        graph_(read_model_graph(model_)),
        values_(graph_.nodes.size()) {
    if (!file_.ends_with(".onnx"))
      throw InvalidArgumentError(str("\"", file_, "\": the name of an ONNX model ends in .onnx"));
  }

  // Everything that can be wrong is found here.
  void plan() {
    name_columns();
    const std::vector<bool> needed = needed_nodes();
    std::string missing;
    for (std::size_t i = 0; i < graph_.nodes.size(); ++i) {
      if (!needed[i] && is_check(graph_.nodes[i])) ++made_.checks_left_out;
      if (!needed[i]) continue;
      if (is_check(graph_.nodes[i])) ++made_.checks_left_out;
      try {
        values_[i] = computed(i);
      } catch (const InvalidArgumentError& error) {
        missing += str("\n  ", graph_.nodes[i].op->name, ": ", error.what());
        values_[i].assign(graph_.nodes[i].outputs.size(), "");
      }
    }
    if (!missing.empty())
      throw InvalidArgumentError(str("ONNX cannot express these operations of the model in ",
                                     model_.folder, ":", missing));
    add_outputs();
    add_inputs();
    for (const auto& file : {file_, data_file(), rows_file()})
      if (system_disk().exists(file)) throw AlreadyExistsError(str(file, " exists already"));
  }

  OnnxExport write() {
    const ModelRows rows(model_);
    write_data(rows);
    write_rows(rows);
    OutputFile file(file_);
    const std::string model = out_.model(model_.name, model_.cairn_version, metadata());
    file.write(model);
    file.finish();
    made_.files.insert(made_.files.begin(), file_);
    made_.bytes += model.size();
    return made_;
  }

  void remove_written() const {
    for (const std::string& path : made_.files) system_disk().remove(path);
  }

 private:
  std::string data_file() const { return file_ + ".data"; }
  std::string rows_file() const { return file_ + ".rows.npz"; }

  // ---- the graph ----

  void name_columns() {
    for (const ColumnSpec& column : model_.input.columns)
      columns_.push_back(out_.unique(column.name));
    for (const ColumnSpec& column : model_.outputs)
      made_.outputs.push_back(out_.unique(column.name));
    for (const VariableSpec& variable : model_.variables)
      variables_.push_back(out_.unique(variable.name));
  }

  std::vector<bool> needed_nodes() const {
    std::vector<bool> needed(graph_.nodes.size());
    for (const ValueRef output : graph_.outputs)
      needed[static_cast<std::size_t>(output.node)] = true;
    for (std::size_t i = graph_.nodes.size(); i-- > 0;)
      for (std::size_t j = 0; needed[i] && j < graph_.nodes[i].inputs.size(); ++j) {
        // The value of after() does not depend on that for which it waits.
        if (graph_.nodes[i].op->name == "after" && j > 0) break;
        needed[static_cast<std::size_t>(graph_.nodes[i].inputs[j].node)] = true;
      }
    return needed;
  }

  const Name& value(ValueRef from) {
    Names& names = values_[static_cast<std::size_t>(from.node)];
    const Node& node = graph_.nodes[static_cast<std::size_t>(from.node)];
    if (node.op->has(OpFlags::kConstant) && names[0].empty())
      names[0] = out_.constant(node.attributes.get<Tensor>("value"));
    if (node.op->effect == Effect::kAdvance)
      use_input(names[static_cast<std::size_t>(from.output)],
                node.outputs[static_cast<std::size_t>(from.output)]);
    return names[static_cast<std::size_t>(from.output)];
  }

  void use_input(const Name& name, const TensorType& type) {
    const auto has = [&](const auto& each) { return each.first == name; };
    if (std::none_of(inputs_.begin(), inputs_.end(), has)) inputs_.emplace_back(name, type);
  }

  Names computed(std::size_t at) {
    const Node& node = graph_.nodes[at];
    if (node.op->effect == Effect::kAdvance) return columns_;
    if (node.op->has(OpFlags::kConstant)) return {""};  // value() adds it, if it is used at all
    if (node.op->has(OpFlags::kStepKey)) return {""};   // an error of what draws by it
    if (node.op->effect == Effect::kRead) return {read(node)};
    const OnnxRule rule = onnx_rule(node.op->name);
    if (rule == nullptr) throw InvalidArgumentError("it has no operator for this");
    OnnxNode mapped{graph_, node, {}, out_};
    for (std::size_t i = 0; i < node.inputs.size(); ++i)
      mapped.in.push_back(is_unused(node, i) ? Name() : value(node.inputs[i]));
    return rule(mapped);
  }
  // The value of after() is its first input alone, and keys are part of their operator.
  static bool is_unused(const Node& node, std::size_t input) {
    return input > 0 && (node.op->name == "after" || node.op->name == "find_key");
  }

  Name read(const Node& node) {
    const auto index = static_cast<std::size_t>(node.attributes.get<std::int64_t>("variable"));
    const VariableSpec& variable = model_.variables.at(index);
    if (variable.hashed) return row_input(node, variable);
    if (used_.insert(index).second) place(index);
    if (node.op->name == "read_variable") return variables_[index];
    return out_.add("Gather", {variables_[index], value(node.inputs[0])},
                    {{"axis", std::int64_t{0}}});
  }

  // Small variables are added once their values are read.
  void place(std::size_t index) {
    const std::uint64_t bytes = bytes_of(model_.variables[index]);
    if (bytes <= kInlineMax && inline_bytes_ + bytes <= kInlineAllMax) {
      inline_bytes_ += bytes;
      inlined_.push_back(index);
      return;
    }
    const std::uint64_t at = (data_bytes_ + kAlignment - 1) / kAlignment * kAlignment;
    const std::string file = std::filesystem::path(data_file()).filename().string();
    out_.initializer(variables_[index], type_of(index), OnnxPlace{file, at, bytes});
    external_.emplace_back(index, at);
    data_bytes_ = at + bytes;
  }

  TensorType type_of(std::size_t index) const {
    return {model_.variables[index].dtype, model_.variables[index].shape};
  }

  Name row_input(const Node& node, const VariableSpec& variable) {
    const std::string column = column_of(node.inputs[0], variable);
    const auto same = [&](const RowInput& each) {
      return each.variable == variable.name && each.column == column;
    };
    const auto found = std::find_if(row_inputs_.begin(), row_inputs_.end(), same);
    if (found != row_inputs_.end()) return found->name;
    const Name name = out_.unique(variable.name + "/rows");
    row_inputs_.push_back({name, variable.name, column});
    hashed_.insert(static_cast<std::size_t>(node.attributes.get<std::int64_t>("variable")));
    inputs_.emplace_back(name, node.outputs[0]);
    return name;
  }

  // The column whose elements the ids are.
  std::string column_of(ValueRef ids, const VariableSpec& variable) {
    const Node& node = graph_.nodes[static_cast<std::size_t>(ids.node)];
    if (node.op->effect == Effect::kAdvance)
      return model_.input.columns.at(static_cast<std::size_t>(ids.output)).name;
    if (node.op->name == "cast" || node.op->name == "reshape" || is_check(node))
      return column_of(node.inputs[0], variable);
    throw InvalidArgumentError(
        str("the rows of \"", variable.name, "\", which is hashed, are an input of what is ",
            "exported, and their ids are no column of the model but computed by ", node.op->name,
            ": leave that to the data's features"));
  }

  // Columns in the model's order, as far as the outputs need them, then rows.
  void add_inputs() {
    const auto place = [&](const auto& input) {
      return std::find(columns_.begin(), columns_.end(), input.first);
    };
    std::stable_sort(inputs_.begin(), inputs_.end(),
                     [&](const auto& a, const auto& b) { return place(a) < place(b); });
    for (const auto& [name, type] : inputs_) {
      out_.input(name, type);
      made_.inputs.push_back(name);
    }
  }

  void add_outputs() {
    for (std::size_t i = 0; i < graph_.outputs.size(); ++i) {
      out_.add_named("Identity", {value(graph_.outputs[i])}, made_.outputs[i]);
      out_.output(made_.outputs[i], graph_.type(graph_.outputs[i]));
    }
  }

  // ---- the files ----

  void write_data(const ModelRows& rows) {
    for (const std::size_t index : inlined_) {
      std::string bytes;
      rows.dense(model_.variables[index], [&](std::span<const std::byte> piece) {
        bytes.append(reinterpret_cast<const char*>(piece.data()), piece.size());
      });
      out_.initializer(variables_[index], type_of(index), bytes);
    }
    if (external_.empty()) return;
    OutputFile file(data_file());
    std::uint64_t at = 0;
    for (const auto& [index, begin] : external_) {
      file.write(std::string(begin - at, '\0'));
      rows.dense(model_.variables[index], [&](std::span<const std::byte> piece) {
        file.write({reinterpret_cast<const char*>(piece.data()), piece.size()});
      });
      at = begin + bytes_of(model_.variables[index]);
    }
    file.finish();
    made_.files.push_back(data_file());
    made_.bytes += data_bytes_;
  }

  // The rows are read twice, since an array's size stands in front of it.
  void write_rows(const ModelRows& rows) {
    if (hashed_.empty()) return;
    std::vector<ckpt::ArrayInfo> arrays;
    for (const std::size_t index : hashed_) {
      const VariableSpec& variable = model_.variables[index];
      std::int64_t count = 0;
      rows.held(variable, [&](auto ids, auto) { count += static_cast<std::int64_t>(ids.size()); });
      arrays.push_back({ckpt::keys_name(variable.name), DType::kInt64, {count}});
      arrays.push_back({ckpt::values_name(variable.name), variable.dtype,
                        variable.shape.with_dim(0, count).dims()});
    }
    ckpt::ArrayWriter writer(rows_file(), ckpt::ArrayFormat::kNpz, arrays, {});
    std::size_t array = 0;
    for (const std::size_t index : hashed_) {
      rows.held(model_.variables[index], [&](auto ids, auto data) {
        writer.append(array, reinterpret_cast<const std::byte*>(ids.data()), ids.size_bytes());
        writer.append(array + 1, data.data(), data.size());
      });
      array += 2;
    }
    writer.finish();
    made_.files.push_back(rows_file());
    for (const ckpt::ArrayInfo& info : arrays) made_.bytes += info.bytes();
    for (const RowInput& input : row_inputs_) made_.row_inputs.push_back(input.name);
  }

  std::vector<std::pair<std::string, std::string>> metadata() const {
    Json rows = Json::array(), columns = Json::object();
    for (const RowInput& input : row_inputs_) {
      const auto variable =
          std::find_if(model_.variables.begin(), model_.variables.end(),
                       [&](const VariableSpec& each) { return each.name == input.variable; });
      rows.push_back({{"input", input.name},
                      {"ids", input.column},
                      {"file", std::filesystem::path(rows_file()).filename().string()},
                      {"keys", ckpt::keys_name(input.variable)},
                      {"values", ckpt::values_name(input.variable)},
                      {"other_rows", initializer_text(*variable)}});
    }
    return {{"cairn.global_step", std::to_string(model_.global_step)},
            {"cairn.label", model_.label},
            {"cairn.rows", json_text(rows)},
            {"cairn.metadata", model_.metadata}};
  }

  std::string file_;
  SavedModel model_;
  Graph graph_;
  OnnxGraph out_;
  Names columns_, variables_;
  std::vector<Names> values_;  // of each node
  std::vector<std::pair<Name, TensorType>> inputs_;
  std::set<std::size_t> used_, hashed_;
  std::vector<std::size_t> inlined_;
  std::vector<std::pair<std::size_t, std::uint64_t>> external_;  // where each begins
  std::uint64_t inline_bytes_ = 0, data_bytes_ = 0;
  std::vector<RowInput> row_inputs_;
  OnnxExport made_;
};

}  // namespace

OnnxExport export_onnx(const std::string& folder, const std::string& file) {
  OnnxModel model(folder, file);
  model.plan();
  try {
    return model.write();
  } catch (...) {
    model.remove_written();
    throw;
  }
}

}  // namespace cairn::tools
