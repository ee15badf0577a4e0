// OutputFile: a file whose name a user gave, which may be anything.
//
// A regular file, or a name under which there is nothing, is replaced as a whole: written beside,
// synced, renamed. A symbolic link is followed: what it points to is replaced, and the link stays.
// A device, a FIFO and whatever lies in /dev or /proc is written in place.
//   Thread  one; calls may block.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

namespace cairn {

// Where the bytes for a path go: what to ask before anything is written, for instance whether a
// file would be replaced.
struct OutputPlace {
  std::string path;         // behind all symbolic links
  bool in_place = false;    // it is not a file that could be replaced
  std::uint64_t bytes = 0;  // the size of a regular file there; 0: there is none, or it is empty
};
//   Errors  InvalidArgument: it is a folder, or a chain of links without an end; PermissionDenied.
OutputPlace output_place(const std::string& path);

// Construct, write() as often as needed, finish(). Without finish(), as when an exception unwinds,
// a file that was there stays as it was.
class OutputFile {
 public:
  //   Errors  those of output_place(); NotFound: there is no such folder; PermissionDenied;
  //           Unavailable: no process opened the FIFO for reading within ten seconds.
  explicit OutputFile(const std::string& path);
  ~OutputFile();
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;

  //   Errors  ResourceExhausted: the disk is full; and others of writing.
  void write(std::string_view bytes);
  // Makes what was written the file of that name. To be called once, after the last write().
  //   Errors  as write(); the file that was there is then unchanged.
  // `ending` is appended to the name, for a file that is incomplete. Output that is written in
  // place, such as a pipe, ignores it.
  void finish(const std::string& ending = "");

 private:
  OutputPlace place_;
  std::string written_;  // the file that is written to
  int fd_ = -1;
};

}  // namespace cairn
