// InferEvents: takes the events of a JSON parser that reads a request of the Open Inference
// Protocol. A part of InferDecoder.
//   Thread  one.
#pragma once
#include <boost/json/error.hpp>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "serving/api/column_builder.h"
#include "serving/api/infer.h"
#include "serving/api/json_request.h"

namespace cairn::serving {

// How many entries of "outputs" a request may have.
inline constexpr std::size_t kJsonOutputsMax = 1024;

// One of "inputs", as its object describes it.
struct InferInput {
  std::string name, datatype;
  std::optional<std::vector<std::int64_t>> shape;
  std::optional<std::int64_t> binary_bytes;
  std::size_t column = 0;  // in Signature::input, once check() has found it
  bool checked = false;
  ColumnBuilder* builder = nullptr;  // of the column
  // Where "data" begins. The values are taken at once if name, datatype and shape came before them,
  // and otherwise by a second parse of that part.
  std::optional<std::size_t> data_at;
  bool taken = false;
};

// One of "outputs".
struct InferWanted {
  std::string name;
  std::optional<bool> binary;
};

class InferEvents {
 public:
  using error_code = boost::json::error_code;
  static constexpr std::size_t max_object_size = std::size_t(-1), max_array_size = std::size_t(-1),
                               max_key_size = std::size_t(-1), max_string_size = std::size_t(-1);

  explicit InferEvents(const Signature& signature);

  // Before a header, which must outlive the parsing, as the budget must.
  void begin(const FiniteBody& header, DecodeBudget& budget);
  // Before the second parse, which begins at the input's "data".
  void begin_data(InferInput& input);

  const std::string& id() const { return id_; }
  std::vector<InferInput>& inputs() { return inputs_; }
  const std::vector<InferWanted>& wanted() const { return wanted_; }
  bool has_inputs() const { return has_inputs_; }
  bool binary_output() const { return binary_output_; }
  ColumnBuilder& builder(std::size_t column) { return builders_[column]; }
  const JsonFault& fault() const { return fault_; }

  // ---- the parser's events ----
  bool on_document_begin(error_code&) { return true; }
  bool on_document_end(error_code&) { return true; }
  bool on_object_begin(error_code& error);
  bool on_object_end(std::size_t, error_code& error);
  bool on_array_begin(error_code& error);
  bool on_array_end(std::size_t, error_code& error);
  bool on_key_part(std::string_view part, std::size_t, error_code&) {
    pieces_ += part;
    return true;
  }
  bool on_key(std::string_view rest, std::size_t, error_code& error);
  bool on_string_part(std::string_view part, std::size_t, error_code&) {
    if (at_ != At::kSkip) pieces_ += part;
    return true;
  }
  bool on_string(std::string_view rest, std::size_t, error_code& error);
  bool on_number_part(std::string_view part, error_code&) {
    pieces_ += part;
    return true;
  }
  bool on_int64(std::int64_t value, std::string_view rest, error_code& error) {
    if (at_ == At::kData && !has_literals_ && data_of_->builder->fast_integer(value)) [[likely]] {
      pieces_.clear();
      return true;
    }
    return number(whole(rest), &value, error);
  }
  bool on_uint64(std::uint64_t, std::string_view rest, error_code& error) {
    return number(whole(rest), nullptr, error);
  }
  bool on_double(double value, std::string_view rest, error_code& error) {
    const std::string_view text = whole(rest);
    if (at_ == At::kData && !has_literals_ && data_of_->builder->fast_number(text, value))
        [[likely]]
      return true;
    return number(text, nullptr, error);
  }
  bool on_bool(bool value, error_code& error);
  bool on_null(error_code& error);
  bool on_comment_part(std::string_view, error_code&) { return true; }
  bool on_comment(std::string_view, error_code&) { return true; }

 private:
  // The object whose keys are read, and the key whose value is to come.
  enum class Of : std::uint8_t { kRequest, kInput, kOutput };
  enum class Key : std::uint8_t {
    kOther,
    kId,
    kInputs,
    kOutputs,
    kParameters,
    kName,
    kDatatype,
    kShape,
    kData,
    kBinarySize,
    kBinaryData,
    kBinaryOutput,
  };
  enum class At : std::uint8_t {
    kDocument,
    kKeys,        // among the keys of `of_`
    kParameters,  // among those of its "parameters"
    kValue,       // the value of `key_` is to come
    kSkip,        // in a value that is not ours
    kList,        // in "inputs" or "outputs"
    kShape,       // in the list of "shape"
    kData,        // in the value of "data"
  };

  std::string_view whole(std::string_view rest) { return pieces_.empty() ? rest : joined(rest); }
  std::string_view joined(std::string_view rest);
  bool number(std::string_view text, const std::int64_t* value, error_code& error);
  bool open_key(std::string_view key, error_code& error);
  bool open_parameter(std::string_view key, error_code& error);
  bool open_data(std::string_view key, error_code& error);
  bool check(InferInput& input, std::string_view text, error_code& error);
  bool close_object(error_code& error);
  bool close_data(bool taken, std::string_view text, error_code& error);
  bool close_skipped();
  bool close_value();
  std::size_t offset_of(std::string_view text) const;
  bool refuse(const std::string& why, std::string_view text, error_code& error);
  bool refuse_kind(const std::string& found, std::string_view text, error_code& error);

  const ElementSpec spec_;
  std::vector<ColumnBuilder> builders_;  // one per column of spec_
  const FiniteBody* header_ = nullptr;
  const DecodeBudget* budget_ = nullptr;

  At at_ = At::kDocument;
  Of of_ = Of::kRequest;
  Key key_ = Key::kOther;
  bool in_parameters_ = false, has_literals_ = false;
  std::uint32_t keys_[3] = {};  // that an object has had, by Of
  int skipped_ = 0;             // open lists and objects

  std::string id_;
  std::vector<InferInput> inputs_;
  std::vector<InferWanted> wanted_;
  bool has_inputs_ = false, binary_output_ = false;
  InferInput* data_of_ = nullptr;
  std::string pieces_, whole_;
  JsonFault fault_;
};

}  // namespace cairn::serving
