// AccessLog: a line for each answer of `cairn serve`, in a file or on standard output.
//   Thread  one: the one that HttpOptions::access_log is called on.
#pragma once
#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>

#include "serving/http/http_server.h"

namespace cairn::tools {

// A line that cannot be written, as on a full disk, is lost: requests are answered all the same.
// The log says so at the first one, and how many there were once lines are written again.
class AccessLog {
 public:
  // Appends to the file; "-": standard output.
  //   Errors  the disk's.
  explicit AccessLog(const std::string& path);
  void write(const serving::AccessLine& line);

 private:
  const std::string path_;
  std::shared_ptr<std::FILE> file_;
  std::uint64_t lost_ = 0;  // lines since the last one that was written
};

}  // namespace cairn::tools
