// Consumers: the data service consumers of one process. All readers of the same job share one
// consumer, whatever thread they are on, so none of them holds elements that another waits for.
//   Thread  any.
#pragma once
#include <memory>
#include <string>

#include "data/dataset/service_source.h"
#include "rpc/net/transport.h"
#include "service/consumer/data_service_iterator.h"

namespace cairn::service {

struct ConsumersOptions {
  std::string cluster = "cairn";  // where the source names none
  std::string token;
  rpc::Role role = rpc::Role::kTool;
  std::uint32_t task = 0;
  rpc::Transport transport = rpc::Transport::kAuto;
  Duration patience = DataServiceOptions().patience;
  Duration next_deadline = std::chrono::minutes(2);
  Duration idle = DataServiceOptions().idle;
};

class Consumers {
 public:
  explicit Consumers(ConsumersOptions options);
  ~Consumers();  // stop()

  // For OpenOptions::open_elements and worker::WorkerOptions. May outlive the Consumers: it then
  // throws Cancelled.
  //   Its elements   each is acknowledged as soon as next() has returned it. After an error, the
  //                  next call opens a new reader of the same job. The consumer leaves the job when
  //                  the last object that shares it is destroyed.
  //   Errors         InvalidArgument: no such mode, or an address that is none; else, from next(),
  //                  those of DataServiceIterator::next().
  OpenElements opener() const;
  // Calls that wait for an element, and all later ones, end with Cancelled.
  void stop();

 private:
  struct Book;
  std::shared_ptr<Book> book_;
};

}  // namespace cairn::service
