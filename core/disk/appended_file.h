// AppendedFile: a file that grows by whole pieces and that others may read meanwhile, such as a
// log of events.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

namespace cairn {

// Disk::append() opens one.
//   Thread  one; calls may block. One process at a time appends to a file.
class AppendedFile {
 public:
  // Whether a file of that name is appended to, or refused.
  enum class Existing : std::uint8_t { kGoOn, kRefuse };

  AppendedFile() = default;
  AppendedFile(const AppendedFile&) = delete;
  AppendedFile& operator=(const AppendedFile&) = delete;
  virtual ~AppendedFile() = default;

  // Appends all of `bytes`, or nothing if it throws: readers never find half of a piece with
  // another one behind it. Not synced: a machine that loses power may lose the newest pieces, and
  // leave a part of one.
  //   Errors  ResourceExhausted: the disk is full; and others of writing.
  virtual void write(std::string_view bytes) = 0;
  // No loss of power takes back what was written before.
  //   Errors  those of the disk: then it is not known what is kept, and a later sync() does not
  //           tell.
  virtual void sync() = 0;
  virtual std::uint64_t size() const = 0;  // in bytes
  virtual const std::string& path() const = 0;
};

}  // namespace cairn
