// OutputFile: a file that a user named to be written, which may be anything.
//
// A regular file, or none, is replaced as a whole: written beside, synced, renamed. A symbolic link
// is followed: what it points to is replaced, and the link stays. A device, a FIFO and whatever
// lies in /dev or /proc is written in place.
//   Thread  one; calls may block.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

namespace cairn {

// Where the bytes for `path` go.
struct OutputPlace {
  std::string path;         // behind all symbolic links
  bool in_place = false;    // it is no file that could be replaced
  std::uint64_t bytes = 0;  // that a regular file there has; 0: none, or it is empty
};
// Errors  InvalidArgument: it is a folder, or links that lead nowhere; PermissionDenied.
OutputPlace output_place(const std::string& path);

class OutputFile {
 public:
  // Errors output_place()'s; NotFound: there is no such folder; PermissionDenied; Unavailable:
  // nobody reads the FIFO.
  explicit OutputFile(const std::string& path);
  ~OutputFile();  // without finish() a file that was there is as it was
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;

  // Errors  ResourceExhausted: the disk is full; and others of writing
  void write(std::string_view bytes);
  void finish();  // makes it what the name stands for

 private:
  OutputPlace place_;
  std::string written_;  // the file that is written to
  int fd_ = -1;
};

}  // namespace cairn
