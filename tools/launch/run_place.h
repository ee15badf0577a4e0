// The belongings of a run whose processes start on this machine: its folder, its secret, and its
// ports.
//   Thread  any.
#pragma once
#include <string>
#include <vector>

#include "tools/launch/reserved_port.h"

namespace cairn::tools {

// One run per folder at a time. The kernel releases the lock when this process dies.
class RunLock {
 public:
  //   Errors  PermissionDenied: the folder cannot be written to. FailedPrecondition: another run
  //           uses it.
  explicit RunLock(const std::string& dir);
  ~RunLock();
  RunLock(const RunLock&) = delete;
  RunLock& operator=(const RunLock&) = delete;

 private:
  int fd_;
};

// So many bytes from the kernel's generator, as hexadecimal digits.
std::string random_hex(std::size_t bytes);
// Writes a new file that no other user can read at any moment.
//   Errors  PermissionDenied: it cannot be written.
void write_token(const std::string& path, const std::string& token);
// `count` addresses, whose ports stay reserved as long as `ports` lives.
std::vector<std::string> reserve_addresses(std::vector<ReservedPort>& ports, int count);

}  // namespace cairn::tools
