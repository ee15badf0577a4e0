// ColdDisk: where the tables of one shard have rows that are not in memory: row logs in a folder,
// or in a simulation a memory whose answers take the time that the seed says.
#pragma once
#include <functional>
#include <memory>
#include <string>

#include "core/base/offload.h"
#include "rpc/loop/reactor.h"
#include "storage/row_log/cold_store.h"

namespace cairn::storage {
class IoQueue;
}
namespace cairn::ps {

// Thread: the reactor's, but for making it.
class ColdDisk : public std::enable_shared_from_this<ColdDisk> {
 public:
  // `folder` is of this shard alone: what lies in it goes.
  ColdDisk(rpc::Reactor& reactor, Offload& offload, std::string folder);
  ~ColdDisk();

  // Is called when reads or writes have ended.
  std::function<void()> went_on;
  // Holds this object.
  storage::MakeColdStore make_store();

 private:
  std::unique_ptr<storage::ColdStore> make(const std::string& name, std::size_t row_bytes,
                                           storage::Moved moved);
  storage::IoQueue& io();

  rpc::Reactor& reactor_;
  Offload& offload_;
  std::string folder_;
  std::unique_ptr<storage::IoQueue> io_;  // once there is a store
  std::size_t stores_ = 0, later_ = 0;
};

}  // namespace cairn::ps
