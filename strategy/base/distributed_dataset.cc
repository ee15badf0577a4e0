#include "strategy/base/distributed_dataset.h"

#include "strategy/base/strategy.h"

namespace cairn {

Dataset read_ahead(const Dataset& dataset, const InputOptions& options, std::int64_t elements) {
  const std::int64_t steps = options.experimental_per_replica_buffer_size;
  return steps > 0 ? dataset.prefetch(steps * elements) : dataset;
}

const ElementSpec& DistributedDataset::element_spec() const {
  if (!spec_)
    throw FailedPreconditionError(
        "element_spec: under parameter servers a dataset function is called for each pipeline when "
        "it becomes a source; ask what iterate() or create_per_worker_dataset() made");
  return *spec_;
}

DistributedIterator DistributedDataset::begin() const {
  DistributedIterator pass = strategy_->iterate(*this);
  ++pass;
  return pass;
}

PerReplica DistributedElement::operator[](const std::string& name) const {
  return column(spec_->find(name));
}

PerReplica DistributedElement::label() const {
  if (spec_->label.empty())
    throw FailedPreconditionError(
        "label(): the dataset names no column as its label; ask for a column by its name");
  return column(spec_->find(spec_->label));
}

PerReplica DistributedElement::column(std::size_t place) const {
  std::vector<Array> values;
  for (const Element& element : of_replicas_) values.emplace_back(element.at(place));
  return PerReplica(std::move(values));
}

DistributedIterator::DistributedIterator(Strategy& strategy,
                                         std::shared_ptr<const IteratorSource> source)
    : strategy_(&strategy),
      source_(std::move(source)),
      spec_(std::make_shared<const ElementSpec>(source_->element_spec())) {}

DistributedElement DistributedIterator::get_next() {
  return {spec_, strategy_->next_elements(*source_)};
}

std::optional<DistributedElement> DistributedIterator::get_next_as_optional() {
  try {
    return get_next();
  } catch (const OutOfRangeError&) {
    return std::nullopt;
  }
}

}  // namespace cairn
