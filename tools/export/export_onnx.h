// A saved model as ONNX, for other programs to predict with.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace cairn::tools {

struct OnnxExport {
  std::vector<std::string> files;  // the model itself comes first
  std::uint64_t bytes = 0;         // of all of them
  std::vector<std::string> inputs, outputs;
  // Inputs that take rows of hashed variables, which lie in a file beside the model.
  std::vector<std::string> row_inputs;
  std::int64_t checks_left_out = 0;
};

// Writes the model in `folder` to `file`, which ends in ".onnx"; its variables of more than a
// megabyte to FILE.data, which the model names; and the rows of hashed variables, as keys and
// values, to FILE.rows.npz. The graph then takes the rows of such a variable as an input of its
// own; which column's ids they are of stands in the model's metadata, under "cairn.rows".
//   Result  predicts as the model does, but for rounding.
//   Cost    a few megabytes of memory.
//   Errors  InvalidArgument: the file's name; operations that ONNX does not have, all of them by
//           name. AlreadyExists: one of the files. Nothing is written then. Those of the model and
//           of the disk.
//   Thread  any that may block on files.
OnnxExport export_onnx(const std::string& folder, const std::string& file);

}  // namespace cairn::tools
