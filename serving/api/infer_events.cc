#include "serving/api/infer_events.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "core/base/error.h"
#include "data/feature/printable.h"

namespace cairn::serving {

InferEvents::InferEvents(const Signature& signature) : spec_(signature.input) {
  builders_.reserve(spec_.columns.size());
  for (const ColumnSpec& column : spec_.columns) builders_.emplace_back(column, false);
}

void InferEvents::begin(const FiniteBody& header, DecodeBudget& budget) {
  header_ = &header;
  has_literals_ = header.has_literals();
  data_of_ = nullptr;
  budget_ = &budget;
  for (ColumnBuilder& builder : builders_) builder.reset(budget);
  at_ = At::kDocument;
  of_ = Of::kRequest;
  std::fill(std::begin(keys_), std::end(keys_), 0U);
  in_parameters_ = has_inputs_ = binary_output_ = false;
  id_.clear();
  inputs_.clear();
  wanted_.clear();
  pieces_.clear();
  fault_ = {};
}

void InferEvents::begin_data(InferInput& input) {
  data_of_ = &input;
  at_ = At::kData;
  of_ = Of::kInput;
  pieces_.clear();
  input.builder->begin_tensor(Shape(*input.shape));
}

bool InferEvents::on_object_begin(error_code& error) {
  switch (at_) {
    case At::kDocument: at_ = At::kKeys; return true;
    case At::kSkip: ++skipped_; return true;
    case At::kList:
      if (of_ == Of::kInput && inputs_.size() >= spec_.columns.size())
        return refuse(str("there are more inputs than the model's ", spec_.columns.size()), {},
                      error);
      if (of_ == Of::kOutput && wanted_.size() >= kJsonOutputsMax)
        return refuse(str("there are more than ", kJsonOutputsMax, " outputs"), {}, error);
      of_ == Of::kInput ? void(inputs_.emplace_back()) : void(wanted_.emplace_back());
      keys_[static_cast<int>(of_)] = 0;
      at_ = At::kKeys;
      return true;
    case At::kValue:
      if (key_ != Key::kParameters) return refuse_kind("an object", {}, error);
      at_ = At::kParameters;
      in_parameters_ = true;
      return true;
    default: return refuse_kind("an object", {}, error);
  }
}

bool InferEvents::on_object_end(std::size_t, error_code& error) {
  switch (at_) {
    case At::kSkip: --skipped_; return close_skipped();
    case At::kParameters:
      in_parameters_ = false;
      at_ = At::kKeys;
      return true;
    default: return close_object(error);
  }
}

bool InferEvents::on_array_begin(error_code& error) {
  if (at_ == At::kSkip) {
    ++skipped_;
    return true;
  }
  if (at_ == At::kData) {
    ColumnBuilder& builder = *data_of_->builder;
    return builder.list_begin() || refuse(builder.why(), {}, error);
  }
  if (at_ == At::kValue && (key_ == Key::kInputs || key_ == Key::kOutputs)) {
    of_ = key_ == Key::kInputs ? Of::kInput : Of::kOutput;
    at_ = At::kList;
    return true;
  }
  if (at_ == At::kValue && key_ == Key::kShape) {
    inputs_.back().shape.emplace();
    at_ = At::kShape;
    return true;
  }
  return refuse_kind("a list", {}, error);
}

bool InferEvents::on_array_end(std::size_t, error_code& error) {
  switch (at_) {
    case At::kSkip: --skipped_; return close_skipped();
    case At::kData: return close_data(data_of_->builder->list_end(), {}, error);
    case At::kList:
      of_ = Of::kRequest;
      at_ = At::kKeys;
      return true;
    default: return close_value();  // kShape
  }
}

bool InferEvents::on_key(std::string_view rest, std::size_t, error_code& error) {
  const std::string_view key = whole(rest);
  if (at_ == At::kKeys) return open_key(key, error);
  if (at_ == At::kParameters) return open_parameter(key, error);
  return true;  // kSkip
}

bool InferEvents::on_string(std::string_view rest, std::size_t, error_code& error) {
  const std::string_view text = whole(rest);
  if (at_ == At::kSkip) return close_skipped();
  if (at_ == At::kData) return close_data(data_of_->builder->text(text), text, error);
  if (at_ != At::kValue) return refuse_kind("a text", text, error);
  switch (key_) {
    case Key::kId: id_ = text; return close_value();
    case Key::kName: (of_ == Of::kInput ? inputs_.back().name : wanted_.back().name) = text; break;
    case Key::kDatatype: inputs_.back().datatype = text; break;
    default: return refuse_kind("a text", text, error);
  }
  return close_value();
}

bool InferEvents::number(std::string_view text, const std::int64_t* value, error_code& error) {
  if (at_ == At::kSkip) return close_skipped();
  if (at_ == At::kData) {
    ColumnBuilder& builder = *data_of_->builder;
    const std::string_view literal =
        has_literals_ ? header_->literal_at(offset_of(text)) : std::string_view();
    return close_data(!literal.empty()   ? builder.not_finite(literal)
                      : value != nullptr ? builder.integer(*value, text)
                                         : builder.number(text),
                      text, error);
  }
  const bool is_size = at_ == At::kValue && key_ == Key::kBinarySize;
  if (at_ != At::kShape && !is_size) return refuse_kind("a number", text, error);
  if (value == nullptr || *value < 0)
    return refuse(str(printable(text), is_size ? " is no number of bytes" : " is no dimension"),
                  text, error);
  if (is_size) {
    inputs_.back().binary_bytes = *value;
    return close_value();
  }
  std::vector<std::int64_t>& dims = *inputs_.back().shape;
  if (dims.size() >= kJsonLevelsMax)
    return refuse(str("the shape has more than ", kJsonLevelsMax, " dimensions"), text, error);
  dims.push_back(*value);
  return true;
}

bool InferEvents::on_bool(bool value, error_code& error) {
  if (at_ == At::kSkip) return close_skipped();
  if (at_ == At::kData) return close_data(data_of_->builder->boolean(value), {}, error);
  if (at_ == At::kValue && key_ == Key::kBinaryOutput)
    binary_output_ = value;
  else if (at_ == At::kValue && key_ == Key::kBinaryData)
    wanted_.back().binary = value;
  else
    return refuse_kind(value ? "true" : "false", {}, error);
  return close_value();
}

bool InferEvents::on_null(error_code& error) {
  if (at_ == At::kSkip) return close_skipped();
  return refuse_kind("null", {}, error);
}

// ---- what the events mean ----

std::string_view InferEvents::joined(std::string_view rest) {
  pieces_ += rest;
  whole_.swap(pieces_);
  pieces_.clear();
  return whole_;
}

bool InferEvents::open_key(std::string_view key, error_code& error) {
  struct Known {
    Of of;
    std::string_view name;
    Key key;
  };
  static constexpr Known kKnown[] = {{Of::kRequest, "id", Key::kId},
                                     {Of::kRequest, "inputs", Key::kInputs},
                                     {Of::kRequest, "outputs", Key::kOutputs},
                                     {Of::kRequest, "parameters", Key::kParameters},
                                     {Of::kInput, "name", Key::kName},
                                     {Of::kInput, "shape", Key::kShape},
                                     {Of::kInput, "datatype", Key::kDatatype},
                                     {Of::kInput, "parameters", Key::kParameters},
                                     {Of::kInput, "data", Key::kData},
                                     {Of::kOutput, "name", Key::kName},
                                     {Of::kOutput, "parameters", Key::kParameters}};
  at_ = At::kSkip;
  skipped_ = 0;
  for (const Known& known : kKnown) {
    if (known.of != of_ || known.name != key) continue;
    std::uint32_t& had = keys_[static_cast<int>(of_)];
    const std::uint32_t bit = 1U << static_cast<int>(known.key);
    key_ = known.key;
    at_ = At::kValue;
    if ((std::exchange(had, had | bit) & bit) != 0)
      return refuse(str("the key \"", key, "\" is there twice"), key, error);
    if (key_ == Key::kInputs) has_inputs_ = true;
    return key_ != Key::kData || open_data(key, error);
  }
  return true;
}

bool InferEvents::open_parameter(std::string_view key, error_code& error) {
  key_ = Key::kOther;
  at_ = At::kSkip;
  skipped_ = 0;
  if (key.starts_with("shared_memory") || (of_ == Of::kOutput && key == "classification")) {
    fault_.unimplemented = true;
    return refuse(str("the parameter \"", printable(key), "\" is not served here"), key, error);
  }
  if (of_ == Of::kInput && key == "binary_data_size") key_ = Key::kBinarySize;
  if (of_ == Of::kOutput && key == "binary_data") key_ = Key::kBinaryData;
  if (of_ == Of::kRequest && key == "binary_data_output") key_ = Key::kBinaryOutput;
  if (key_ == Key::kOther) return true;
  if (key_ == Key::kBinarySize && inputs_.back().binary_bytes)
    return refuse("the key \"binary_data_size\" is there twice", key, error);
  at_ = At::kValue;
  return true;
}

// The parser tells no places but those of texts, so the value's is looked for behind its key.
bool InferEvents::open_data(std::string_view key, error_code& error) {
  InferInput& input = inputs_.back();
  const std::string_view header = header_->text();
  const std::size_t key_at = offset_of(key);
  if (key_at == JsonFault::kUnknown)
    return refuse("the key \"data\" is written with escapes: write it plainly", {}, error);
  input.data_at = header.find_first_not_of(" \t\r\n:", key_at + key.size() + 1);
  const bool is_described = !input.name.empty() && !input.datatype.empty() && input.shape;
  if (!is_described) {
    at_ = At::kSkip;
    return true;
  }
  if (!check(input, key, error)) return false;
  input.taken = true;
  begin_data(input);
  return true;
}

// Name, datatype and shape against the model's column, before memory is taken for values.
bool InferEvents::check(InferInput& input, std::string_view text, error_code& error) {
  if (input.checked) return true;
  const auto found = std::find_if(spec_.columns.begin(), spec_.columns.end(),
                                  [&](const ColumnSpec& each) { return each.name == input.name; });
  if (found == spec_.columns.end()) {
    std::vector<std::string> names;
    for (const ColumnSpec& column : spec_.columns) names.push_back(column.name);
    return refuse(str("the model has no such input", names_near(input.name, names)), text, error);
  }
  input.column = static_cast<std::size_t>(found - spec_.columns.begin());
  for (const InferInput& other : inputs_)
    if (&other != &input && other.checked && other.column == input.column)
      return refuse("the input is there twice", text, error);
  const TensorType& wanted = found->type;
  if (input.datatype != infer_datatype(wanted.dtype))
    return refuse(str("the datatype \"", printable(input.datatype), "\" is given, and ",
                      infer_datatype(wanted.dtype), " is wanted"),
                  text, error);
  const Shape shape(*input.shape);
  if (!wanted.shape.admits(shape))
    return refuse(str("the shape ", shape.to_string(), " is given, and ", wanted.shape.to_string(),
                      " is wanted"),
                  text, error);
  std::size_t elements = 1;  // if no dimension were 0: then products of dimensions cannot overflow
  for (const std::int64_t dim : shape.dims()) {
    const auto size = static_cast<std::size_t>(std::max<std::int64_t>(1, dim));
    if (size > budget_->limits.elements_max / elements)
      return refuse(str("the shape ", shape.to_string(), " has more than ",
                        budget_->limits.elements_max, " elements"),
                    text, error);
    elements *= size;
  }
  input.builder = &builders_[input.column];
  input.checked = true;
  return true;
}

bool InferEvents::close_object(error_code& error) {
  if (of_ == Of::kRequest) {
    at_ = At::kDocument;
    return true;
  }
  at_ = At::kList;
  if (of_ == Of::kOutput)
    return !wanted_.back().name.empty() || refuse("an output has no \"name\"", {}, error);
  InferInput& input = inputs_.back();
  if (input.name.empty()) return refuse("an input has no \"name\"", {}, error);
  if (input.datatype.empty()) return refuse("the input has no \"datatype\"", {}, error);
  if (!input.shape) return refuse("the input has no \"shape\"", {}, error);
  if (!check(input, {}, error)) return false;
  if (input.data_at && input.binary_bytes)
    return refuse("the input has \"data\" and \"binary_data_size\", and its values come once", {},
                  error);
  if (!input.data_at && !input.binary_bytes)
    return refuse("the input has neither \"data\" nor the parameter \"binary_data_size\"", {},
                  error);
  return true;
}

bool InferEvents::close_data(bool taken, std::string_view text, error_code& error) {
  ColumnBuilder& builder = *data_of_->builder;
  if (!taken) [[unlikely]]
    return refuse(builder.why(), text, error);
  if (builder.ended()) at_ = At::kKeys;
  return true;
}

bool InferEvents::close_skipped() {
  if (skipped_ == 0) close_value();
  return true;
}

bool InferEvents::close_value() {
  at_ = in_parameters_ ? At::kParameters : At::kKeys;
  return true;
}

std::size_t InferEvents::offset_of(std::string_view text) const {
  const std::string_view header = header_->text();
  const bool is_within = !std::less<>()(text.data(), header.data()) &&
                         std::less<>()(text.data(), header.data() + header.size());
  return is_within ? static_cast<std::size_t>(text.data() - header.data()) : JsonFault::kUnknown;
}

bool InferEvents::refuse(const std::string& why, std::string_view text, error_code& error) {
  std::string name;
  if (of_ == Of::kInput && data_of_ != nullptr && at_ == At::kData)
    name = data_of_->name;
  else if (of_ == Of::kInput && !inputs_.empty())
    name = inputs_.back().name;
  fault_.why = name.empty() ? why : str("input \"", printable(name), "\": ", why);
  if (text.data() != nullptr) fault_.at = offset_of(text);
  error = boost::json::error::syntax;
  return false;
}

bool InferEvents::refuse_kind(const std::string& found, std::string_view text, error_code& error) {
  const char* wanted = "a value of the column's datatype";
  if (at_ == At::kDocument) wanted = "an object of \"inputs\"";
  if (at_ == At::kList) wanted = "an object with a \"name\"";
  if (at_ == At::kShape) wanted = "a dimension";
  if (at_ == At::kValue) {
    switch (key_) {
      case Key::kInputs:
      case Key::kOutputs: wanted = "a list of objects"; break;
      case Key::kShape: wanted = "a list of dimensions"; break;
      case Key::kParameters: wanted = "an object"; break;
      case Key::kBinarySize: wanted = "a number of bytes"; break;
      case Key::kBinaryData:
      case Key::kBinaryOutput: wanted = "true or false"; break;
      default: wanted = "a text";
    }
  }
  return refuse(str(found, " is there, and ", wanted, " is wanted"), text, error);
}

}  // namespace cairn::serving
