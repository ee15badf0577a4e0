#include "model/saved/predictions.h"

#include <cerrno>
#include <charconv>
#include <cmath>
#include <cstdio>

#include "core/base/json.h"
#include "core/disk/disk.h"
#include "core/graph/graph.h"

namespace cairn {
namespace {

template <typename T>
std::string number_text(T value) {
  char text[64];
  const auto end = std::to_chars(text, text + sizeof text, value).ptr;
  return {text, end};
}

std::string quoted(const std::string& cell) {
  if (cell.find_first_of(",\"\r\n") == std::string::npos) return cell;
  std::string text = "\"";
  for (const char c : cell) text += c == '"' ? "\"\"" : std::string(1, c);
  return text + "\"";
}

// Calls `use` with element `i`, as the C++ type that its dtype stands for.
template <typename Use>
std::string of_element(const Tensor& all, std::size_t i, Use use) {
  switch (all.dtype()) {
    case DType::kFloat32: return use(all.values<float>()[i]);
    case DType::kFloat64: return use(all.values<double>()[i]);
    case DType::kInt32: return use(all.values<std::int32_t>()[i]);
    case DType::kInt64: return use(all.values<std::int64_t>()[i]);
    case DType::kUint8: return use(int{all.values<std::uint8_t>()[i]});
    case DType::kBool: return use(all.values<bool>()[i]);
    case DType::kString: return use(all.string_values()[i]);
    default: return "";  // refused before
  }
}

std::string csv_text(const Tensor& all, std::size_t i) {
  return of_element(all, i, [](const auto& value) -> std::string {
    using T = std::remove_cvref_t<decltype(value)>;
    if constexpr (std::is_same_v<T, std::string>) {
      return quoted(value);
    } else if constexpr (std::is_same_v<T, bool>) {
      return value ? "1" : "0";
    } else {
      return number_text(value);
    }
  });
}

std::string json_value(const Tensor& all, std::size_t i) {
  return of_element(all, i, [](const auto& value) -> std::string {
    using T = std::remove_cvref_t<decltype(value)>;
    if constexpr (std::is_floating_point_v<T>) {
      return std::isfinite(value) ? number_text(value) : "null";
    } else {
      return json_text(Json(value));
    }
  });
}

bool ends_in_jsonl(const std::string& path) { return path.ends_with(".jsonl"); }

}  // namespace

std::vector<ColumnSpec> output_columns(const Graph& graph) {
  std::vector<ColumnSpec> outputs;
  for (std::size_t i = 0; i < graph.outputs.size(); ++i) {
    std::string name = graph.output_names[i];
    if (name.empty()) name = graph.outputs.size() == 1 ? "output" : str("output_", i);
    outputs.push_back({std::move(name), graph.type(graph.outputs[i])});
  }
  return outputs;
}

Predictions::Predictions(const std::string& path, std::vector<ColumnSpec> outputs)
    : outputs_(std::move(outputs)), json_(ends_in_jsonl(path)), path_(path) {
  if (path != "-") file_.emplace(path);
}

void Predictions::verify(const std::vector<Tensor>& outputs) const {
  for (std::size_t o = 0; o < outputs.size(); ++o) {
    const Tensor& all = outputs[o];
    const bool rows = all.shape().rank() > 0 && all.shape()[0] == outputs.front().shape()[0];
    if (!rows)
      throw InvalidArgumentError(str("the output \"", outputs_[o].name, "\" is ",
                                     all.type().to_string(),
                                     ", which is not one row for each example"));
    if (all.dtype() == DType::kBfloat16 || all.dtype() == DType::kFloat16)
      throw InvalidArgumentError(str("the output \"", outputs_[o].name, "\" is ",
                                     dtype_name(all.dtype()),
                                     ": cast it to float32 in the model's function"));
  }
}

void Predictions::write(const std::vector<Tensor>& outputs) {
  verify(outputs);
  if (!header_written_ && !json_) write_header(outputs);
  std::string text;
  const std::int64_t rows = outputs.front().shape()[0];
  for (std::int64_t row = 0; row < rows; ++row)
    text += json_ ? json_line(outputs, row) : csv_line(outputs, row);
  put(text);
  written_ += rows;
}

void Predictions::write_header(const std::vector<Tensor>& outputs) {
  std::string text;
  for (std::size_t o = 0; o < outputs_.size(); ++o) {
    const bool several =
        !outputs.empty() && outputs[o].shape().rank() > 1 && outputs[o].shape().row_elements() != 1;
    const std::int64_t width = several ? outputs[o].shape().row_elements() : 1;
    for (std::int64_t i = 0; i < width; ++i)
      text += (text.empty() ? "" : ",") +
              quoted(several ? str(outputs_[o].name, "_", i) : outputs_[o].name);
  }
  put(text + "\n");
  header_written_ = true;
}

std::string Predictions::csv_line(const std::vector<Tensor>& outputs, std::int64_t row) const {
  std::string text;
  bool first = true;
  for (const Tensor& all : outputs) {
    const std::int64_t width = all.shape().row_elements();
    for (std::int64_t i = 0; i < width; ++i, first = false)
      text += (first ? "" : ",") + csv_text(all, static_cast<std::size_t>(row * width + i));
  }
  return text + "\n";
}

// One number of an example stands alone, several are one flat list.
std::string Predictions::json_line(const std::vector<Tensor>& outputs, std::int64_t row) const {
  std::string text = "{";
  for (std::size_t o = 0; o < outputs.size(); ++o) {
    const Tensor& all = outputs[o];
    const std::int64_t width = all.shape().row_elements();
    std::string value;
    for (std::int64_t i = 0; i < width; ++i)
      value += (i > 0 ? ", " : "") + json_value(all, static_cast<std::size_t>(row * width + i));
    text += (o > 0 ? ", " : "") + json_text(Json(outputs_[o].name)) + ": ";
    text += width == 1 ? value : "[" + value + "]";
  }
  return text + "}\n";
}

void Predictions::put(const std::string& text) {
  if (file_) return file_->write(text);
  if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size())
    raise_disk_error(errno, "writing", "standard output");
}

void Predictions::finish() {
  if (!header_written_ && !json_) write_header({});
  if (file_) return file_->finish();
  if (std::fflush(stdout) != 0) raise_disk_error(errno, "writing", "standard output");
}

std::string Predictions::keep_partial() {
  constexpr const char* kPartial = ".partial";
  if (written_ == 0) return "";
  if (!file_) {
    finish();
    return "standard output";
  }
  const OutputPlace place = output_place(path_);
  file_->finish(kPartial);
  return place.in_place ? place.path : place.path + kPartial;
}

}  // namespace cairn
