// DataServiceReader: a DataServiceIterator for programs without an event loop. It has a thread of
// its own, on which elements come in while the program computes.
//
//   DataServiceReader reader(dataset, {.dispatcher = rpc::Address::parse("host:5050"),
//                                      .job_name = "train", .mode = ProcessingMode::kDynamic});
//   while (auto element = reader.next()) ...
#pragma once
#include <memory>
#include <optional>

#include "rpc/net/transport.h"
#include "service/consumer/data_service_iterator.h"

namespace cairn::service {

// Thread: one at a time; cancel() from any.
class DataServiceReader {
 public:
  // Begins to read at once. Errors  those of DataServiceIterator's constructor.
  DataServiceReader(const Dataset& dataset, DataServiceOptions options,
                    rpc::Transport transport = rpc::Transport::kAuto);
  ~DataServiceReader();

  // As DataServiceIterator::next(), and blocks until there is an element.
  std::optional<Element> next();
  // next(), now and later, ends with Cancelled.
  void cancel();
  const ElementSpec& element_spec() const { return spec_; }
  DataServiceStatistics statistics() const { return statistics_; }

 private:
  struct Loop;
  const ElementSpec spec_;
  DataServiceStatistics statistics_;
  std::unique_ptr<Loop> loop_;
};

}  // namespace cairn::service
