// Groups whose members are as processes make them, each at a Unix socket, used by threads.
#pragma once
#include <cstdlib>
#include <filesystem>
#include <thread>
#include <utility>

#include "collective/network/network_group.h"
#include "tests/collective/collective_testing.h"

namespace cairn::testing {

inline Members make_socket_group(int size, Duration timeout) {
  char folder[] = "/tmp/cairn-collective-XXXXXX";
  EXPECT_NE(::mkdtemp(folder), nullptr);
  NetworkGroupOptions options;
  options.communication.timeout = timeout;
  options.start_timeout = std::chrono::minutes(1);
  for (int rank = 0; rank < size; ++rank)
    options.members.push_back(
        {"worker", static_cast<std::uint32_t>(rank), str("unix:", folder, "/", rank)});
  Members members(static_cast<std::size_t>(size));
  std::vector<std::thread> threads;
  for (int rank = 0; rank < size; ++rank) {
    threads.emplace_back([&members, options, rank]() mutable {
      options.rank = rank;
      members[static_cast<std::size_t>(rank)] = make_network_group(options);
    });
  }
  for (auto& thread : threads) thread.join();
  std::filesystem::remove_all(folder);  // connected sockets need their names no more
  return members;
}

}  // namespace cairn::testing
