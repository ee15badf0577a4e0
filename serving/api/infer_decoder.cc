// This file compiles Boost.JSON's parser for InferEvents. The rest of that library is compiled in
// data/format/json_lines.cc.
#include <algorithm>
#include <boost/json/basic_parser_impl.hpp>
#include <charconv>
#include <utility>

#include "core/base/error.h"
#include "data/feature/printable.h"
#include "serving/api/infer.h"
#include "serving/api/infer_binary.h"
#include "serving/api/infer_events.h"
#include "serving/api/ragged_columns.h"

namespace cairn::serving {
namespace {

constexpr std::string_view kRowSplits = "/row_splits";

boost::json::parse_options infer_options() {
  boost::json::parse_options options;
  options.max_depth = kJsonLevelsMax;
  return options;
}

using Body = std::shared_ptr<const std::string>;

// Row splits as data/ makes them: from 0 to the number of values, never descending.
void check_splits(const std::string& name, const Tensor& splits, const Tensor& values) {
  const std::span<const std::int64_t> all = splits.values<std::int64_t>();
  const std::int64_t last = values.shape()[0];
  if (all.empty() || all.front() != 0)
    throw InvalidArgumentError(str("input \"", name, kRowSplits, "\": it begins with ",
                                   all.empty() ? "nothing" : std::to_string(all.front()),
                                   ", and row splits begin with 0"));
  for (std::size_t i = 1; i < all.size(); ++i)
    if (all[i] < all[i - 1])
      throw InvalidArgumentError(str("input \"", name, kRowSplits, "\": element ", i, " is ",
                                     all[i], " and less than the one before, ", all[i - 1]));
  if (all.back() != last)
    throw InvalidArgumentError(str("input \"", name, kRowSplits, "\": it ends with ", all.back(),
                                   ", and \"", name, "\" has ", last, " values"));
}

}  // namespace

std::optional<std::size_t> infer_header_length(std::string_view text) {
  if (text.empty()) return std::nullopt;
  std::size_t length = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), length);
  if (error != std::errc() || end != text.data() + text.size())
    throw InvalidArgumentError(str("the header Inference-Header-Content-Length is \"",
                                   printable(text), "\", and a number of bytes is wanted"));
  return length;
}

struct InferDecoder::State {
  explicit State(const Signature& its) : signature(its), parser(infer_options(), signature) {}

  InferRequest decode(const Body& body, std::size_t header_bytes, const DecodeLimits& limits) {
    DecodeBudget budget{limits};
    const std::string_view all = *body, text = all.substr(0, header_bytes);
    const FiniteBody header = limits.allow_nan ? FiniteBody(text) : FiniteBody::as_it_is(text);
    InferEvents& events = parser.handler();
    events.begin(header, budget);
    parse(header.text(), 0, true);
    if (!events.has_inputs()) throw InvalidArgumentError("the request has no key \"inputs\"");
    for (InferInput& input : events.inputs())
      if (input.data_at && !input.taken) {
        events.begin_data(input);
        parse(header.text(), *input.data_at, false);
      }
    InferRequest made;
    made.id = events.id();
    made.examples.columns.resize(signature.input.columns.size());
    take_tensors(body, header_bytes, budget, made.examples.columns);
    made.examples.examples = count_examples(made.examples.columns, limits);
    made.outputs = wanted_outputs();
    return made;
  }

  void parse(std::string_view text, std::size_t from, bool whole) {
    boost::json::error_code error;
    parser.reset();
    const std::size_t parsed =
        parser.write_some(false, text.data() + from, text.size() - from, error);
    if (!error && (!whole || parsed == text.size())) [[likely]]
      return;
    const JsonFault& fault = parser.handler().fault();
    if (!fault.why.empty()) throw_fault(fault, text, from + parsed);
    throw_not_json(text, from + parsed,
                   {.incomplete = error == boost::json::error::incomplete,
                    .too_deep = error == boost::json::error::too_deep,
                    .said = error ? error.message() : ""});
  }

  void take_tensors(const Body& body, std::size_t header_bytes, DecodeBudget& budget,
                    Element& columns) {
    InferEvents& events = parser.handler();
    check_sizes(*body, header_bytes);
    std::string_view rest = std::string_view(*body).substr(header_bytes);
    for (const InferInput& input : events.inputs()) {
      Tensor& column = columns[input.column];
      if (!input.binary_bytes) {
        column = events.builder(input.column).take();
        continue;
      }
      const auto bytes = static_cast<std::size_t>(*input.binary_bytes);
      column = read_binary(input.name, signature.input.columns[input.column].type.dtype,
                           Shape(*input.shape), rest.substr(0, bytes), body, budget);
      rest.remove_prefix(bytes);
    }
    std::string missing;
    for (std::size_t i = 0; i < columns.size(); ++i)
      if (!columns[i].defined())
        missing += str(missing.empty() ? "\"" : ", \"", signature.input.columns[i].name, "\"");
    if (!missing.empty()) throw InvalidArgumentError(str("inputs are missing: ", missing));
  }

  // All sizes together are those of the bytes behind the header.
  void check_sizes(const std::string& body, std::size_t header_bytes) {
    const std::size_t there = body.size() - header_bytes;
    std::size_t told = 0;
    for (const InferInput& input : parser.handler().inputs()) {
      if (!input.binary_bytes) continue;
      const auto bytes = static_cast<std::size_t>(*input.binary_bytes);
      if (bytes > there - told)
        throw InvalidArgumentError(
            str("input \"", input.name, "\": \"binary_data_size\" is ", bytes, ", and ",
                there - told, " bytes of the body are left for it behind the JSON of ",
                header_bytes, " bytes (header Inference-Header-Content-Length)"));
      told += bytes;
    }
    if (told != there)
      throw InvalidArgumentError(str("behind the JSON of ", header_bytes, " bytes the body has ",
                                     there, " bytes, and the inputs' \"binary_data_size\" are ",
                                     told, " together"));
  }

  std::int64_t count_examples(const Element& columns, const DecodeLimits& limits) const {
    const std::vector<ColumnSpec>& specs = signature.input.columns;
    std::int64_t examples = -1;
    const std::string* first = nullptr;
    for (std::size_t i = 0; i < columns.size(); ++i) {
      const std::size_t splits = ragged.splits[i];
      if (ragged.is_splits[i]) continue;
      if (splits != kNoColumn) check_splits(specs[i].name, columns[splits], columns[i]);
      const std::int64_t here =
          splits != kNoColumn ? columns[splits].shape()[0] - 1 : columns[i].shape()[0];
      if (first == nullptr) {
        examples = here;
        first = &specs[i].name;
      } else if (here != examples) {
        throw InvalidArgumentError(str("input \"", specs[i].name, "\" has ", here,
                                       " examples, and \"", *first, "\" has ", examples));
      }
    }
    if (examples < 1) throw InvalidArgumentError("there are no examples in the request");
    if (examples > limits.examples_max)
      throw InvalidArgumentError(
          str("the request has ", examples, " examples, more than ", limits.examples_max));
    return examples;
  }

  std::vector<InferOutput> wanted_outputs() {
    InferEvents& events = parser.handler();
    std::vector<InferOutput> made;
    if (events.wanted().empty())
      for (std::size_t i = 0; i < signature.outputs.size(); ++i)
        made.push_back({i, events.binary_output()});
    for (const InferWanted& wanted : events.wanted()) {
      std::vector<std::string> names;
      for (const ColumnSpec& each : signature.outputs) names.push_back(each.name);
      const auto found = std::find(names.begin(), names.end(), wanted.name);
      if (found == names.end())
        throw InvalidArgumentError(str("the model has no output \"", printable(wanted.name), "\"",
                                       names_near(wanted.name, names)));
      const auto index = static_cast<std::size_t>(found - names.begin());
      for (const InferOutput& other : made)
        if (other.index == index)
          throw InvalidArgumentError(str("the output \"", wanted.name, "\" is asked for twice"));
      made.push_back({index, wanted.binary.value_or(events.binary_output())});
    }
    return made;
  }

  const Signature signature;
  const RaggedColumns ragged = find_ragged(signature.input.columns);
  boost::json::basic_parser<InferEvents> parser;
};

InferDecoder::InferDecoder(const Signature& signature)
    : state_(std::make_unique<State>(signature)) {}
InferDecoder::~InferDecoder() = default;
InferDecoder::InferDecoder(InferDecoder&&) noexcept = default;
InferDecoder& InferDecoder::operator=(InferDecoder&&) noexcept = default;

InferRequest InferDecoder::decode(std::shared_ptr<const std::string> body,
                                  std::optional<std::size_t> header_length,
                                  const DecodeLimits& limits) {
  CAIRN_CHECK(body != nullptr, "no body");
  if (header_length && *header_length > body->size())
    throw InvalidArgumentError(str("the header Inference-Header-Content-Length is ", *header_length,
                                   ", and the body has ", body->size(), " bytes"));
  return state_->decode(body, header_length.value_or(body->size()), limits);
}

}  // namespace cairn::serving
