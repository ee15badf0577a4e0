// Elements of a data service: the stage at the bottom of a dataset that is read elsewhere.
#include <algorithm>

#include "data/dataset/dataset.h"
#include "data/dataset/stage.h"

namespace cairn {
namespace {

// It has no place: what it handed out is not to be had again, and a reader that is opened later
// goes on with what the job has left.
class ServiceStage final : public Stage {
 public:
  explicit ServiceStage(std::shared_ptr<ElementSource> elements) : elements_(std::move(elements)) {}
  Block next(std::int64_t) override {
    auto element = elements_->next();
    return element ? Block::of(std::move(*element)) : Block();
  }
  void restart(std::uint64_t) override {}
  void save(StateWriter&) const override {}
  void load(StateReader&) override {}
  std::int64_t skipped() const override { return 0; }

 private:
  const std::shared_ptr<ElementSource> elements_;
};

}  // namespace

bool reads_once(const StageSpec& last) {
  if (std::holds_alternative<ServiceSpec>(last.kind)) return true;
  if (last.input && reads_once(*last.input)) return true;
  return std::ranges::any_of(last.others, [](const auto& other) { return reads_once(*other); });
}

StagePtr make_service_stage(const StageSpec& spec, const OpenElements& open) {
  const auto& service = std::get<ServiceSpec>(spec.kind);
  const OpenElements& used = open ? open : service.open;
  if (!used)
    throw FailedPreconditionError(
        str("the dataset's elements come from the data service at ", service.source.dispatcher,
            ", and this program opens it without a client of that service: give "
            "OpenOptions::open_elements, or read a dataset that service::distribute() made here"));
  return std::make_unique<ServiceStage>(used(Dataset(service.dataset), service.source));
}

}  // namespace cairn
