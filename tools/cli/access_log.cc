#include "tools/cli/access_log.h"

#include <cerrno>
#include <cstring>
#include <utility>

#include "core/base/error.h"
#include "core/base/log.h"
#include "core/disk/disk.h"

namespace cairn::tools {
namespace {

// The lines are written one by one, so that a line is lost as a whole or not at all.
std::shared_ptr<std::FILE> opened(const std::string& path) {
  if (path == "-") return {stdout, [](std::FILE*) {}};
  std::FILE* const file = std::fopen(path.c_str(), "a");
  if (file == nullptr) raise_disk_error(errno, "opening", path);
  std::setvbuf(file, nullptr, _IONBF, 0);
  return {file, [](std::FILE* open) { std::fclose(open); }};
}

std::string text_of(const serving::AccessLine& line) {
  return str(line.remote, " \"", line.method, ' ', line.target, "\" ", line.status, ' ',
             line.bytes_in, ' ', line.bytes_out, ' ', line.microseconds, " us\n");
}

}  // namespace

AccessLog::AccessLog(const std::string& path) : path_(path), file_(opened(path)) {}

void AccessLog::write(const serving::AccessLine& line) {
  const std::string text = text_of(line);
  errno = 0;
  if (std::fwrite(text.data(), 1, text.size(), file_.get()) == text.size() &&
      (path_ != "-" || std::fflush(file_.get()) == 0)) {
    if (const std::uint64_t lost = std::exchange(lost_, 0); lost > 0)
      log_warning("the access log ", path_, " is written again; ", lost, " lines were lost");
    return;
  }
  std::clearerr(file_.get());
  if (lost_++ == 0)
    log_warning("a line of the access log ", path_, " cannot be written: ", std::strerror(errno),
                "; requests are answered all the same, and lines are lost until it can");
}

}  // namespace cairn::tools
