// How the reading of a body ends: examples, or a message that says what is wrong and where.
#include <functional>
#include <utility>

#include "core/base/error.h"
#include "serving/api/tf_events.h"

namespace cairn::serving {

std::string TfEvents::missing_columns(std::int64_t row) {
  active_ = nullptr;
  std::string missing;
  int count = 0;
  for (const TfColumn& column : columns_) {
    if (column.in_context || column.is_given || column.builder.rows() > row) continue;
    missing += str(missing.empty() ? "\"" : ", \"", column.builder.spec().name, "\"");
    ++count;
  }
  return str(count == 1 ? "the input " : "the inputs ", missing,
             count == 1 ? " is missing" : " are missing");
}

Examples TfEvents::finish() {
  const bool predicts = verb_ == TfVerb::kPredict;
  if (!had_.rows && !had_.columns) {
    const char* const wanted = predicts ? "\"instances\" or \"inputs\"" : "\"examples\"";
    std::string near;
    for (const std::string& key : had_.unknown)
      for (const char* each : {"instances", "inputs", "examples"}) {
        if (!near.empty() || nearest_name(key, {each}).empty()) continue;
        const bool is_predicts = each[0] == 'i';
        near = is_predicts == predicts ? str("; did you mean \"", each, "\" by \"", key, "\"?")
                                       : str("; \"", key, "\" is for ",
                                             is_predicts ? ":predict" : ":classify and :regress");
      }
    throw InvalidArgumentError(str("the body has no key ", wanted, near));
  }
  if (had_.context) take_context();
  const std::int64_t examples = had_.columns ? columns_.front().builder.rows() : row_;
  for (const TfColumn& column : columns_) {
    const std::int64_t rows = column.builder.rows();
    if (rows == 0 && examples > 0 && !had_.columns)
      throw InvalidArgumentError(str(row_name(0), ": ", missing_columns(0)));
    if (rows != examples)
      throw InvalidArgumentError(str("the input \"", column.builder.spec().name, "\" has ", rows,
                                     " examples, and \"", columns_.front().builder.spec().name,
                                     "\" has ", examples, ": all inputs have the same number"));
  }
  if (examples == 0) throw InvalidArgumentError("there are no examples in the request");
  verify_wishes(examples);
  Examples made;
  made.examples = examples;
  made.columns.resize(places_);
  for (TfColumn& column : columns_) {
    if (column.splits_place != kNoColumn)
      made.columns[column.splits_place] = column.builder.take_splits();
    made.columns[column.place] = column.builder.take();
  }
  return made;
}

bool TfEvents::take_count(const std::int64_t* value, std::string_view text, error_code& error) {
  if (value == nullptr || *value < 1) return refuse_kind(str("the number ", text), text, error);
  wishes_.k = *value;
  at_ = At::kTop;
  return true;
}

bool TfEvents::take_excluded(ExcludedId id, std::string_view text, error_code& error) {
  DecodeBudget& budget = *wishes_.budget;
  budget.bytes += sizeof(ExcludedId) + text.size();
  if (++budget.elements > budget.limits.elements_max || budget.bytes > budget.limits.bytes_max)
    return refuse("the request has more values than one may have: send several", text, error);
  id.at = offset_of(text);
  wishes_.exclude.back().push_back(std::move(id));
  return true;
}

void TfEvents::verify_wishes(std::int64_t examples) const {
  if (!wishes_.had_exclude || std::ssize(wishes_.exclude) == examples) return;
  throw InvalidArgumentError(str("\"exclude\" has ", wishes_.exclude.size(), " lists for ",
                                 examples, " instances: it has one per instance, [] where nothing ",
                                 "is to be left out"));
}

void TfEvents::take_context() {
  for (TfColumn& column : columns_)
    if (column.in_context && row_ > 0 && !column.builder.repeat(row_))
      throw InvalidArgumentError(str("the context's feature \"", column.builder.spec().name,
                                     "\": ", column.builder.why()));
}

std::size_t TfEvents::offset_of(std::string_view text) const {
  const std::string_view body = body_->text();
  const bool is_within = !std::less<>()(text.data(), body.data()) &&
                         std::less<>()(text.data(), body.data() + body.size());
  return is_within ? static_cast<std::size_t>(text.data() - body.data()) : JsonFault::kUnknown;
}

// Says which row and which column, where the events are in one.
bool TfEvents::refuse(std::string why, std::string_view text, error_code& error) {
  std::string place;
  const bool in_value =
      at_ == At::kValue || at_ == At::kBase64 || at_ == At::kBase64Text || at_ == At::kBase64Closed;
  const At inner = in_value ? back_ : at_;
  if (inner == At::kRow || inner == At::kRows) place = row_name(row_);
  if (inner == At::kContext) place = "the context";
  if (active_ != nullptr &&
      (in_value || inner == At::kRow || inner == At::kColumns || inner == At::kContext))
    place += str(place.empty() ? "input \"" : ", input \"", active_->builder.spec().name, "\"");
  fault_.why = place.empty() ? std::move(why) : str(place, ": ", why);
  if (text.data() != nullptr) fault_.at = offset_of(text);
  error = boost::json::error::syntax;
  return false;
}

// Something is there that has no place there.
bool TfEvents::refuse_kind(const std::string& found, std::string_view text, error_code& error) {
  switch (at_) {
    case At::kDocument:
      return refuse(str("the body is ", found, ", and an object is wanted"), text, error);
    case At::kSignature:
      return refuse(str("\"signature_name\" is ", found, ", and a text is wanted"), text, error);
    case At::kWantRows:
      return refuse(str(verb_ == TfVerb::kPredict ? "\"instances\" is " : "\"examples\" is ", found,
                        ", and a list is wanted"),
                    text, error);
    case At::kWantContext:
      return refuse(str("\"context\" is ", found, ", and an object of features is wanted"), text,
                    error);
    case At::kCount:
      return refuse(str("\"k\" is ", found, ", and a whole number from 1 on is wanted"), text,
                    error);
    case At::kWantExclude:
    case At::kExclude:
      return refuse(str(at_ == At::kExclude ? "in \"exclude\", " : "\"exclude\" is ", found,
                        at_ == At::kExclude ? " is there" : "",
                        ", and a list with one list of ids per instance is wanted"),
                    text, error);
    case At::kExcluded:
      return refuse(str("in list ", wishes_.exclude.size() - 1, " of \"exclude\", ", found,
                        " is there, and the id of a candidate is wanted, a whole number or a text"),
                    text, error);
    case At::kBase64Text:
      return refuse(str("\"b64\" is ", found, ", and a text is wanted"), text, error);
    default: break;
  }
  const std::string wanted =
      at_ == At::kValue ? str(": the column is ", active_->builder.spec().type.to_string()) : "";
  return refuse(str(found, " is there, and a value is wanted", wanted), text, error);
}

std::string TfEvents::row_name(std::int64_t row) const {
  return str(verb_ == TfVerb::kPredict ? "instance " : "example ", row);
}

std::vector<std::string> TfEvents::names() const {
  std::vector<std::string> all;
  for (const TfColumn& column : columns_) all.push_back(column.builder.spec().name);
  return all;
}

}  // namespace cairn::serving
