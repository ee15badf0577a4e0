// OnnxGraph: a graph of ONNX in the making, node by node.
//
// Version 18 of ONNX's operators: the first that can add up rows of equal ids (ScatterND's
// reductions, 16), has LayerNormalization's kin (17) and takes a reduction's axes as an input as
// all later ones do (18), so that any runtime since 2023 runs it.
//   Source  onnx/onnx.proto and docs/Operators.md of github.com/onnx/onnx
//   Thread  one.
#pragma once
#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "core/tensor/tensor.h"
#include "data/file/proto_message.h"

namespace cairn::tools {

inline constexpr int kOnnxOpset = 18, kOnnxMlOpset = 3, kOnnxIrVersion = 8;
inline constexpr const char* kOnnxMl = "ai.onnx.ml";  // the domain of operators on keys

// TensorProto.DataType.
std::int64_t onnx_type(DType dtype);

using OnnxValue = std::variant<std::int64_t, float, std::string, std::vector<std::int64_t>,
                               std::vector<std::string>, Tensor>;
using OnnxAttributes = std::vector<std::pair<std::string, OnnxValue>>;

// Where the elements of a large tensor lie: in a file beside the model.
struct OnnxPlace {
  std::string file;
  std::uint64_t offset = 0, bytes = 0;
};

class OnnxGraph {
 public:
  using Name = std::string;
  using Names = std::vector<Name>;

  // A node with one output; its name.
  Name add(std::string_view op, const Names& inputs, const OnnxAttributes& attributes = {},
           std::string_view domain = "");
  Names add_several(std::string_view op, const Names& inputs, std::size_t outputs,
                    const OnnxAttributes& attributes = {});
  // A node whose output has this name, which unique() gave.
  void add_named(std::string_view op, const Names& inputs, const Name& output);

  // Constants, whose elements stand in the graph.
  Name constant(const Tensor& value);
  Name list(const std::vector<std::int64_t>& values);  // int64 [n]
  Name number(DType dtype, double value);              // a scalar

  void initializer(const Name& name, const TensorType& type, std::string_view bytes);
  void initializer(const Name& name, const TensorType& type, const OnnxPlace& place);
  void input(const Name& name, const TensorType& type);
  void output(const Name& name, const TensorType& type);

  // The name itself, or, where it is taken, one that goes on with a number.
  Name unique(std::string name);

  // ModelProto.
  std::string model(const std::string& name, const std::string& producer_version,
                    const std::vector<std::pair<std::string, std::string>>& metadata) const;

 private:
  void add_node(std::string_view op, const Names& inputs, const Names& outputs,
                const OnnxAttributes& attributes, std::string_view domain);

  ProtoMessage graph_;
  std::set<std::string> names_;
};

}  // namespace cairn::tools
