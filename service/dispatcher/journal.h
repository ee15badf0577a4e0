// Journal: a dispatcher's state on disk, from which it goes on when it is started again.
//
// The state is small, so each write replaces all of it, atomically; what changes while one write is
// under way goes with the next one. Descriptions of datasets are files beside it, written once.
//   Thread  the loop's; the disk is touched on an Offload.
#pragma once
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "core/base/json.h"
#include "core/base/offload.h"
#include "core/disk/disk.h"
#include "rpc/loop/reactor.h"
#include "rpc/loop/task_group.h"
#include "rpc/server/signal.h"

namespace cairn::service {

class Journal {
 public:
  // `folder` empty: nothing is kept, and a dispatcher that ends has forgotten its jobs. `state`
  // gives what is to be written. Blocks: for the start of a process.
  //   Errors  FailedPrecondition: another dispatcher uses the folder, named. Those of Disk.
  Journal(rpc::Reactor& reactor, Offload& offload, Disk& disk, std::string folder,
          std::function<Json()> state);

  // The state that was written last; null if none was. Blocks.
  //   Errors  DataLoss: it is damaged.
  Json load() const;
  // Blocks. Errors  NotFound, DataLoss: with the path.
  std::vector<std::byte> load_dataset(std::uint64_t id) const;

  // Resolves when everything that the state holds now is on the disk. Errors  those of Disk.
  rpc::Task<void> commit();
  rpc::Task<void> keep_dataset(std::uint64_t id, std::shared_ptr<const std::vector<std::byte>> of);
  // Removes the files of datasets but those in `used`.
  void remove_unused(std::set<std::uint64_t> used);

 private:
  rpc::Task<void> write_all();
  std::string path() const { return folder_ + "/jobs.json"; }
  std::string path_of(std::uint64_t dataset) const;

  rpc::Reactor& reactor_;
  Offload& offload_;
  Disk& disk_;
  const std::string folder_;
  const std::function<Json()> state_;
  std::unique_ptr<DiskLock> lock_;
  std::uint64_t asked_ = 0, written_ = 0, failed_ = 0;
  std::optional<ErrorParts> error_;  // of the write that covers up to failed_
  bool writing_ = false;
  rpc::Signal changed_;
  rpc::TaskGroup tasks_;
};

}  // namespace cairn::service
