// How a process that a test started ends.
#pragma once
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>

#include <string>

#include "tools/launch/child_process.h"

namespace cairn::tools {

// One that does not end within so many milliseconds fails the test, which shows what it has
// printed, and is killed.
inline ExitStatus end_in_time(ChildProcess& child, int ms, const std::string& output) {
  pollfd wait{.fd = child.pidfd(), .events = POLLIN};
  EXPECT_EQ(::poll(&wait, 1, ms), 1) << "it did not end: " << output;
  child.send(SIGKILL);
  return child.wait();
}

}  // namespace cairn::tools
