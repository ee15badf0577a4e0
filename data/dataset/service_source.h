// Describes the data service that a dataset's elements come from. The service itself (the
// room service/) stands above this room: programs pass its client as OpenElements.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "core/tensor/element.h"

namespace cairn {

class Dataset;

// A job of a data service. Secrets are not part of it: the reader has its own.
struct ServiceSource {
  std::string dispatcher;        // its address
  std::string job_name;          // empty: each reading process has a job of its own
  std::string cluster;           // empty: the reader's own
  std::uint8_t mode = 0;         // service/base/processing_mode.h
  std::uint8_t compression = 0;  // service/base/compression.h
  std::int64_t buffer_elements = 16;
  // Coordinated reads: one of so many consumers that read in rounds; 0: there is no such group.
  std::uint16_t num_consumers = 0, consumer_index = 0;
};

// Elements that come from elsewhere, each once.
//   Thread  any.
class ElementSource {
 public:
  virtual ~ElementSource() = default;
  // The next one; empty at the end, however often it is asked.
  virtual std::optional<Element> next() = 0;
};

// Begins to read `dataset`, which the service reads, as a consumer of the job.
using OpenElements =
    std::function<std::shared_ptr<ElementSource>(const Dataset& dataset, const ServiceSource&)>;

}  // namespace cairn
