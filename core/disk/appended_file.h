// AppendedFile: a file that grows by whole pieces and that others may read meanwhile, such as a
// log of events.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

namespace cairn {

// Thread: one; calls may block. One process at a time appends to a file.
class AppendedFile {
 public:
  // Whether a file of that name is appended to, or refused.
  enum class Existing : std::uint8_t { kGoOn, kRefuse };

  //   Errors  NotFound: there is no such folder; PermissionDenied; AlreadyExists, under kRefuse.
  AppendedFile(std::string path, Existing existing);
  ~AppendedFile();
  AppendedFile(const AppendedFile&) = delete;
  AppendedFile& operator=(const AppendedFile&) = delete;

  // Appends all of `bytes`, or nothing if it throws: readers never find half of a piece with
  // another one behind it. Not synced: a machine that loses power may lose the newest pieces.
  //   Errors  ResourceExhausted: the disk is full; and others of writing.
  void write(std::string_view bytes);
  std::uint64_t size() const { return size_; }  // in bytes
  const std::string& path() const { return path_; }

 private:
  std::string path_;
  int fd_;
  std::uint64_t size_ = 0;
};

}  // namespace cairn
