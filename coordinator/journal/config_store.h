// ConfigStore: the place where a cluster records who its coordinator is and which epoch each shard
// is in (cluster_config.h).
//
// It holds one text, whose versions are numbered. Only a caller that has read the newest version
// can replace it, and if several try at once, one succeeds. So two coordinators never hold the same
// term, whatever each believes of the other.
//   Thread  any. Calls may block: a loop hands them to an Offload.
#pragma once
#include <cstdint>
#include <memory>
#include <string>

namespace cairn {

class Disk;

class ConfigStore {
 public:
  struct Version {
    std::uint64_t number = 0;  // 0: nothing was kept yet
    std::string text;
  };

  virtual ~ConfigStore() = default;
  // The newest version.
  //   Errors  DataLoss: it is damaged; names it. What the store's medium says.
  virtual Version read() = 0;
  // Keeps `text` as version `after` + 1, so that no power loss takes it back. False: another writer
  // has made a newer version. Then `text` was not kept, or it was, and so many versions followed
  // that the store can no longer tell.
  virtual bool replace(std::uint64_t after, const std::string& text) = 0;
  // The store's place, for messages to people.
  virtual std::string where() const = 0;
};

// Makes a store that has a file for each version, in a folder that every possible coordinator can
// see. A version's file is made under a name that must be free, so that one writer makes it, on a
// shared file system too. All but the last few versions are removed.
//   Errors  of making it: those of Disk.
std::unique_ptr<ConfigStore> make_file_config_store(Disk& disk, std::string folder);

}  // namespace cairn
