// ConfigStore: where a cluster keeps the little that has to be agreed upon: who its coordinator is,
// and which process answers for each shard (cluster_config.h).
//
// One text, with a number that counts its versions. Whoever has read the newest version may replace
// it, and of several who try one succeeds: so two coordinators never hold the same place, whatever
// each believes of the other.
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
  // Keeps `text` as version `after` + 1, so that no power loss takes it back. False: somebody else
  // has made that version, and nothing was changed.
  virtual bool replace(std::uint64_t after, const std::string& text) = 0;
  // For people: where it is.
  virtual std::string where() const = 0;
};

// A file for each version, in a folder that all who may become the coordinator see: each is written
// as a whole under a name that nobody had taken, which also a shared file system decides for one of
// several machines. Older ones are removed, but for the last few.
//   Errors  of making it: those of Disk.
std::unique_ptr<ConfigStore> make_file_config_store(Disk& disk, std::string folder);

}  // namespace cairn
