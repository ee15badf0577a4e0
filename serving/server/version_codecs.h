// VersionCodecs: the readers of requests for one version of a model, one of each kind for each
// thread that reads any.
#pragma once
#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "serving/api/infer.h"
#include "serving/api/tensors.h"
#include "serving/api/tf_json.h"
#include "serving/raw/raw_rows.h"

namespace cairn::serving {

class ServedModel;

class VersionCodecs {
 public:
  // `threads` read, and each uses its own number.
  VersionCodecs(const std::string& name, std::shared_ptr<const ServedModel> served, int threads);

  const Signature& signature() const { return signature_; }
  // Made when they are first asked for.
  //   Errors  those of the constructors.
  //   Thread  each number is used by one thread at a time.
  TfDecoder& tf(int thread);
  InferDecoder& infer(int thread);
  RawRows& raw(int thread, std::int64_t examples_max);

  // How many examples its largest batch so far had, as those that compute note it.
  //   Thread  any.
  void note_batch(std::int64_t examples) {
    std::int64_t largest = largest_batch_;
    while (examples > largest && !largest_batch_.compare_exchange_weak(largest, examples)) {
    }
  }
  std::int64_t largest_batch() const { return largest_batch_; }

 private:
  struct OfThread {
    std::unique_ptr<TfDecoder> tf;
    std::unique_ptr<InferDecoder> infer;
    std::unique_ptr<RawRows> raw;
  };
  OfThread& of(int thread) { return threads_.at(static_cast<std::size_t>(thread)); }

  const std::shared_ptr<const ServedModel> served_;
  const Signature signature_;
  std::vector<OfThread> threads_;
  std::atomic<std::int64_t> largest_batch_{0};
};

}  // namespace cairn::serving
