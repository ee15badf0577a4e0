#include "tools/launch/run_place.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/random.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "core/base/error.h"

namespace cairn::tools {

RunLock::RunLock(const std::string& dir)
    : fd_(::open((dir + "/lock").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644)) {
  if (fd_ < 0)
    throw PermissionDeniedError(
        str("cannot write in the run folder ", dir, ": ", std::strerror(errno)));
  if (::flock(fd_, LOCK_EX | LOCK_NB) == 0) return;
  ::close(fd_);
  throw FailedPreconditionError(
      str("the run folder ", dir,
          " is in use by another run: wait for its end, or choose another --dir"));
}

RunLock::~RunLock() { ::close(fd_); }

// From the kernel's generator: the token is the only thing that keeps strangers out of the cluster.
std::string random_hex(std::size_t bytes) {
  std::string raw(bytes, '\0'), hex;
  if (::getrandom(raw.data(), raw.size(), 0) != static_cast<ssize_t>(raw.size()))
    throw InternalError("the system gives no random bytes for the cluster's token");
  for (unsigned char byte : raw) {
    hex += "0123456789abcdef"[byte >> 4];
    hex += "0123456789abcdef"[byte & 15];
  }
  return hex;
}

// Created anew with mode 0600 and filled afterwards, so that no other user can read the token at
// any moment: changing the mode of a file that holds it already would be too late.
void write_token(const std::string& path, const std::string& token) {
  ::unlink(path.c_str());
  int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  bool written =
      fd >= 0 && ::write(fd, token.data(), token.size()) == static_cast<ssize_t>(token.size());
  int error = errno;
  if (fd >= 0) ::close(fd);
  if (!written) throw PermissionDeniedError(str("cannot write ", path, ": ", std::strerror(error)));
}

// Reserved for the life of the cluster, so that a role that is started again comes back at the
// address that the other tasks know.
std::vector<std::string> reserve_addresses(std::vector<ReservedPort>& ports, int count) {
  std::vector<std::string> out;
  for (int i = 0; i < count; ++i) {
    ports.emplace_back();
    out.push_back(ports.back().address());
  }
  return out;
}

}  // namespace cairn::tools
