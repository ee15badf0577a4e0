#include "serving/api/tf_events.h"

#include <algorithm>
#include <array>
#include <utility>

#include "core/base/error.h"
#include "data/feature/printable.h"
#include "serving/api/base64.h"

namespace cairn::serving {
namespace {

constexpr std::size_t kUnknownKeysMax = 4;

// Signatures that a saved model has here, all of which are one.
constexpr std::array<std::string_view, 4> kPredictNames = {"", "serving_default", "predict",
                                                           "tensorflow/serving/predict"};
constexpr std::array<std::string_view, 4> kClassifyNames = {"", "serving_default", "classify",
                                                            "tensorflow/serving/classify"};
constexpr std::array<std::string_view, 4> kRegressNames = {"", "serving_default", "regress",
                                                           "tensorflow/serving/regress"};

const std::array<std::string_view, 4>& signature_names(TfVerb verb) {
  switch (verb) {
    case TfVerb::kClassify: return kClassifyNames;
    case TfVerb::kRegress: return kRegressNames;
    default: return kPredictNames;
  }
}

}  // namespace

TfEvents::TfEvents(const Signature& signature) : places_(signature.input.columns.size()) {
  const std::vector<ColumnSpec>& columns = signature.input.columns;
  if (columns.empty())
    throw InvalidArgumentError(str("the model \"", signature.model, "\" has no inputs"));
  const RaggedColumns ragged = find_ragged(columns);
  columns_.reserve(columns.size());  // places_by_name_ has views of what it holds
  for (std::size_t i = 0; i < columns.size(); ++i) {
    if (ragged.is_splits[i]) continue;
    const std::size_t splits = ragged.splits[i];
    columns_.push_back({ColumnBuilder(columns[i], splits != kNoColumn), i, splits});
    places_by_name_.emplace(columns_.back().builder.spec().name, columns_.size() - 1);
  }
}

void TfEvents::begin(TfVerb verb, const FiniteBody& body, DecodeBudget& budget) {
  verb_ = verb;
  form_ = TfForm::kRows;
  at_ = At::kDocument;
  had_ = {};
  body_ = &body;
  has_literals_ = body.has_literals();
  row_ = 0;
  active_ = nullptr;
  pieces_.clear();
  fault_ = {};
  wishes_ = {.budget = &budget};
  for (TfColumn& column : columns_) {
    column.builder.reset(budget);
    column.in_context = column.is_given = false;
  }
}

bool TfEvents::on_object_begin(error_code& error) {
  switch (at_) {
    case At::kDocument: at_ = At::kTop; return true;
    case At::kSkip: ++skipped_; return true;
    case At::kWantColumns: at_ = At::kColumns; break;
    case At::kWantContext: at_ = At::kContext; break;
    case At::kRows: at_ = At::kRow; break;
    case At::kValue:
      if (active_->builder.spec().type.dtype != DType::kString)
        return refuse_kind("an object", {}, error);
      at_ = At::kBase64;
      return true;
    default: return refuse_kind("an object", {}, error);
  }
  next_ = seen_ = 0;
  active_ = nullptr;
  return true;
}

bool TfEvents::on_object_end(std::size_t, error_code& error) {
  switch (at_) {
    case At::kTop: at_ = At::kDocument; return true;
    case At::kSkip: --skipped_; return close_skipped();
    case At::kRow: return close_row(error);
    case At::kColumns:
      if (seen_ < columns_.size()) return refuse(missing_columns(0), {}, error);
      at_ = At::kTop;
      return true;
    case At::kContext: at_ = At::kTop; return true;
    case At::kBase64Closed:
      at_ = At::kValue;
      return close_value(active_->builder.text(bytes_), {}, error);
    default: return refuse("an object without the key \"b64\" is there", {}, error);
  }
}

bool TfEvents::on_array_begin(error_code& error) {
  switch (at_) {
    case At::kSkip: ++skipped_; return true;
    case At::kWantRows: at_ = At::kRows; return true;
    case At::kWantExclude: at_ = At::kExclude; return true;
    case At::kExclude:
      wishes_.exclude.emplace_back();
      at_ = At::kExcluded;
      return true;
    case At::kRows:
    case At::kWantColumns:
      if (!open_bare(error)) return false;
      break;
    case At::kValue: break;
    default: return refuse_kind("a list", {}, error);
  }
  return active_->builder.list_begin() || refuse(active_->builder.why(), {}, error);
}

bool TfEvents::on_array_end(std::size_t, error_code& error) {
  if (at_ == At::kValue) [[likely]]
    return close_value(active_->builder.list_end(), {}, error);
  if (at_ == At::kSkip) {
    --skipped_;
    return close_skipped();
  }
  at_ = at_ == At::kExcluded ? At::kExclude : At::kTop;  // else kRows, kExclude
  return true;
}

bool TfEvents::on_key(std::string_view rest, std::size_t, error_code& error) {
  const std::string_view key = whole(rest);
  switch (at_) {
    case At::kTop: return open_top(key, error);
    case At::kRow:
    case At::kColumns:
    case At::kContext: return open_column(key, error);
    case At::kBase64:
      if (key != "b64")
        return refuse(str("an object with the key \"", printable(key),
                          "\" is there; a text that is an object has the key \"b64\""),
                      key, error);
      at_ = At::kBase64Text;
      return true;
    case At::kBase64Closed:
      return refuse("an object with more than the key \"b64\" is there", key, error);
    default: return true;
  }
}

bool TfEvents::on_string(std::string_view rest, std::size_t, error_code& error) {
  const std::string_view text = whole(rest);
  switch (at_) {
    case At::kSkip: return close_skipped();
    case At::kSignature: return take_signature(text, error);
    case At::kBase64Text: return take_base64(text, error);
    case At::kExcluded: return take_excluded({true, 0, std::string(text)}, text, error);
    case At::kRows:
    case At::kWantColumns:
      if (!open_bare(error)) return false;
      break;
    case At::kValue: break;
    default: return refuse_kind("a text", text, error);
  }
  return close_value(active_->builder.text(text), text, error);
}

bool TfEvents::number(std::string_view text, const std::int64_t* value, error_code& error) {
  if (at_ == At::kSkip) return close_skipped();
  if (at_ == At::kRows || at_ == At::kWantColumns) {
    if (!open_bare(error)) return false;
  } else if (at_ == At::kCount) {
    return take_count(value, text, error);
  } else if (at_ == At::kExcluded && value != nullptr) {
    return take_excluded({false, *value}, text, error);
  } else if (at_ != At::kValue) {
    return refuse_kind("a number", text, error);
  }
  const std::string_view literal =
      has_literals_ ? body_->literal_at(offset_of(text)) : std::string_view();
  ColumnBuilder& builder = active_->builder;
  return close_value(!literal.empty()   ? builder.not_finite(literal)
                     : value != nullptr ? builder.integer(*value, text)
                                        : builder.number(text),
                     text, error);
}

bool TfEvents::on_bool(bool value, error_code& error) {
  if (at_ == At::kSkip) return close_skipped();
  if (at_ == At::kRows || at_ == At::kWantColumns) {
    if (!open_bare(error)) return false;
  } else if (at_ != At::kValue) {
    return refuse_kind(value ? "true" : "false", {}, error);
  }
  return close_value(active_->builder.boolean(value), {}, error);
}

bool TfEvents::on_null(error_code& error) {
  if (at_ == At::kSkip) return close_skipped();
  return refuse_kind("null", {}, error);
}

// ---- what the events mean ----

std::string_view TfEvents::joined(std::string_view rest) {
  pieces_ += rest;
  whole_.swap(pieces_);
  pieces_.clear();
  return whole_;
}

// An event of `active_`'s value has been taken, unless it was refused.
bool TfEvents::close_value(bool taken, std::string_view text, error_code& error) {
  if (!taken) [[unlikely]]
    return refuse(active_->builder.why(), text, error);
  if (!active_->builder.ended()) return true;
  if (back_ == At::kRows) ++row_;
  at_ = back_;
  return true;
}

bool TfEvents::close_skipped() {
  if (skipped_ == 0) at_ = At::kTop;
  return true;
}

// A value without a name: the model's one input.
bool TfEvents::open_bare(error_code& error) {
  const bool in_rows = at_ == At::kRows;
  if (verb_ != TfVerb::kPredict)
    return refuse(
        "a plain value is there, and an example is an object of its features: "
        "{\"NAME\": VALUE, ...}",
        {}, error);
  if (columns_.size() != 1) {
    std::string wanted;
    for (const std::string& name : names())
      wanted += str(wanted.empty() ? "" : ", ", "\"", name, "\": ...");
    return refuse(str("plain values are there, and the model has ", columns_.size(),
                      " inputs: name them, as {", wanted, "}"),
                  {}, error);
  }
  active_ = columns_.data();
  if (in_rows)
    active_->builder.begin_row();
  else
    active_->builder.begin_tensor();
  active_->is_given = true;
  back_ = in_rows ? At::kRows : At::kTop;
  at_ = At::kValue;
  return true;
}

bool TfEvents::open_top(std::string_view key, error_code& error) {
  const bool predicts = verb_ == TfVerb::kPredict;
  bool* had = nullptr;
  if (key == "signature_name") {
    had = &had_.signature;
    at_ = At::kSignature;
  } else if (key == (predicts ? "instances" : "examples")) {
    had = &had_.rows;
    at_ = At::kWantRows;
    row_ = 0;
  } else if (predicts && key == "inputs") {
    had = &had_.columns;
    form_ = TfForm::kColumns;
    at_ = At::kWantColumns;
  } else if (wishes_.are_read && key == "k") {
    had = &wishes_.had_k;
    at_ = At::kCount;
  } else if (wishes_.are_read && key == "exclude") {
    had = &wishes_.had_exclude;
    at_ = At::kWantExclude;
  } else if (!predicts && key == "context") {
    had = &had_.context;
    at_ = At::kWantContext;
  } else {
    if (had_.unknown.size() < kUnknownKeysMax) had_.unknown.push_back(printable(key));
    at_ = At::kSkip;
    skipped_ = 0;
    return true;
  }
  if (std::exchange(*had, true))
    return refuse(str("the key \"", key, "\" is there twice"), key, error);
  if (had_.rows && had_.columns)
    return refuse("\"instances\" and \"inputs\" are both there, and a request has one of them", key,
                  error);
  return true;
}

TfColumn* TfEvents::find(std::string_view key) {
  // Instances mostly have their keys in the same order.
  if (next_ < columns_.size() && columns_[next_].builder.spec().name == key)
    return &columns_[next_++];
  const auto found = places_by_name_.find(key);
  if (found == places_by_name_.end()) return nullptr;
  next_ = found->second + 1;
  return &columns_[found->second];
}

bool TfEvents::open_column(std::string_view key, error_code& error) {
  TfColumn* const column = find(key);
  if (column == nullptr) {
    // {"b64": ...} without a name
    if (key == "b64" && at_ == At::kRow && columns_.size() == 1 && seen_ == 0 &&
        columns_[0].builder.spec().type.dtype == DType::kString && verb_ == TfVerb::kPredict) {
      at_ = At::kRows;
      if (!open_bare(error)) return false;
      at_ = At::kBase64Text;
      return true;
    }
    active_ = nullptr;
    return refuse(str("the model has no input \"", printable(key), "\"", names_near(key, names())),
                  key, error);
  }
  active_ = column;
  ++seen_;
  if (at_ == At::kRow) {
    if (!open_in_row(*column, key, error)) return false;
  } else if (at_ == At::kColumns) {
    if (std::exchange(column->is_given, true)) return refuse("the key is there twice", key, error);
    column->builder.begin_tensor();
  } else {
    if (std::exchange(column->in_context, true))
      return refuse("the key is there twice", key, error);
    if (column->builder.rows() > 0)
      return refuse("the feature is in the context and in an example", key, error);
    if (!column->builder.begin_flat_row()) return refuse(column->builder.why(), key, error);
  }
  back_ = at_;
  at_ = At::kValue;
  return true;
}

bool TfEvents::open_in_row(TfColumn& column, std::string_view key, error_code& error) {
  if (column.in_context)
    return refuse("the feature is in the context and in an example", key, error);
  const std::int64_t rows = column.builder.rows();
  if (rows > row_) return refuse("the key is there twice", key, error);
  if (rows < row_) return refuse(str("the input is missing from ", row_name(rows)), key, error);
  if (verb_ == TfVerb::kPredict)
    column.builder.begin_row();
  else if (!column.builder.begin_flat_row())
    return refuse(column.builder.why(), key, error);
  return true;
}

bool TfEvents::close_row(error_code& error) {
  active_ = nullptr;
  if (seen_ < columns_.size())
    // A context that is still to come may have what no example had so far.
    for (const TfColumn& column : columns_)
      if (!column.in_context && column.builder.rows() <= row_ &&
          (verb_ == TfVerb::kPredict || column.builder.rows() > 0))
        return refuse(missing_columns(row_), {}, error);
  ++row_;
  at_ = At::kRows;
  return true;
}

bool TfEvents::take_signature(std::string_view name, error_code& error) {
  const auto& there = signature_names(verb_);
  at_ = At::kTop;
  if (std::find(there.begin(), there.end(), name) != there.end()) return true;
  return refuse(str("the model has no signature \"", printable(name), "\"",
                    names_near(name, std::vector<std::string>(there.begin() + 1, there.end()))),
                name, error);
}

bool TfEvents::take_base64(std::string_view text, error_code& error) {
  if (!base64_decode(text, bytes_))
    return refuse(str("\"", printable(text), "\" is not base64"), text, error);
  at_ = At::kBase64Closed;
  return true;
}

}  // namespace cairn::serving
