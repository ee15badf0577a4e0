// TensorFlow Serving's REST API: bodies of requests to tensors, and tensors to bodies of answers.
//
//   TfDecoder decoder(signature);                           // one per thread
//   const TfPredict request = decoder.predict(body, limits);
//   ... model->predict(request.examples.columns, thread) ...
//   reply(tf_predictions(signature, outputs, request.form));
//
//   Numbers  are read as data/feature/numbers.h reads them, so that a float has the bits that
//            `cairn predict` reads, and written with the fewest digits that read back as the same.
//            Floats that are whole end in ".0". NaN, Infinity and -Infinity are written as such, as
//            TensorFlow Serving does, and JSON does not.
//   Texts    are JSON strings, or {"b64": "..."} for any bytes. Outputs whose names end in "_bytes"
//            are written as the latter, and so is a text that is not UTF-8.
//   Source   https://www.tensorflow.org/tfx/serving/api_rest; where that and the server disagree,
//            tensorflow_serving/util/json_tensor.cc: classify and regress answer with "results".
#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "serving/api/tensors.h"

namespace cairn::serving {

// Which form a request had, so that the answer has the same: "instances" and "predictions", or
// "inputs" and "outputs".
enum class TfForm : std::uint8_t { kRows, kColumns };

struct TfPredict {
  Examples examples;
  TfForm form = TfForm::kRows;
};

// A candidate that a request for the best leaves out, by its id.
struct ExcludedId {
  bool is_text = false;
  std::int64_t number = 0;
  std::string text = "";
  std::size_t at = 0;  // its byte in the body
};

struct TfRecommend {
  Examples queries;
  TfForm form = TfForm::kRows;
  std::int64_t k = 10;
  std::vector<std::vector<ExcludedId>> exclude = {};  // one list per query, or none at all
};

// Reads bodies by the events of a parser straight into tensors, without a tree.
//   Errors  InvalidArgument, for every function below: the body is not JSON, or not of the form; a
//           name that is none of the model's, with the nearest; a column that is missing or there
//           twice; a value of another type or shape; a number beyond its type; limits. The message
//           says at which byte, line and column, in which instance and which input.
//   Memory  is kept for the next request, up to some MB.
//   Thread  one at a time.
class TfDecoder {
 public:
  //   Errors  InvalidArgument: `signature` has no inputs, or one has no leading dimension.
  explicit TfDecoder(const Signature& signature);
  ~TfDecoder();
  TfDecoder(TfDecoder&&) noexcept;
  TfDecoder& operator=(TfDecoder&&) noexcept;

  // The body of ":predict". A model with one input takes its values without a name.
  TfPredict predict(std::string_view body, const DecodeLimits& limits = {});
  // The bodies of ":classify" and ":regress": each feature of an example is a value or one list of
  // all of the row's values; "context" holds those that all examples share.
  Examples classify(std::string_view body, const DecodeLimits& limits = {});
  Examples regress(std::string_view body, const DecodeLimits& limits = {});
  // The body of ":recommend": one of ":predict", and besides "k", how many candidates are wanted,
  // and "exclude", one list of candidates' ids per instance.
  //   Errors  InvalidArgument, too: k is no whole number or below 1; there are not as many lists as
  //           instances.
  TfRecommend recommend(std::string_view body, const DecodeLimits& limits = {});

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// {"predictions": [...]} or {"outputs": ...}. A single output is written without its name.
//   Errors  InvalidArgument: in rows, an output that has no leading dimension, or another one than
//           its neighbours; the message advises the other form.
std::string tf_predictions(const Signature& signature, std::span<const Tensor> outputs,
                           TfForm form);

// {"results": [[["0", 0.25], ["1", 0.75]], ...]}: labels and scores of each example. An output [n]
// or [n, 1] is the probability of "1"; one of [n, k] holds the scores of "0" to "k-1".
//   Errors  InvalidArgument: the model has several outputs, or one of another shape or type.
std::string tf_classifications(const Signature& signature, std::span<const Tensor> outputs);

// {"results": [3.5, 4.0]}, from an output [n] or [n, 1].
//   Errors  as tf_classifications().
std::string tf_regressions(const Signature& signature, std::span<const Tensor> outputs);

// A candidate's place among the ids, and its score.
struct TfScored {
  std::int64_t place = 0;
  float score = 0;
};
// {"recommendations": [{"ids": [...], "scores": [...]}, ...]}, or, of columns,
// {"outputs": {"ids": [[...], ...], "scores": [[...], ...]}}: one list per query.
std::string tf_recommendations(const Tensor& ids, const std::vector<std::vector<TfScored>>& best,
                               TfForm form);

// The answer to ".../metadata". `more` holds further JSON members of its "metadata", each with a
// comma before it.
std::string tf_metadata(const Signature& signature, std::int64_t version,
                        const std::string& more = "");

struct TfVersionStatus {
  std::int64_t version = 0;
  std::string state = "AVAILABLE";  // or START, LOADING, UNLOADING, END
  std::string error_code = "OK";    // gRPC's name: "NOT_FOUND"
  std::string error_message = "";
};
// The answer to "GET /v1/models/NAME".
std::string tf_status(std::span<const TfVersionStatus> versions);

}  // namespace cairn::serving
