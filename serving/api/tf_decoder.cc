// This file compiles Boost.JSON's parser for TfEvents. The rest of that library is compiled in
// data/format/json_lines.cc.
#include <boost/json/basic_parser_impl.hpp>

#include "core/base/error.h"
#include "serving/api/tf_events.h"
#include "serving/api/tf_json.h"

namespace cairn::serving {
namespace {

boost::json::parse_options bounded() {
  boost::json::parse_options options;
  options.max_depth = kJsonLevelsMax;
  return options;
}

}  // namespace

struct TfDecoder::State {
  explicit State(const Signature& signature) : parser(bounded(), signature) {}

  Examples decode(TfVerb verb, std::string_view text, const DecodeLimits& limits,
                  bool with_wishes = false) {
    DecodeBudget budget{limits};
    if (!limits.allow_nan) return parse(verb, FiniteBody::as_it_is(text), budget, with_wishes);
    return parse(verb, FiniteBody(text), budget, with_wishes);
  }

  Examples parse(TfVerb verb, const FiniteBody& body, DecodeBudget& budget, bool with_wishes) {
    const std::string_view text = body.text();
    TfEvents& events = parser.handler();
    events.begin(verb, body, budget);
    if (with_wishes) events.read_wishes();
    boost::json::error_code error;
    parser.reset();
    const std::size_t parsed = parser.write_some(false, text.data(), text.size(), error);
    if (!error && parsed == text.size()) [[likely]]
      return events.finish();
    const JsonFault& fault = events.fault();
    if (!fault.why.empty()) throw_fault(fault, text, parsed);
    throw_not_json(text, parsed,
                   {.incomplete = error == boost::json::error::incomplete,
                    .too_deep = error == boost::json::error::too_deep,
                    .said = error ? error.message() : ""});
  }

  boost::json::basic_parser<TfEvents> parser;
};

TfDecoder::TfDecoder(const Signature& signature) : state_(std::make_unique<State>(signature)) {}
TfDecoder::~TfDecoder() = default;
TfDecoder::TfDecoder(TfDecoder&&) noexcept = default;
TfDecoder& TfDecoder::operator=(TfDecoder&&) noexcept = default;

TfPredict TfDecoder::predict(std::string_view body, const DecodeLimits& limits) {
  TfPredict made;
  made.examples = state_->decode(TfVerb::kPredict, body, limits);
  made.form = state_->parser.handler().form();
  return made;
}

TfRecommend TfDecoder::recommend(std::string_view body, const DecodeLimits& limits) {
  TfRecommend made;
  made.queries = state_->decode(TfVerb::kPredict, body, limits, true);
  made.form = state_->parser.handler().form();
  TfWishes wishes = state_->parser.handler().take_wishes();
  made.k = wishes.k;
  made.exclude = std::move(wishes.exclude);
  return made;
}

Examples TfDecoder::classify(std::string_view body, const DecodeLimits& limits) {
  return state_->decode(TfVerb::kClassify, body, limits);
}

Examples TfDecoder::regress(std::string_view body, const DecodeLimits& limits) {
  return state_->decode(TfVerb::kRegress, body, limits);
}

}  // namespace cairn::serving
