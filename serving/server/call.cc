#include "serving/server/call.h"

#include <span>
#include <string_view>
#include <utility>

#include "core/base/error.h"
#include "data/feature/printable.h"
#include "serving/api/infer.h"
#include "serving/api/json_request.h"
#include "serving/api/tf_json.h"
#include "serving/model/served_model.h"
#include "serving/server/version_candidates.h"
#include "serving/server/version_codecs.h"

namespace cairn::serving {
namespace {

// In one answer: their ids and scores take some 30 bytes each.
constexpr std::int64_t kRecommendedMax = 1'000'000;

RawForm raw_form(std::string_view content_type) {
  if (content_type.starts_with("application/json") ||
      content_type.starts_with("application/x-ndjson") ||
      content_type.starts_with("application/jsonl"))
    return RawForm::kJson;
  return RawForm::kText;
}

HttpResponse json(std::string body) { return HttpResponse{.body = std::move(body)}; }

// ---- :recommend ----

const VersionCandidates& candidates_of(const Call& call) {
  if (call.version.candidates != nullptr) return *call.version.candidates;
  throw FailedPreconditionError(
      str("the model \"", call.route.model, "\" has no candidates to recommend: start the server ",
          "with --candidates FILE, or put the file ", kCandidatesFile, " into the model's folder"));
}

void verify_k(std::int64_t k, std::int64_t queries, std::int64_t candidates) {
  if (k > candidates)
    throw InvalidArgumentError(
        str("\"k\" is ", k, ", and the model has ", candidates, " candidates"));
  if (queries > kRecommendedMax / k)
    throw InvalidArgumentError(str("\"k\" is ", k, " for each of ", queries, " instances, and one ",
                                   "request is answered with ", kRecommendedMax,
                                   " candidates at most: ask for fewer, or in several requests"));
}

std::int64_t place_of(const CandidateIndex& index, const ExcludedId& id, std::size_t list,
                      std::string_view body) {
  const std::int64_t place = id.is_text ? index.find(id.text) : index.find(id.number);
  if (place >= 0) return place;
  const bool are_texts = index.ids().dtype() == DType::kString;
  throw InvalidArgumentError(
      str("\"exclude\", list ", list, ": there is no candidate ",
          id.is_text ? str('"', printable(id.text), '"') : std::to_string(id.number),
          id.is_text == are_texts ? ""
          : are_texts             ? ": their ids are texts"
                                  : ": their ids are numbers",
          id.at < body.size() ? str("; at ", place_in(body, id.at)) : ""));
}

std::vector<std::vector<std::int64_t>> places_of(const CandidateIndex& index,
                                                 const TfRecommend& request,
                                                 std::string_view body) {
  std::vector<std::vector<std::int64_t>> places;
  for (std::size_t i = 0; i < request.exclude.size(); ++i) {
    places.emplace_back();
    for (const ExcludedId& id : request.exclude[i])
      places.back().push_back(place_of(index, id, i, body));
  }
  return places;
}

CallWork read_recommend(Call& call, int thread, const DecodeLimits& limits) {
  const VersionCandidates& of = candidates_of(call);
  TfRecommend request;
  if (call.route.raw) {
    RawExamples rows =
        of.codecs->raw(thread, limits.examples_max).read(*call.body, raw_form(call.content_type));
    request.queries = {std::move(rows.columns), rows.examples};
    request.k = call.route.k.value_or(request.k);
  } else {
    request = of.codecs->tf(thread).recommend(*call.body, limits);
  }
  verify_k(request.k, request.queries.examples, of.index->size());
  auto search = std::make_shared<CandidateSearch>();
  search->index = of.index;
  search->k = request.k;
  search->leave_out = places_of(*of.index, request, *call.body);
  call.answer = [index = of.index, form = request.form](const Answer& answer) {
    std::vector<std::vector<TfScored>> best;
    for (const auto& list : answer.best) {
      best.emplace_back();
      for (const ScoredPlace& one : list) best.back().push_back({one.place, one.score});
    }
    return json(tf_recommendations(index->ids(), best, form));
  };
  return {of.queries, std::move(request.queries), std::move(search)};
}

// ---- the other verbs ----

Examples read_infer(Call& call, int thread, const DecodeLimits& limits) {
  VersionCodecs& codecs = *call.version.codecs;
  auto request = std::make_shared<InferRequest>(
      codecs.infer(thread).decode(call.body, infer_header_length(call.header_length), limits));
  Examples examples = std::move(request->examples);
  call.answer = [&signature = codecs.signature(), request,
                 version = call.version.version](const Answer& outcome) {
    InferAnswer answer = infer_answer(signature, version, *request, outcome.outputs);
    HttpResponse response{.body = std::move(answer.body)};
    if (answer.header_length) {
      response.content_type = "application/octet-stream";
      response.headers.emplace_back("Inference-Header-Content-Length",
                                    std::to_string(*answer.header_length));
    }
    return response;
  };
  return examples;
}

Examples read_predict(Call& call, int thread, const DecodeLimits& limits) {
  VersionCodecs& codecs = *call.version.codecs;
  const auto predictions = [&signature = codecs.signature()](TfForm form) {
    return [&signature, form](const Answer& answer) {
      return json(tf_predictions(signature, answer.outputs, form));
    };
  };
  if (call.route.raw) {
    call.answer = predictions(TfForm::kRows);
    RawExamples rows =
        codecs.raw(thread, limits.examples_max).read(*call.body, raw_form(call.content_type));
    return {std::move(rows.columns), rows.examples};
  }
  TfPredict request = codecs.tf(thread).predict(*call.body, limits);
  call.answer = predictions(request.form);
  return std::move(request.examples);
}

}  // namespace

Call::Call(Route of, HttpRequest asked, HttpReply to)
    : route(std::move(of)),
      body(std::make_shared<const std::string>(std::move(asked.body))),
      content_type(asked.header("content-type")),
      header_length(asked.header("inference-header-content-length")),
      reply(std::move(to)) {}

CallWork read_call(Call& call, int thread, const DecodeLimits& limits) {
  VersionCodecs& codecs = *call.version.codecs;
  const Signature& signature = codecs.signature();
  switch (call.route.kind) {
    case RouteKind::kTfRecommend: return read_recommend(call, thread, limits);
    case RouteKind::kTfClassify:
      call.answer = [&signature](const Answer& answer) {
        return json(tf_classifications(signature, answer.outputs));
      };
      return {call.version.served, codecs.tf(thread).classify(*call.body, limits)};
    case RouteKind::kTfRegress:
      call.answer = [&signature](const Answer& answer) {
        return json(tf_regressions(signature, answer.outputs));
      };
      return {call.version.served, codecs.tf(thread).regress(*call.body, limits)};
    case RouteKind::kInfer: return {call.version.served, read_infer(call, thread, limits)};
    default: return {call.version.served, read_predict(call, thread, limits)};
  }
}

}  // namespace cairn::serving
