// The Open Inference Protocol, version 2, over HTTP, with the extension for binary tensors.
//
//   InferDecoder decoder(signature);                           // one per thread
//   const InferRequest request = decoder.decode(body, header_length, limits);
//   const InferAnswer answer = infer_answer(signature, 3, request, outputs);
//
// A tensor stands in the JSON as "data", one flat list or nested lists, or behind the JSON as
// little-endian bytes, of which "binary_data_size" tells the number. A ragged column NAME is sent
// as two inputs, NAME and NAME/row_splits.
//   Source  https://github.com/kserve/open-inference-protocol, specification/protocol/
//           inference_rest.md; https://github.com/triton-inference-server/server,
//           docs/protocol/extension_binary_data.md.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "serving/api/tensors.h"

namespace cairn::serving {

// "FP32" and so on.
std::string_view infer_datatype(DType dtype);

struct InferOutput {
  std::size_t index = 0;  // in Signature::outputs
  bool binary = false;
};

struct InferRequest {
  std::string id;  // empty: none
  Examples examples;
  std::vector<InferOutput> outputs;  // in the order asked for; all of the model's if none was
};

// The header "Inference-Header-Content-Length" as a number; none if `text` is empty.
//   Errors  InvalidArgument: it is no number of bytes.
std::optional<std::size_t> infer_header_length(std::string_view text);

class InferDecoder {
 public:
  //   Errors  InvalidArgument: a column of `signature` has no leading dimension.
  explicit InferDecoder(const Signature& signature);
  ~InferDecoder();
  InferDecoder(InferDecoder&&) noexcept;
  InferDecoder& operator=(InferDecoder&&) noexcept;

  // `header_length` is the length of the JSON, if bytes of tensors follow it. Binary tensors keep
  // `body` and lie in it where they are aligned to 8 bytes; others are copied.
  //   Errors  InvalidArgument, naming the place or the tensor: what TfDecoder's functions refuse;
  //           a datatype or a shape that is not the column's; sizes that do not fit the shape or
  //           the body; row splits that do not ascend from 0 to the number of values; bytes of a
  //           BOOL other than 0 and 1. Unimplemented: a tensor in shared memory; "classification".
  //   Memory  is kept for the next request, up to some MB.
  //   Thread  one at a time.
  InferRequest decode(std::shared_ptr<const std::string> body,
                      std::optional<std::size_t> header_length, const DecodeLimits& limits = {});

 private:
  struct State;
  std::unique_ptr<State> state_;
};

struct InferAnswer {
  std::string body;
  // Set if tensors follow the JSON: the value of "Inference-Header-Content-Length", for which the
  // content type is "application/octet-stream".
  std::optional<std::size_t> header_length = {};
};

// `outputs` are all of the model's.
//   Errors  InvalidArgument: a string of an output that JSON was asked for is not UTF-8.
InferAnswer infer_answer(const Signature& signature, std::int64_t version,
                         const InferRequest& request, std::span<const Tensor> outputs);

// The answers to "GET /v2", "GET /v2/models/NAME", "GET /v2/models/NAME/ready" and
// "GET /v2/health/live|ready". `more` holds further JSON members of the metadata, each with a comma
// before it.
std::string infer_server_metadata(std::string_view cairn_version);
std::string infer_model_metadata(const Signature& signature, std::span<const std::int64_t> versions,
                                 const std::string& more = "");
std::string infer_model_ready(std::string_view model, bool ready);
std::string infer_server_live(bool live);
std::string infer_server_ready(bool ready);

}  // namespace cairn::serving
