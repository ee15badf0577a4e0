// BlockFiles: the files in which the rows of a version's tables lie, open for as long as it serves.
//
//   Rows are read, and not mapped: the pages stay the kernel's and count for no limit of ours, and
//   a file that was cut short is an error of one request and not the end of the process. Files that
//   are removed meanwhile can be read on.
//   Thread  any.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace cairn::serving {

class BlockFiles {
 public:
  BlockFiles() = default;
  ~BlockFiles();
  BlockFiles(const BlockFiles&) = delete;
  BlockFiles& operator=(const BlockFiles&) = delete;

  // Opens a file; its number.
  //   Errors  NotFound, PermissionDenied; ResourceExhausted: too many files are open.
  std::size_t open(const std::string& path);

  // Whether to wait for the disk where the bytes are not in the kernel's memory.
  enum class Wait : bool { kNo, kYes };
  // Reads that many bytes to `out`. False: they would have to be waited for; the disk reads them
  // now.
  //   Errors  DataLoss: the file ends before them, or the disk fails; names the file and the place.
  bool read(std::size_t file, std::uint64_t at, std::size_t bytes, std::byte* out, Wait wait) const;
  const std::string& path(std::size_t file) const { return files_[file].path; }

 private:
  struct File {
    std::string path;
    int descriptor;
  };
  std::vector<File> files_;
};

}  // namespace cairn::serving
