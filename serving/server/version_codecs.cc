#include "serving/server/version_codecs.h"

#include "serving/model/served_model.h"

namespace cairn::serving {

VersionCodecs::VersionCodecs(const std::string& name, std::shared_ptr<const ServedModel> served,
                             int threads)
    : served_(std::move(served)),
      signature_{name, served_->about().input, served_->about().outputs},
      threads_(static_cast<std::size_t>(threads)) {}

TfDecoder& VersionCodecs::tf(int thread) {
  auto& decoder = of(thread).tf;
  if (decoder == nullptr) decoder = std::make_unique<TfDecoder>(signature_);
  return *decoder;
}

InferDecoder& VersionCodecs::infer(int thread) {
  auto& decoder = of(thread).infer;
  if (decoder == nullptr) decoder = std::make_unique<InferDecoder>(signature_);
  return *decoder;
}

RawRows& VersionCodecs::raw(int thread, std::int64_t examples_max) {
  auto& rows = of(thread).raw;
  if (rows == nullptr)
    rows = std::make_unique<RawRows>(served_->about(), RawLimits{.examples_max = examples_max});
  return *rows;
}

}  // namespace cairn::serving
