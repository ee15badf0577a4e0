// DataWorker: a data worker's jobs, and its talk with the dispatcher.
//   Thread  the loop's.
#pragma once
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/base/log.h"
#include "rpc/net/network.h"
#include "service/base/compression.h"
#include "service/base/link.h"
#include "service/worker/worker_job.h"

namespace cairn::service {

struct DataWorkerOptions {
  rpc::Address dispatcher;
  std::string advertised;  // the address that consumers dial; empty: the one listened at
  Duration report_interval = std::chrono::milliseconds(500);
  // A job that no consumer asks for elements of for so long is put away; asked again, it goes on.
  Duration job_silence = std::chrono::minutes(10);
  std::size_t threads = 1;  // of the Offload, at least 1: jobs are read side by side
  WorkerJobOptions job;
  // Short enough for two dials within DispatcherOptions::silence: otherwise a single dial that goes
  // unanswered would have the worker taken for lost.
  LinkOptions link{.connect_deadline = std::chrono::seconds(2)};
  // Longer than for a dial: on a standing connection a delayed report still arrives.
  Duration report_deadline = std::chrono::seconds(5);
  LogSink log = log_line;
};

class DataWorker : public std::enable_shared_from_this<DataWorker> {
 public:
  // `hello` names this process; `address` is where consumers reach it.
  DataWorker(rpc::Reactor& reactor, rpc::Network& network, Offload& offload, rpc::Hello hello,
             DataWorkerOptions options);
  ~DataWorker();

  void begin(std::string address);
  void end();
  // Errors  NotFound: the dispatcher has no such job. Unavailable: it is away.
  rpc::Task<Sent> get(std::uint64_t connection, std::uint64_t job, std::uint64_t consumer,
                      std::uint32_t index, std::size_t most);
  // The elements, compressed on the job's thread.
  rpc::Task<std::vector<PackedElement>> packed(std::uint64_t job, Sent sent);
  void acknowledge(std::uint64_t job, const std::vector<std::uint64_t>& numbers);
  void connection_ended(std::uint64_t connection);
  std::string status_json() const;

 private:
  rpc::Task<void> report_on();
  rpc::Task<void> report();
  rpc::Task<std::shared_ptr<WorkerJob>> job(std::uint64_t id);
  rpc::Task<NextTask> next_task(std::uint64_t job, std::vector<std::uint64_t> running);
  rpc::Task<void> finish(std::uint64_t job, std::uint64_t task, std::uint64_t elements);
  void put_away_silent();

  rpc::Reactor& reactor_;
  Offload& offload_;
  const DataWorkerOptions options_;
  std::string address_;
  std::unique_ptr<Link> dispatcher_;
  std::map<std::uint64_t, std::shared_ptr<WorkerJob>> jobs_;
  std::uint64_t jobs_begun_ = 0;
  bool away_ = false;  // whether the log says that the dispatcher is away
  rpc::TaskGroup tasks_;
};

}  // namespace cairn::service
